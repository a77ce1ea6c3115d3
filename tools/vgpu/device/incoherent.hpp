// The caches of one agent as they are: copies of data that go stale, and stores that stay where they are, until a fence says otherwise
// (`uptempo-vgpu --incoherent SEED`). caching.hpp has the facts; this keeps the bytes.
//
// * Vector L1, one per compute unit. Loads copy the line out of L2; coherent ones (GLC) drop the compute unit's own copy and read L2. Stores
//   go through to L2 and change the own copy, never that of others.
// * Scalar L1, one for a group of compute units: the same for scalar loads and stores.
// * L2. Memory that needs fences (l2_needs_fences()) is copied line by line; stores leave dirty bytes, which reach memory when they are written back,
//   and copies do not notice what the host or SDMA write. All other memory is read and written where it is.
//   Bytes are valid and dirty one by one, so that writing back a line never undoes what others wrote beside it.
// * Lines are found by their place in host memory, which stands for the physical address: a buffer mapped twice is one in every cache.
//
// Chance. The seed decides all that hardware leaves open: where workgroups run, which lines are evicted and when. Nothing depends on
// addresses beyond the page but which lines of L2 compete for one set.
//
// Thread safety: none. The one worker of an incoherent device, the command processor's thread, owns it. Host memory is touched inside the calls only:
// mappings must be valid then, and forget() must have been called before one goes away.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "device/caching.hpp"
#include "device/description.hpp"

namespace uptempo::vgpu {

// How a device behaves where it may choose.
struct CacheHabits {
  uint64_t seed = 0;
  uint32_t compute_units = 1;  // that workgroups run on, from the first one
  uint64_t l1_eviction_period =
      0;  // accesses between two evictions, on average; 0: only where room is needed
  uint64_t l2_eviction_period = 0;

  // One habit or another of each: one to all compute units (powers of two), evictions from never to every 16 accesses.
  static CacheHabits of(const DeviceDescription& device, uint64_t seed) noexcept;
};

// Lines that fences of packets have moved so far. A line that several L1s hold is as many lines.
struct MovedLines {
  uint64_t vector_l1_invalidated = 0, scalar_l1_invalidated = 0;
  uint64_t l2_invalidated = 0;  // what was not dirty in them
  uint64_t l2_written_back = 0;
};

class Caches {
 public:
  Caches(const DeviceDescription& device, const CacheHabits& habits);
  ~Caches();
  Caches(const Caches&) = delete;
  Caches& operator=(const Caches&) = delete;

  // Where the next workgroup is to run.
  uint32_t any_compute_unit() noexcept;

  // Accesses of a wave on `compute_unit` to bytes that lie in `mapping` as a whole. Permissions are the caller's business. An aligned value
  // of 1, 2, 4 or 8 bytes is read from and written to host memory by one access.
  void load(uint32_t compute_unit, const Mapping& mapping, GpuAddress address, std::span<std::byte> to,
            bool coherent);
  void store(uint32_t compute_unit, const Mapping& mapping, GpuAddress address,
             std::span<const std::byte> from);
  void scalar_load(uint32_t compute_unit, const Mapping& mapping, GpuAddress address,
                   std::span<std::byte> to, bool coherent);
  void scalar_store(uint32_t compute_unit, const Mapping& mapping, GpuAddress address,
                    std::span<const std::byte> from);
  // Where an atomic operation on `size_bytes` (4 or 8, aligned) takes place: the caller updates the value there before it calls anything else
  // of this object. In L2 the bytes count as dirty from now on.
  std::byte* atomic(uint32_t compute_unit, const Mapping& mapping, GpuAddress address,
                    size_t size_bytes);

  // How instructions are fetched: what L2 holds, else memory. Leaves no trace.
  void peek(const Mapping& mapping, GpuAddress address, std::span<std::byte> to) const;

  // Cache control by instructions.
  void invalidate_vector_l1(uint32_t compute_unit) noexcept;
  void invalidate_scalar_l1(uint32_t compute_unit) noexcept;
  void write_back_l2() noexcept;
  // Dirty bytes stay, dirty: nothing but a write-back may publish them, and dropping them would lose stores.
  void invalidate_l2() noexcept;

  // Agent-wide.
  void carry_out(const CacheActions& actions) noexcept;
  // Fences of packets.
  void acquire(FenceScope scope) noexcept;
  void release(FenceScope scope) noexcept;

  // Writes back and drops all there is of `mapping`, in every cache.
  void forget(const Mapping& mapping) noexcept;

  // By acquire(), release() and carry_out(); not by instructions, evictions and forget(). Any thread.
  MovedLines moved_lines() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace uptempo::vgpu
