// How long the device delays each of its steps under `uptempo-vgpu --delay SEED`.
//
// Each delayed step has a number: a packet its index, an SDMA packet its offset in the ring, a
// doorbell its value. A delay is a function of seed, queue, place and number alone. So a seed
// delays each queue in the same way on every run, whatever other queues and host threads do. The
// scheduler decides how these interleave.
//
// Distribution: for each place of each queue, the seed selects whether no step, one of 16, one of 4
// or every step is delayed. So a slow queue may run beside a fast one, or a queue may finish early
// and announce late. Delays range from kShortest to kLongest. The probability of a delay above x
// falls with the root of x (a bounded Pareto distribution of shape 1/2): half are shorter than 4
// us, one in twelve exceeds 100 us, one in a hundred exceeds a millisecond; the mean is 44 us.
//
// Thread safety: any thread; immutable.
#pragma once

#include <chrono>
#include <cstdint>

namespace uptempo::vgpu {

enum class DelayPlace : uint8_t {
  doorbell,    // rung, but not yet seen
  launch,      // a packet that could launch
  completion,  // a packet that has ended, but does not yet count as complete
  interrupt,   // a signal that has its value, but whose event is not yet raised
  copy,        // an SDMA packet that has not begun
};

class Delays {
 public:
  static constexpr std::chrono::nanoseconds kShortest = std::chrono::microseconds(1);
  static constexpr std::chrono::nanoseconds kLongest = std::chrono::milliseconds(2);

  // `queue`: number in order of creation, from 0, compute and SDMA queues together, as in the
  // trace.
  Delays(uint64_t seed, uint32_t queue) noexcept;

  // Returns zero when the step is not delayed.
  std::chrono::nanoseconds of(DelayPlace place, uint64_t number) const noexcept;

  // Every how many steps one is delayed: 1, 4 or 16; 0: none.
  unsigned period(DelayPlace place) const noexcept;

 private:
  uint64_t stream(DelayPlace place) const noexcept;

  const uint64_t seed_;
};

}  // namespace uptempo::vgpu
