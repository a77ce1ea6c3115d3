// What a program asks of HSA, counted from outside of whatever asks.
//
//   const HsaCalls before = HsaCalls::now();
//   ...
//   const HsaCalls spent = HsaCalls::now() - before;     // spent.allocations, spent.signals_created, ...
//
// Counted by functions that stand before ROCr's, which they go on to; so this is a library of objects, for programs. What ROCr calls within itself does not pass there. On any device.
//
// Thread safety: any thread; the counts are of the whole process.
#pragma once

#include <cstdint>

namespace uptempo::support {

struct HsaCalls {
  uint64_t allocations =
      0;               // of memory that the device reaches: hsa_amd_memory_pool_allocate, hsa_memory_allocate
  uint64_t frees = 0;  // hsa_amd_memory_pool_free, hsa_memory_free
  uint64_t pins = 0;   // hsa_amd_memory_lock, hsa_amd_memory_lock_to_pool
  uint64_t signals_created = 0;  // hsa_signal_create, hsa_amd_signal_create
  uint64_t blocking_copies = 0;  // which return when the bytes are there: hsa_memory_copy
  uint64_t started_copies = 0;   // handed to a copy engine: hsa_amd_memory_async_copy

  static HsaCalls now() noexcept;

  HsaCalls& operator+=(const HsaCalls& other) noexcept;
  friend HsaCalls operator-(const HsaCalls& a, const HsaCalls& b) noexcept;
  friend bool operator==(const HsaCalls&, const HsaCalls&) = default;
};

}  // namespace uptempo::support
