// Pause: waits for a change that raises no event, such as a read index. Each round waits longer:
// the first rounds spin, because the change may be about to happen; the last ones leave the core
// idle.
//
//   for (Pause pause(deadline); !is_there();)
//     if (!pause.wait()) return false;
//
// Thread safety: thread-compatible.
// Cost: the clock is read once a round, unless the deadline is now or never.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

#include <uptempo/aql/deadline.hpp>

namespace uptempo::aql {

// Tells the core that this thread only waits.
inline void cpu_relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

class Pause {
 public:
  explicit Pause(Deadline deadline,
                 std::chrono::nanoseconds longest = std::chrono::milliseconds(1)) noexcept
      : deadline_(deadline), longest_(longest) {}

  // Waits for a moment, which ends at the deadline. Returns false at once if that has passed.
  bool wait() noexcept {
    if (deadline_.passed()) return false;
    if (round_ < kSpins) {
      ++round_;
      cpu_relax();
    } else if (round_ < kSpins + kYields) {
      ++round_;
      std::this_thread::yield();
    } else {
      using std::chrono::nanoseconds;
      const nanoseconds left =
          deadline_.is_never() ? sleep_ : nanoseconds(deadline_.when() - Deadline::Clock::now());
      if (left > nanoseconds::zero()) std::this_thread::sleep_for(std::min(sleep_, left));
      sleep_ = std::min(2 * sleep_, longest_);
    }
    return true;
  }

 private:
  static constexpr unsigned kSpins = 64;  // about 40 cycles each: about 1 us
  static constexpr unsigned kYields = 32;

  Deadline deadline_;
  std::chrono::nanoseconds longest_;
  std::chrono::nanoseconds sleep_ = std::chrono::microseconds(50);
  unsigned round_ = 0;
};

}  // namespace uptempo::aql
