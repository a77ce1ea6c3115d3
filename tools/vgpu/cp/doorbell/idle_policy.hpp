// How the command processor waits when no queue can proceed: it spins, dozes, or sleeps until a
// doorbell.
//
// Arming the doorbell watch costs the next producer a fault, some 5 us. Back-to-back submissions
// should therefore find the processor spinning, while an idle program should not pay for spinning.
// The spin time adapts between kMinSpin and kMaxSpin. It doubles if a doorbell comes soon after
// arming and halves otherwise. Changes without a doorbell of the program (a dependency's signal, a
// header still INVALID, a doorbell that a kernel rings) are polled at growing intervals.
//
// Thread safety: none. The caller passes times, so tests need no clock.
#pragma once

#include <algorithm>
#include <chrono>

namespace uptempo::vgpu {

class IdlePolicy {
 public:
  using Nanoseconds = std::chrono::nanoseconds;
  static constexpr Nanoseconds kMinSpin = std::chrono::microseconds(20);
  static constexpr Nanoseconds kMaxSpin = std::chrono::microseconds(400);
  // A spin that long does not pay; a much shorter one does.
  static constexpr Nanoseconds kSoon = std::chrono::milliseconds(2);
  static constexpr Nanoseconds kPollSpin = std::chrono::microseconds(200);
  // A thread whose store is awaited may need the core that the processor spins on.
  static constexpr Nanoseconds kStoreSpin = std::chrono::microseconds(20);
  static constexpr Nanoseconds kFirstDoze = std::chrono::microseconds(20);
  static constexpr Nanoseconds kLastDoze = std::chrono::milliseconds(1);

  enum class Action { spin, doze, sleep };
  struct Decision {
    Action action;
    Nanoseconds duration{0};  // of a doze
  };

  void progressed() noexcept {
    idle_ = false;
    doze_ = kFirstDoze;
  }

  // Call it when no queue can proceed at `now`. `polls`: something may change without a doorbell of
  // the program. `poll_spin`: how long it then spins.
  Decision decide(Nanoseconds now, bool polls, Nanoseconds poll_spin = kPollSpin) noexcept {
    if (!idle_) {
      idle_ = true;
      since_ = now;
    }
    if (now - since_ < (polls ? poll_spin : spin_)) return {Action::spin};
    if (!polls) return {Action::sleep};
    const Decision decision{Action::doze, doze_};
    doze_ = std::min(doze_ + doze_ / 4, kLastDoze);
    return decision;
  }

  // Reports that the processor slept with armed doorbells for that long.
  void slept(Nanoseconds duration) noexcept {
    spin_ = duration < kSoon ? std::min(spin_ * 2, kMaxSpin) : std::max(spin_ / 2, kMinSpin);
    idle_ = false;
    doze_ = kFirstDoze;
  }

  Nanoseconds spin() const noexcept { return spin_; }

 private:
  bool idle_ = false;
  Nanoseconds since_{0};
  Nanoseconds spin_ = kMinSpin;
  Nanoseconds doze_ = kFirstDoze;
};

}  // namespace uptempo::vgpu
