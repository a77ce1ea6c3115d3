// Completion: the result of submit(). A 16-byte value that names one publication of one queue.
//
// Complete means: all packets of that publication, and of all earlier publications of its queue,
// are complete, and their writes are visible to the host and to copies.
//
// To wait without blocking a thread: `co_await` it (awaitable.hpp), or make it signal a file
// descriptor (notifier.hpp).
//
// Thread safety: every function may be called from any thread. A wait blocks no other wait or
// submission.
// Lifetime: a Completion owns nothing. Copies are free, and destroying an unfinished one neither
// waits nor leaks. It may outlive its Queue and the Runtime; it is then complete, or failed with
// the queue.
#pragma once

#include <cstdint>
#include <vector>

#include "aql/deadline.hpp"
#include "engine/completion/packet_time.hpp"
#include "engine/completion/wait_policy.hpp"

namespace uptempo {

class Timeline;
class CompletionNotifier;
namespace detail {
class CompletionAwaiter;
class RecordingState;
struct CompletionParts;
}  // namespace detail

class Completion {
 public:
  // Constructs a complete one.
  Completion() = default;

  // Blocks until complete. Throws Error if the queue has failed, with the queue's error. When the
  // driver reports the loss of the GPU (a reset after a hang, an uncorrectable memory error, its
  // removal), a wait ends so within a quarter of a second. Otherwise a wait has no limit, because a
  // kernel may run for any time.
  void wait(WaitPolicy policy = {}) const;
  // The same with a deadline. Returns false if the deadline passes first.
  [[nodiscard]] bool wait(Deadline deadline, WaitPolicy policy = {}) const;
  // Returns true once complete. Makes no call and never waits. Throws Error if the queue has
  // failed.
  bool ready() const;

  // Returns device times of the publication's packets, in order. Timing::each: all packets.
  // Timing::batch: the first and the last packet (one entry if they are the same packet).
  // Timing::none: no packet. Times stay available until the timeline's capacity of further
  // publications has followed. Throws Error if the publication is not complete or has failed, or if
  // the device has stored no times for one of its packets.
  std::vector<PacketTime> times() const;

  uint64_t value() const noexcept { return value_; }
  friend bool operator==(const Completion&, const Completion&) = default;

 private:
  friend class Queue;
  friend class BatchSubmitter;
  friend class CompletionNotifier;
  friend class detail::CompletionAwaiter;
  friend class detail::RecordingState;
  friend struct detail::CompletionParts;
  Completion(Timeline& timeline, uint64_t value) noexcept : timeline_(&timeline), value_(value) {}
  // True if complete or failed.
  bool finished() const noexcept;
  [[noreturn]] void throw_failure() const;

  Timeline* timeline_ = nullptr;
  uint64_t value_ = 0;
};
static_assert(sizeof(Completion) == 16);

}  // namespace uptempo
