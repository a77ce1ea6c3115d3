// Access to host_duties.hpp for functions that observe completion. Private: the inline functions of
// Event need it.
#pragma once

#include <atomic>
#include <cstdint>

namespace uptempo::detail {

inline constinit std::atomic<uint32_t> pending_host_duties{0};
void finish_pending_host_duties() noexcept;

// After this call, everything that is complete on the device is also complete for the host.
inline void finish_host_duties() noexcept {
  // Acquire: a thread that has observed a copy's completion also sees its duty.
  if (pending_host_duties.load(std::memory_order_acquire) != 0) [[unlikely]]
    finish_pending_host_duties();
}

}  // namespace uptempo::detail
