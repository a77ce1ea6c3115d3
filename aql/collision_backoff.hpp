// CollisionBackoff: keeps a shared producer away from the ring for a moment after one of its
// publications has met another thread's.
//
// A publication of few packets costs less than the cache lines that it takes over from the thread
// that published before: claim cursor, turn, write index, doorbell. Threads that publish in turns
// pay for that transfer each time. A thread that keeps away lets the others publish many times
// while these lines are theirs, and pays for one transfer when it returns.
//
// A publication collides if it is finished out of turn: then another thread was publishing at the
// same time. Each collision doubles the pause, up to kLongest. Each publication in turn shortens it
// by 1/32. So about every twentieth publication of a thread collides, whatever the number of
// threads, and threads that never meet never pause.
//
// The pause is over at a point in time. A thread that publishes later than that does not wait.
//
// Thread safety: thread-compatible; each shared producer has its own.
// Cost: one test per publication; after a collision one reading of the clock, and the pause.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include <uptempo/aql/pause.hpp>

namespace uptempo::aql {

class CollisionBackoff {
 public:
  using Clock = std::chrono::steady_clock;
  // Longer publications neither pause nor count: filling them takes longer than the transfer, and
  // threads fill at the same time.
  static constexpr uint64_t kMostPackets = 32;
  static constexpr std::chrono::nanoseconds kShortest{1'000};
  // Also the longest delay of a publication whose predecessor is held up by a descheduled thread.
  static constexpr std::chrono::nanoseconds kLongest{16'000};

  // Call before a claim. Returns when the pause is over.
  void wait(uint64_t packets) noexcept {
    if (is_pausing_ && packets <= kMostPackets) [[unlikely]]
      wait_for_end();
  }
  // Call after a commit. `now`: reads the clock.
  void published(uint64_t packets, bool in_turn,
                 Clock::time_point (*now)() noexcept = Clock::now) noexcept {
    if (packets > kMostPackets) return;
    if (in_turn) [[likely]] {
      pause_ -= pause_ / 32;
      return;
    }
    pause_ = std::clamp(2 * pause_, kShortest, kLongest);
    end_ = now() + pause_;
    is_pausing_ = true;
  }

  // How long the thread keeps away after its next collision, before doubling.
  std::chrono::nanoseconds pause() const noexcept { return pause_; }
  bool is_pausing() const noexcept { return is_pausing_; }
  Clock::time_point end() const noexcept { return end_; }

 private:
  void wait_for_end() noexcept {
    while (Clock::now() < end_) cpu_relax();
    is_pausing_ = false;
  }

  std::chrono::nanoseconds pause_{0};
  Clock::time_point end_{};
  bool is_pausing_ = false;
};

}  // namespace uptempo::aql
