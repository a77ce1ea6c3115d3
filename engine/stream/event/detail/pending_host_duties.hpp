// Access to host_duties.hpp for functions that observe completion. Private: the inline functions of
// Event need it.
#pragma once

#include <atomic>
#include <cstdint>

namespace uptempo::detail {

inline constinit std::atomic<uint32_t> pending_host_duties{0};
// Those for which bytes are to be copied.
inline constinit std::atomic<uint32_t> owed_host_copies{0};
void finish_pending_host_duties() noexcept;
void copy_all_owed_bytes() noexcept;

// After this call, everything that is complete on the device is also complete for the host.
inline void finish_host_duties() noexcept {
  // Acquire: a thread that has observed a copy's completion also sees its duty.
  if (pending_host_duties.load(std::memory_order_acquire) != 0) [[unlikely]]
    finish_pending_host_duties();
}

// The same without a call of HSA: memory that was pinned for copies stays pinned.
inline void copy_owed_bytes() noexcept {
  if (owed_host_copies.load(std::memory_order_acquire) != 0) [[unlikely]]
    copy_all_owed_bytes();
}

}  // namespace uptempo::detail
