// Kernarg blocks that are larger than a slab: memory of its own for each, used again once the epoch that read it is complete.
//
// Only dispatches with such blocks come here: nothing is noted when packets are published or reclaimed, a block tells by its epoch whether it is free. Sizes are
// powers of two, so that kernels with blocks of like sizes share, and what has been allocated is kept, up to the limit. So a steady state does not
// allocate. All sizes have 64 bits.
//
// Thread safety: one owner. No function waits; allocating is the caller's, who need not hold a lock for it. Lifetime: outlives the queue whose packets read the blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/completion/timeline.hpp"
#include "engine/memory/buffer.hpp"

namespace uptempo::detail {

// Memory for kernel arguments of an agent, or, where there is none (queues without ROCr), the host's. Undefined until written. Move-only.
class KernargMemory {
 public:
  KernargMemory() = default;
  // Throws Error, or std::bad_alloc.
  KernargMemory(const Agent* agent, uint64_t size_bytes);

  std::byte* data() const noexcept { return host_ ? host_.get() : memory_.data(); }
  uint64_t size_bytes() const noexcept { return size_bytes_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const noexcept;
  };
  KernargBuffer memory_;
  std::unique_ptr<std::byte, Free> host_;
  uint64_t size_bytes_ = 0;
};

class SpillPool {
 public:
  // What is allocated for a block of that size.
  static uint64_t capacity_for(uint64_t block_bytes) noexcept;

  explicit SpillPool(uint64_t limit_bytes) noexcept : limit_bytes_(limit_bytes) {}

  uint64_t limit_bytes() const noexcept { return limit_bytes_; }
  // In use and kept, and being allocated.
  uint64_t size_bytes() const noexcept { return size_bytes_; }

  bool has_free(uint64_t block_bytes, Timeline& timeline) noexcept {
    return find(block_bytes, timeline) != nullptr;
  }
  // A block that is held until the epoch, which may be the open one, is complete. Null if none is free.
  std::byte* take(uint64_t block_bytes, uint64_t epoch, Timeline& timeline) noexcept;

  // Sets room aside for a block to be allocated. Blocks that are free make way where the limit asks for it: they are moved into `dropped`. False if
  // there is no room before some are complete.
  bool reserve(uint64_t block_bytes, Timeline& timeline, std::vector<KernargMemory>& dropped);
  // What it was set aside for.
  void add(KernargMemory memory);
  // It could not be allocated.
  void unreserve(uint64_t block_bytes) noexcept { size_bytes_ -= capacity_for(block_bytes); }

 private:
  struct Block {
    KernargMemory memory;
    uint64_t epoch = 0;  // that uses it or has used it
  };
  static bool is_free(const Block& block, Timeline& timeline) noexcept;
  // The smallest free one that is large enough.
  Block* find(uint64_t block_bytes, Timeline& timeline) noexcept;

  const uint64_t limit_bytes_;
  uint64_t size_bytes_ = 0;
  std::vector<Block> blocks_;
};

}  // namespace uptempo::detail
