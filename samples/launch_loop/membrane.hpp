// The simulation: a membrane of 8 x 8 points in steps of dozens of kernels, on the host and on the
// device.
//
// A step is drive(), then observe(). They call its kernels in order on HostMembrane (here) or
// DeviceMembrane (device_membrane.hpp). Both compute the same sums and products of floats in the
// same order, without contraction, so their states are equal bit by bit.
//
// Thread safety: one owner of a membrane; the functions are pure.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace uptempo::launch_loop {

inline constexpr uint32_t kWidth = 8, kPoints = kWidth * kWidth;

// Points, row by row; their edge stays at rest.
using Field = std::array<float, kPoints>;
// By row: the sum of the heights and the sum of the squares of the speeds.
using Observation = std::array<float, 2 * kWidth>;

inline constexpr float kStiffness = 0.125f, kDamping = 0.9990234375f, kTimeStep = 0.5f;

// As in membrane.cl.
struct Mount {
  float row, column, reach, pull;
};
struct Mounts {
  Mount mounts[32];
};
static_assert(sizeof(Mounts) == 512);
Mounts mounts();

// The host's input of a step, derived from integers so that every host computes the same bits.
Field actions_of(uint32_t step);
float wind_of(uint32_t step, uint32_t kernel);

// The kernels of a step except the last. The first takes a host array. Then follow in rotation one
// whose argument always changes, one with a large argument, and four with few, constant arguments.
// The last kernel, observe(), returns an array to the host.
inline constexpr uint32_t kLeastKernels = 2;
template <class Membrane>
void drive(Membrane& membrane, uint32_t kernels, uint32_t step) {
  membrane.actuate(actions_of(step));
  for (uint32_t kernel = 0; kernel + kLeastKernels < kernels; ++kernel) {
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
