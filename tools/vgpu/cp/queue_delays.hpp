// Delays of one queue's steps under --delay.
//
// A delay is a time before which a step does not happen, never a sleep. The command processor's
// thread serves the other queues meanwhile, and sleeps until next_look_ns() if none of them has
// work. A delay begins when its step could happen otherwise, so the order of a queue's packets,
// barrier bits and dependencies does not change.
//
// Thread safety: none; the queue owns it.
#pragma once

#include <array>
#include <cstdint>

#include "cp/late_interrupts.hpp"
#include "device/delays.hpp"

namespace uptempo::vgpu {

class QueueDelays {
 public:
  static constexpr uint64_t kNever = LateInterrupts::kNever;

  QueueDelays(uint64_t seed, uint32_t ordinal, LateInterrupts& interrupts) noexcept;

  // Call it before the turns of one pass. The delays found in those turns determine next_look_ns().
  void begin_pass() noexcept { next_look_ns_ = kNever; }

  // Returns when the first of the queue's delays ends.
  uint64_t next_look_ns() const noexcept { return next_look_ns_; }

  // Whether the delay of `number` is over, at a place where steps wait one at a time. The first
  // call starts the delay.
  bool over(DelayPlace place, uint64_t number) noexcept;

  // The same for doorbells. A doorbell that replaces another in the slot ends together with it.
  bool doorbell_over(uint64_t value) noexcept;

  // For places where several steps wait concurrently: begin() returns the end of the delay,
  // reached() whether it has passed.
  uint64_t begin(DelayPlace place, uint64_t number) const noexcept;
  bool reached(uint64_t until_ns) noexcept;

  void raise(uint32_t event_id, uint64_t number);

  // Returns the delay that the seed determines, for the trace.
  uint64_t drawn_ns(DelayPlace place, uint64_t number) const noexcept;

 private:
  struct Hold {
    bool begun = false;
    uint64_t number = 0;
    uint64_t until_ns = 0;  // 0: no delay
  };

  const Delays delays_;
  LateInterrupts& interrupts_;
  uint64_t next_look_ns_ = kNever;
  std::array<Hold, 5> holds_{};  // by place
};

}  // namespace uptempo::vgpu
