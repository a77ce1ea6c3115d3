// What --delay holds up of one queue, and until when.
//
// A delay is a time before which something is not done, never a sleep: the command processor's thread serves the other queues meanwhile, and sleeps until
// next_look_ns() when none of them has anything to do. A delay begins when what it holds up could be done otherwise, so the order of a queue's
// packets, barrier bits and dependencies stay what they are.
//
// Thread safety: none; it belongs to its queue.
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

  // Ahead of the turns of one pass: what they find held up determines next_look_ns().
  void begin_pass() noexcept { next_look_ns_ = kNever; }

  // When the queue is to be looked at again, since the first of its delays will be over.
  uint64_t next_look_ns() const noexcept { return next_look_ns_; }

  // Whether the delay of `number` is over, at a place where one after the other waits. It begins when this is asked first.
  bool over(DelayPlace place, uint64_t number) noexcept;

  // The same for doorbells. One that replaces another in the slot is seen together with it.
  bool doorbell_over(uint64_t value) noexcept;

  // Where several wait at a time: begin() says until when, and reached() whether that is over.
  uint64_t begin(DelayPlace place, uint64_t number) const noexcept;
  bool reached(uint64_t until_ns) noexcept;

  void raise(uint32_t event_id, uint64_t number);

  // What the seed holds for it, for the trace.
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
