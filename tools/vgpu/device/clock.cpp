#include "device/clock.hpp"

#include <ctime>

namespace uptempo::vgpu {

uint64_t host_clock_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t gpu_clock_ticks() noexcept { return host_clock_ns() / 10; }

}  // namespace uptempo::vgpu
