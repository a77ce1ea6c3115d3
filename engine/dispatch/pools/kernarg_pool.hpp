// Kernarg blocks: 64-byte-aligned pieces of memory that was allocated once.
//
// A block never shares a 64-byte line with another, so that the host's writes of one and the GPU's reads of another do not meet in a cache
// line. Blocks are cut from slabs. A batch fills one slab after another and keeps the last, half-filled one for its next
// submission; each publication holds the slabs that its blocks lie in, and a slab is free when no batch and no publication holds it. That is
// all bookkeeping: a few words per slab, none per block, so that taking a block costs an addition.
//
// Thread safety: one owner. No function allocates, waits or calls HSA. Lifetime: blocks may be rewritten only after the completion of
// the dispatch that reads them, which is when the timeline gives the publication's slabs back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/runtime/handle_check.hpp"
#include "engine/dispatch/pools/pressure.hpp"

namespace uptempo {

class KernargPool {
 public:
  static constexpr uint32_t block_alignment = 64;

  // A run of slabs, linked. Empty: first == none.
  static constexpr uint32_t none = UINT32_MAX;
  struct Slabs {
    uint32_t first = none;
    uint32_t last = none;
    [[no_unique_address]] detail::GenerationTag generation{};  // of the first one
  };

  // What a batch holds while it is being filled.
  struct Cursor {
    Slabs slabs;
    std::byte* next = nullptr;  // the next block in slabs.last, and that slab's end
    std::byte* end = nullptr;
    uint32_t blocks = 0;  // taken since the last publication

    // Whether take() may be called with that size of a block.
    bool fits(uint64_t block_size) const noexcept {
      return reinterpret_cast<uintptr_t>(next) + block_size <= reinterpret_cast<uintptr_t>(end);
    }
    size_t room() const noexcept { return static_cast<size_t>(end - next); }
    // `count` blocks in a row.
    std::byte* take(uint64_t block_size, uint32_t count = 1) noexcept {
      std::byte* const block = next;
      next += block_size * count;
      blocks += count;
      return block;
    }
  };

  // The size of the block that serves so many bytes.
  static constexpr uint64_t block_bytes(uint64_t size_bytes) noexcept {
    return (size_bytes + block_alignment - 1) / block_alignment * block_alignment;
  }

  // `memory` is aligned to 64 bytes and outlives the pool; what exceeds a multiple of slab_bytes stays unused.
  KernargPool(std::span<std::byte> memory, uint32_t slab_bytes, WaterMarks marks = {});

  // A block of that size, which is one of block_bytes(), or null if no slab is free (see free_slabs) or the size exceeds a slab.
  std::byte* take(Cursor& cursor, uint64_t block_size) noexcept {
    if (!cursor.fits(block_size) && !add_slab(cursor, block_size)) return nullptr;
    return cursor.take(block_size);
  }

  // Passes the slabs of all blocks taken since the last publication to a publication. The cursor keeps the one it is filling.
  Slabs publish(Cursor& cursor) noexcept;
  // The publication has completed. With handle checks the memory that becomes free is overwritten, and giving back twice ends the program.
  void retire(Slabs slabs) noexcept;
  // The batch is dropped: what it took and did not publish is free again.
  void drop(Cursor& cursor) noexcept;

  uint32_t slab_bytes() const noexcept { return slab_bytes_; }
  uint32_t slabs() const noexcept { return static_cast<uint32_t>(slabs_.size()); }
  uint32_t free_slabs() const noexcept { return slabs() - held_.in_use(); }
  Level level() const noexcept { return held_.level(); }  // any thread

 private:
  struct Slab {
    uint32_t holders = 0;
    uint32_t next = none;  // in its cursor's run while held, in the free list while free
    [[no_unique_address]] detail::GenerationTag generation{};  // its uses
  };

  bool add_slab(Cursor& cursor, uint64_t size) noexcept;
  void release(Slabs run) noexcept;

  std::byte* memory_;
  uint32_t slab_bytes_;
  std::vector<Slab> slabs_;
  uint32_t free_head_ = none;
  detail::Gauge held_;
};

}  // namespace uptempo
