// Time limit of a call that may block. Every call that can find a full ring or an empty pool takes
// one.
//
//   publish(packets, Deadline::now())       try: succeeds at once or reports what was full
//   publish(packets, Deadline::after(2ms))  waits at most 2 ms
//   publish(packets, Deadline::never())     waits until there is room or the queue has failed
//
// Thread safety: thread-compatible plain value.
// Cost: a call reads the clock only once it must wait.
#pragma once

#include <chrono>

namespace uptempo {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr Deadline now() noexcept { return Deadline{Clock::time_point::min()}; }
  static constexpr Deadline never() noexcept { return Deadline{Clock::time_point::max()}; }
  static constexpr Deadline at(Clock::time_point when) noexcept { return Deadline{when}; }

  // A duration beyond the clock's range means never. A negative duration means now.
  static Deadline after(std::chrono::nanoseconds duration) noexcept {
    if (duration <= std::chrono::nanoseconds::zero()) return now();
    const Clock::time_point start = Clock::now();
    if (duration >= Clock::time_point::max() - start) return never();
    return Deadline{start + std::chrono::duration_cast<Clock::duration>(duration)};
  }

  constexpr bool is_now() const noexcept { return when_ == Clock::time_point::min(); }
  constexpr bool is_never() const noexcept { return when_ == Clock::time_point::max(); }
  constexpr Clock::time_point when() const noexcept { return when_; }

  // Reads the clock only for a deadline that is neither now nor never.
  bool passed() const noexcept { return is_now() || (!is_never() && Clock::now() >= when_); }

 private:
  constexpr explicit Deadline(Clock::time_point when) noexcept : when_(when) {}
  Clock::time_point when_;
};

}  // namespace uptempo
