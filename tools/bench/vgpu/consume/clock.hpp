#pragma once

#include <chrono>

namespace uptempo::vgpu::consume {

// Nanoseconds since a fixed moment. Differences are exact to a nanosecond for 50 days.
inline double now_ns() noexcept {
  return std::chrono::duration<double, std::nano>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace uptempo::vgpu::consume
