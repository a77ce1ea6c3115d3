// Access to copy/retired.hpp for functions that observe completion. Private: the inline functions
// of Event need it.
#pragma once

#include <atomic>
#include <cstdint>

namespace uptempo::detail {

// Entries of the list, and those for which bytes are to be copied.
inline constinit std::atomic<uint32_t> retired_entries{0}, owed_host_copies{0};
void release_all_retired() noexcept;
void copy_all_owed_bytes() noexcept;

// After this call, everything that is complete on the device is also complete for the host.
inline void release_retired() noexcept {
  // Acquire: a thread that has observed a copy's completion also sees its entry.
  if (retired_entries.load(std::memory_order_acquire) != 0) [[unlikely]]
    release_all_retired();
}

// The same without a call of HSA: memory stays pinned and allocated.
inline void copy_owed_bytes() noexcept {
  if (owed_host_copies.load(std::memory_order_acquire) != 0) [[unlikely]]
    copy_all_owed_bytes();
}

}  // namespace uptempo::detail
