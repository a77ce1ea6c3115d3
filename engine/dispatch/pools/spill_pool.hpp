// SpillPool: kernarg blocks larger than a slab. Each has its own allocation, which is reused after
// the epoch that read it is complete. Private to engine/dispatch and engine/stream.
//
// Publishing and reclaiming packets cost nothing here: a block is free once its epoch is complete.
// Sizes are powers of two, so that kernels with blocks of similar size share allocations.
// Allocations are kept up to the limit, so a steady state does not allocate. All sizes are 64-bit.
//
// Thread safety: thread-compatible. No function waits. The caller allocates, and may do so without
// holding its lock.
// Lifetime: the pool must outlive the queue whose packets read the blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/completion/timeline.hpp"
#include "engine/memory/kernarg_memory.hpp"

namespace uptempo::detail {

class SpillPool {
 public:
  // Allocated size of a block of `block_bytes`.
  static uint64_t capacity_for(uint64_t block_bytes) noexcept;

  explicit SpillPool(uint64_t limit_bytes) noexcept : limit_bytes_(limit_bytes) {}

  uint64_t limit_bytes() const noexcept { return limit_bytes_; }
  // Bytes in use, kept for reuse, or being allocated.
  uint64_t size_bytes() const noexcept { return size_bytes_; }

  bool has_free(uint64_t block_bytes) noexcept { return find(block_bytes) != nullptr; }
  // Returns a block that is held until then. Null if none is free.
  std::byte* take(uint64_t block_bytes, const Completion& end) noexcept;

  // Reserves room for a block that the caller will allocate. If the limit requires it, free blocks
  // are moved into `dropped`. Returns false if blocks must complete first.
  bool reserve(uint64_t block_bytes, std::vector<KernargMemory>& dropped);
  // Adds the block that room was reserved for. Throws std::bad_alloc and reverts reserve().
  void add(KernargMemory memory);
  // Reverts reserve() after a failed allocation.
  void unreserve(uint64_t block_bytes) noexcept { size_bytes_ -= capacity_for(block_bytes); }

 private:
  struct Block {
    KernargMemory memory;
    Completion last_use{};
  };
  // Returns the smallest free block that is large enough.
  Block* find(uint64_t block_bytes) noexcept;

  const uint64_t limit_bytes_;
  uint64_t size_bytes_ = 0;
  std::vector<Block> blocks_;
};

}  // namespace uptempo::detail
