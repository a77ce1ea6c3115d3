// How long the device holds up each thing that it does, under `uptempo-vgpu --delay SEED`.
//
// What is held up has a number: packets their index, SDMA packets their offset in the ring, doorbells their value. A delay is a function of
// seed, queue, place and number alone. So a seed delays each queue the same way in every run, whatever the other queues and the threads of the
// host do meanwhile; what all of them make of it together is up to the scheduler.
//
// Distribution. The seed picks for each place of each queue whether nothing is delayed, one of 16, one of 4, or everything: so some queue
// is slow and its neighbour fast, or announces late what it finishes soon. What is delayed, is so by kShortest to kLongest, and by more than x with
// a probability that falls with the root of x (a bounded Pareto distribution of shape 1/2): half of it for less than 4 us, one in
// twelve for more than 100 us, one in a hundred for more than a millisecond; 44 us on average.
//
// Thread safety: any thread; nothing changes.
#pragma once

#include <chrono>
#include <cstdint>

namespace uptempo::vgpu {

enum class DelayPlace : uint8_t {
  doorbell,    // rung, and not looked at yet
  launch,      // a packet that could be launched, and is not yet
  completion,  // a packet that has ended, and does not count as complete yet
  interrupt,   // a signal that has its value, and whose event has not been raised yet
  copy,        // an SDMA packet that is not begun yet
};

class Delays {
 public:
  static constexpr std::chrono::nanoseconds kShortest = std::chrono::microseconds(1);
  static constexpr std::chrono::nanoseconds kLongest = std::chrono::milliseconds(2);

  // Of a queue, by the order of creation: compute and SDMA queues are counted together, from 0, as in the trace.
  Delays(uint64_t seed, uint32_t queue) noexcept;

  // Zero: none.
  std::chrono::nanoseconds of(DelayPlace place, uint64_t number) const noexcept;

  // One of so many is delayed: 1, 4 or 16; 0: none.
  unsigned period(DelayPlace place) const noexcept;

 private:
  uint64_t stream(DelayPlace place) const noexcept;

  const uint64_t seed_;
};

}  // namespace uptempo::vgpu
