// The way to host_duties.hpp for those who find something complete. Private to engine/stream.
#pragma once

#include <atomic>
#include <cstdint>

namespace uptempo::detail {

inline constinit std::atomic<uint32_t> pending_host_duties{0};
void finish_pending_host_duties() noexcept;

// What is complete on the device is complete for the host afterwards.
inline void finish_host_duties() noexcept {
  // Acquire: who knows of a copy's completion knows of its duty.
  if (pending_host_duties.load(std::memory_order_acquire) != 0) [[unlikely]]
    finish_pending_host_duties();
}

}  // namespace uptempo::detail
