// Counts the HSA functions that a program calls, on any device.
//
//   const HsaCalls before = HsaCalls::now();
//   ...
//   const HsaCalls spent = HsaCalls::now() - before;  // spent.allocations, ...
//
// Functions of this library replace ROCr's, count the call and forward it. It is therefore an
// object library, linked into programs. Calls inside ROCr are not counted.
//
// Thread safety: any thread; the counts are of the whole process.
#pragma once

#include <cstdint>

namespace uptempo::support {

struct HsaCalls {
  // device-visible memory: hsa_amd_memory_pool_allocate, hsa_memory_allocate
  uint64_t allocations = 0;
  uint64_t frees = 0;            // hsa_amd_memory_pool_free, hsa_memory_free
  uint64_t pins = 0;             // hsa_amd_memory_lock, hsa_amd_memory_lock_to_pool
  uint64_t signals_created = 0;  // hsa_signal_create, hsa_amd_signal_create
  uint64_t blocking_copies = 0;  // copies that return when complete: hsa_memory_copy
  uint64_t started_copies = 0;   // copies by a copy engine: hsa_amd_memory_async_copy...

  static HsaCalls now() noexcept;

  HsaCalls& operator+=(const HsaCalls& other) noexcept;
  friend HsaCalls operator-(const HsaCalls& a, const HsaCalls& b) noexcept;
  friend bool operator==(const HsaCalls&, const HsaCalls&) = default;
};

}  // namespace uptempo::support
