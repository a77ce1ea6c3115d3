// PacketTime: start and end of a packet on the device.
#pragma once

#include <chrono>
#include <cstdint>

namespace uptempo {

// In nanoseconds of the system's monotonic clock domain.
struct PacketTime {
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;  // 0: the device has stored no times
  std::chrono::nanoseconds duration() const noexcept {
    return std::chrono::nanoseconds(end_ns - start_ns);
  }
};

}  // namespace uptempo
