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

#include <chrono>
#include <cstdint>
#include <vector>

#include <uptempo/aql/deadline.hpp>
#include <uptempo/runtime/tried.hpp>

namespace uptempo {

class Completion;
class Timeline;
namespace detail {
// The publication of a timeline, which may not have begun yet.
Completion completion_of(Timeline& timeline, uint64_t value) noexcept;
// Null for a Completion that was constructed complete.
Timeline* timeline_of(const Completion& completion) noexcept;
// As Completion::ready(), but looks at no other queue: for the submit path.
bool is_ready(const Completion& completion);
}  // namespace detail

// How long a wait spins before it sleeps.
//
// After the spin window, ROCr 5.2.3 polls for another 200 us before it sleeps
// (interrupt_signal.cpp, WaitRelaxed). A longer window therefore ends no wait earlier and makes
// every long wait more expensive. A wait of 24 ms takes 1.7 % of a core with 20 us and 2.3 % with
// 100 us (tools/bench/wait; figures in its README).
struct WaitPolicy {
  std::chrono::nanoseconds spin = std::chrono::microseconds(20);

  // Spins until the end: lowest latency, one core busy.
  static constexpr WaitPolicy active() noexcept { return {std::chrono::nanoseconds::max()}; }
  // Sleeps in the driver at once: no core busy, 5-50 us added latency.
  static constexpr WaitPolicy blocked() noexcept { return {std::chrono::nanoseconds::zero()}; }
};

// Start and end of a packet on the device, in nanoseconds of the system's monotonic clock domain.
struct PacketTime {
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;  // 0: the device has stored no times
  std::chrono::nanoseconds duration() const noexcept {
    return std::chrono::nanoseconds(end_ns - start_ns);
  }
};

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
  // The same with refusals as values (tried.hpp): ErrorCode::deadline, failed, device_lost.
  Tried<> try_wait(Deadline deadline, WaitPolicy policy = {}) const;
  // Returns true once complete. Makes no call of HSA and never waits. Throws Error if the queue has
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
  friend Completion detail::completion_of(Timeline& timeline, uint64_t value) noexcept;
  friend Timeline* detail::timeline_of(const Completion& completion) noexcept;
  friend bool detail::is_ready(const Completion& completion);
  [[noreturn]] void throw_failure() const;

  Timeline* timeline_ = nullptr;
  uint64_t value_ = 0;
};
static_assert(sizeof(Completion) == 16);

namespace detail {
inline Completion completion_of(Timeline& timeline, uint64_t value) noexcept {
  Completion publication;
  publication.timeline_ = &timeline;
  publication.value_ = value;
  return publication;
}
inline Timeline* timeline_of(const Completion& completion) noexcept { return completion.timeline_; }
// True if complete or failed.
bool is_finished(const Completion& completion) noexcept;
}  // namespace detail

}  // namespace uptempo
