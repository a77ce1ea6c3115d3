// Completion: what submit() returns. A value of 16 bytes that names one publication of one queue.
//
// Complete means: all packets of that publication, and of all earlier ones of its queue, are complete, and what they wrote is visible to
// the host and to copies. A Completion owns nothing: copying is free, destroying one that is unfinished neither waits nor leaks,
// and one may outlive its Queue and the Runtime (it is then complete, or failed with the queue).
//
// To learn of completion without waiting here: `co_await` it (awaitable.hpp), or have it make a file descriptor readable (notifier.hpp).
//
// Thread safety: all functions from any thread. A wait blocks nobody else's wait or submission.
#pragma once

#include <cstdint>
#include <vector>

#include "aql/deadline.hpp"
#include "engine/completion/timeline.hpp"

namespace uptempo {

namespace detail {
class CompletionAwaiter;
class StreamQueue;
class CopyLane;
}
class CompletionNotifier;

class Completion {
 public:
  // Complete.
  Completion() = default;

  // Returns when complete. Throws Error if the queue has failed, with the queue's error.
  void wait(WaitPolicy policy = {}) const;
  // The same until a deadline: false if it has passed first.
  [[nodiscard]] bool wait(Deadline deadline, WaitPolicy policy = {}) const;
  // True once complete. Makes no call and never waits. Throws Error if the queue has failed.
  bool ready() const;

  // Device times of the publication's packets, in order: of all with Timing::each, of the first and the last with Timing::batch (one
  // entry if they are the same packet), none with Timing::none. They are kept until as many further publications as
  // the queue's timeline holds. Throws Error if the publication is not complete or has failed.
  std::vector<PacketTime> times() const;

  uint64_t value() const noexcept { return value_; }
  friend bool operator==(const Completion&, const Completion&) = default;

 private:
  friend class Queue;
  friend class Stream;
  friend class BatchSubmitter;
  friend class Recording;
  friend class CompletionNotifier;
  friend class detail::CompletionAwaiter;
  friend class detail::StreamQueue;
  friend class detail::CopyLane;
  Completion(Timeline& timeline, uint64_t value) noexcept : timeline_(&timeline), value_(value) {}
  // Complete or failed.
  bool finished() const noexcept;
  [[noreturn]] void throw_failure() const;

  Timeline* timeline_ = nullptr;
  uint64_t value_ = 0;
};
static_assert(sizeof(Completion) == 16);

}  // namespace uptempo
