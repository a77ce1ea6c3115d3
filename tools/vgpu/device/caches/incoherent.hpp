// The contents of the caches of one agent: copies of data that go stale, and stores held in L2,
// until a fence acts on them (`uptempo-vgpu --incoherent SEED`). caching.hpp has the rules; this
// class holds the bytes.
//
// * Vector L1, one per compute unit. Loads copy the line from L2. Coherent loads (GLC) drop the
//   compute unit's own copy and read L2. Stores write through to L2 and update only the unit's own
//   copy.
// * Scalar L1, one per group of compute units: the same for scalar loads and stores.
// * L2, one per XCD. Memory that L2 holds (l2_holds_dirty()) is copied line by line. Stores leave
//   dirty bytes, which reach memory when they are written back. Copies do not see what the host,
//   SDMA or another L2 write (l2_goes_stale()). Probed memory has no clean copies: its bytes come
//   from memory unless the L2 itself has changed them. All other memory is read and written in
//   place. Bytes are valid and dirty one by one, so writing back a line never undoes a neighbouring
//   store.
// * With several L2s, instructions of agent scope or wider meet in memory: stores write through,
//   atomics operate there. Loads of that scope miss L1 and clean copies in L2.
// * Memory of a peer is held like host memory. A line that is written back to it is announced to
//   the owner's Probes, if the mapping has them, and the owner drops its clean copies of the line.
// * The host address identifies a line, in place of the physical address: a buffer mapped twice
//   is one in every cache.
//
// Randomness: the seed selects everything that hardware leaves open: on which unit of its XCD a
// workgroup runs, which lines are evicted and when. Address bits above the page offset only affect
// which lines of L2 compete for one set.
//
// Thread safety: none, except of probes(). The one worker of an incoherent device, the command
// processor's thread, owns the object. The caches of several GPUs meet in memory and in Probes.
// Lifetime: host memory is accessed only during calls. A mapping must be valid during a call, and
// forget() must be called before it is removed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "device/caches/caching.hpp"
#include "device/caches/probes.hpp"
#include "device/description.hpp"

namespace uptempo::vgpu {

// Choices that hardware leaves open.
struct CacheHabits {
  uint64_t seed = 0;
  uint32_t compute_units = 1;  // of each XCD on which workgroups run, counted from the first
  // Mean number of accesses between two evictions. 0: only for lack of space.
  uint64_t l1_eviction_period = 0;
  uint64_t l2_eviction_period = 0;

  // Selects each habit by the seed: one to all compute units of an XCD (powers of two), evictions
  // from never to every 16 accesses.
  static CacheHabits of(const DeviceDescription& device, uint64_t seed) noexcept;
};

// Lines moved by packet fences so far. A line held by several L1s counts once for each.
struct MovedLines {
  uint64_t vector_l1_invalidated = 0, scalar_l1_invalidated = 0;
  uint64_t l2_invalidated = 0;  // lines with clean bytes
  uint64_t l2_written_back = 0;

  MovedLines& operator+=(const MovedLines& other) noexcept {
    vector_l1_invalidated += other.vector_l1_invalidated;
    scalar_l1_invalidated += other.scalar_l1_invalidated;
    l2_invalidated += other.l2_invalidated;
    l2_written_back += other.l2_written_back;
    return *this;
  }
};

class Caches {
 public:
  Caches(const DeviceDescription& device, const CacheHabits& habits);
  ~Caches();
  Caches(const Caches&) = delete;
  Caches& operator=(const Caches&) = delete;

  // Returns a compute unit of its XCD, counted from the XCD's first, for the next workgroup.
  uint32_t any_compute_unit() noexcept;

  // Accesses of a wave on `compute_unit` to bytes that are entirely in `mapping`. The caller checks
  // permissions. An aligned value of 1, 2, 4, 8 or 16 bytes is read from and written to host memory
  // by one access. `scope`: how far a load must look, and how far a store must reach.
  void load(uint32_t compute_unit, const Mapping& mapping, GpuAddress address,
            std::span<std::byte> to, AccessScope scope);
  void store(uint32_t compute_unit, const Mapping& mapping, GpuAddress address,
             std::span<const std::byte> from, AccessScope scope = AccessScope::wave);
  void scalar_load(uint32_t compute_unit, const Mapping& mapping, GpuAddress address,
                   std::span<std::byte> to, AccessScope scope);
  void scalar_store(uint32_t compute_unit, const Mapping& mapping, GpuAddress address,
                    std::span<const std::byte> from);
  // Returns the location of an atomic operation on `size_bytes` (4 or 8, aligned), of agent scope
  // or wider. The caller updates the value there before any other call to this object. With one L2
  // the bytes become dirty there, with several the location is in memory.
  std::byte* atomic(uint32_t compute_unit, const Mapping& mapping, GpuAddress address,
                    size_t size_bytes);

  // Fetches instructions: from an L2 if one holds them, else from memory. Does not change any
  // cache.
  void peek(const Mapping& mapping, GpuAddress address, std::span<std::byte> to) const;

  // Cache control instructions of gfx942: buffer_inv and buffer_wbl2. `wave` and `workgroup` do
  // nothing: a workgroup is on one compute unit (no TG_SPLIT). Wider scopes invalidate the vector
  // L1 and the XCD's L2, or write that L2 back. Source: CDNA3 ISA, table 51, and CDNA4 ISA, table
  // 52.
  void invalidate(uint32_t compute_unit, AccessScope scope) noexcept;
  void write_back(uint32_t compute_unit, AccessScope scope) noexcept;

  // Cache control instructions of older targets.
  void invalidate_vector_l1(uint32_t compute_unit) noexcept;
  void invalidate_scalar_l1(uint32_t compute_unit) noexcept;
  void write_back_l2() noexcept;
  // Dirty bytes stay dirty: only a write-back may publish them, and dropping them would lose
  // stores.
  void invalidate_l2() noexcept;

  // Agent-wide.
  void carry_out(const CacheActions& actions) noexcept;
  // Packet fences.
  void acquire(FenceScope scope) noexcept;
  void release(FenceScope scope) noexcept;

  // Peers announce here what they write to this GPU's memory by coherent requests. Any thread.
  Probes& probes() noexcept;

  // Writes back and drops every line of `mapping` in every cache.
  void forget(const Mapping& mapping) noexcept;

  // Lines moved by acquire(), release() and carry_out(), not by instructions, evictions and
  // forget(). Any thread may call it.
  MovedLines moved_lines() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace uptempo::vgpu
