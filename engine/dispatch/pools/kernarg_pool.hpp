// KernargPool: 64-byte-aligned kernarg blocks in memory that is allocated once.
//
// No two blocks share a 64-byte line, so the host's writes of one block and the GPU's reads of
// another never use the same cache line. Blocks are cut from slabs. A batch fills one slab after
// another and keeps the last, partly filled one for its next submission. Each publication holds the
// slabs of its blocks. A slab is free when no batch and no publication holds it. The bookkeeping is
// a few words per slab and none per block, so taking a block costs an addition.
//
// Thread safety: thread-compatible. No function allocates, waits or calls HSA.
// Lifetime: a block may be rewritten only after the completion of the dispatch that reads it, when
// the timeline returns the publication's slabs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <uptempo/dispatch/pools/detail/kernarg_cursor.hpp>
#include <uptempo/dispatch/pools/gauge.hpp>
#include <uptempo/dispatch/pools/pressure.hpp>
#include <uptempo/runtime/counters.hpp>

namespace uptempo {

class KernargPool {
 public:
  static constexpr uint32_t kBlockAlignment = 64;
  static constexpr uint32_t kNone = KernargSlabs::kNone;
  using Slabs = KernargSlabs;
  using Cursor = KernargCursor;

  // Size of the block for `size_bytes` of arguments.
  static constexpr uint64_t block_bytes(uint64_t size_bytes) noexcept {
    return (size_bytes + kBlockAlignment - 1) / kBlockAlignment * kBlockAlignment;
  }

  // `memory` must be 64-byte aligned and outlive the pool. Memory beyond a multiple of slab_bytes
  // stays unused.
  KernargPool(std::span<std::byte> memory, uint32_t slab_bytes);

  // Takes a block of `block_size`, a result of block_bytes(). Returns null if no slab is free or
  // the size exceeds a slab.
  std::byte* take(Cursor& cursor, uint64_t block_size) noexcept {
    if (!cursor.fits(block_size) && !add_slab(cursor, block_size)) return nullptr;
    return cursor.take(block_size);
  }

  // Transfers the slabs of all blocks taken since the last publication to a publication. The cursor
  // also keeps the slab it is filling.
  Slabs publish(Cursor& cursor) noexcept {
    if (cursor.blocks == 0) return {};
    detail::count(&detail::CounterBlock::kernarg_blocks, cursor.blocks);
    const Slabs run = cursor.slabs;
    // The cursor's hold on each slab passes to the publication. The last slab gets a second holder,
    // because the cursor continues to fill it.
    ++slabs_[run.last].holders;
    // Whole: the next publication loads it whole, and would wait for a store of a part of it.
    cursor.slabs = {run.last, run.last};
    cursor.blocks = 0;
    return run;
  }
  // Returns the slabs of a completed publication.
  void retire(Slabs run) noexcept;
  // Frees the unpublished blocks of a dropped batch.
  void drop(Cursor& cursor) noexcept;

  uint32_t slab_bytes() const noexcept { return slab_bytes_; }
  uint32_t slabs() const noexcept { return static_cast<uint32_t>(slabs_.size()); }
  uint32_t free_slabs() const noexcept { return slabs() - held_.in_use(); }
  Level level() const noexcept { return held_.level(); }  // any thread

 private:
  struct Slab {
    uint32_t holders = 0;
    uint32_t next =
        KernargSlabs::kNone;  // held: next in its cursor's run; free: next in the free list
  };

  bool add_slab(Cursor& cursor, uint64_t size) noexcept;

  std::byte* memory_;
  uint32_t slab_bytes_;
  std::vector<Slab> slabs_;
  uint32_t free_head_ = kNone;
  detail::Gauge held_;
};

}  // namespace uptempo
