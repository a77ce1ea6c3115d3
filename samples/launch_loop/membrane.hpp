// The simulation: a membrane of 8 x 8 points in steps of some dozen kernels, on the host and on the device alike.
//
// drive() and then observe() are a step: its kernels in their order, for whatever carries them out, HostMembrane (here) or DeviceMembrane (device_membrane.hpp). Both do the same sums and
// products of floats in the same order, without contraction, so that their states are equal bit by bit.
//
// Thread safety: one owner of a membrane; the functions are pure.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace uptempo::launch_loop {

inline constexpr uint32_t width = 8, points = width * width;

// Points, row by row; their edge stays at rest.
using Field = std::array<float, points>;
// By row: the sum of the heights, and that of the squares of the speeds.
using Observation = std::array<float, 2 * width>;

inline constexpr float stiffness = 0.125f, damping = 0.9990234375f, time_step = 0.5f;

// As in membrane.cl.
struct Mount {
  float row, column, reach, pull;
};
struct Mounts {
  Mount mounts[32];
};
static_assert(sizeof(Mounts) == 512);
Mounts mounts();

// What the host puts into a step. Bits of the numbers, so that any host computes the same.
Field actions_of(uint32_t step);
float wind_of(uint32_t step, uint32_t kernel);

// The kernels of a step but the last: one that takes an array of the host, then, over and over, one with an argument of its own each time, one with a large argument, and four with the
// same few arguments always. The last one, observe(), gives an array to the host.
inline constexpr uint32_t least_kernels = 2;
template <class Membrane>
void drive(Membrane& membrane, uint32_t kernels, uint32_t step) {
  membrane.actuate(actions_of(step));
  for (uint32_t kernel = 0; kernel + least_kernels < kernels; ++kernel) {
    switch (kernel % 6) {
      case 0:
        membrane.wind(wind_of(step, kernel));
        break;
      case 1:
      case 4:
        membrane.tension();
        break;
      case 3:
        membrane.hold();
        break;
      default:
        membrane.drift();
    }
  }
}

// The reference.
class HostMembrane {
 public:
  void actuate(const Field& actions);
  void wind(float strength);
  void tension();
  void hold();
  void drift();
  void observe();

  const Field& height() const noexcept { return height_; }
  const Field& speed() const noexcept { return speed_; }
  const Observation& observation() const noexcept { return observation_; }

 private:
  Field height_{}, speed_{};
  Observation observation_{};
  Mounts mounts_ = launch_loop::mounts();
};

}  // namespace uptempo::launch_loop
