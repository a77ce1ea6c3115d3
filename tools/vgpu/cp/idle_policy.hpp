// How the command processor waits when no queue can go on: spin, doze, or sleep until a doorbell.
//
// Arming the doorbell watch costs its next producer a fault, some 5 us, so back-to-back submissions must find the processor spinning, and an
// idle program must not pay for that. The time to spin adapts: it doubles when a doorbell came soon after arming and halves when it did not, between
// kMinSpin and kMaxSpin. What no store of the program to a doorbell announces (a dependency's signal, a header still INVALID, a doorbell that a
// kernel rings) is polled at growing intervals.
//
// Thread safety: none. Times are passed in, so that tests need no clock.
#pragma once

#include <algorithm>
#include <chrono>

namespace uptempo::vgpu {

class IdlePolicy {
 public:
  using Nanoseconds = std::chrono::nanoseconds;
  static constexpr Nanoseconds kMinSpin = std::chrono::microseconds(20);
  static constexpr Nanoseconds kMaxSpin = std::chrono::microseconds(400);
  static constexpr Nanoseconds kSoon =
      std::chrono::milliseconds(2);  // a spin that long is not worth it, one much shorter is
  static constexpr Nanoseconds kPollSpin = std::chrono::microseconds(200);
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

  // No queue could go on at `now`. `polls`: something may change without a doorbell of the program's.
  Decision decide(Nanoseconds now, bool polls) noexcept {
    if (!idle_) {
      idle_ = true;
      since_ = now;
    }
    if (now - since_ < (polls ? kPollSpin : spin_)) return {Action::spin};
    if (!polls) return {Action::sleep};
    const Decision decision{Action::doze, doze_};
    doze_ = std::min(doze_ + doze_ / 4, kLastDoze);
    return decision;
  }

  // The processor slept with the doorbells armed for that long.
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
