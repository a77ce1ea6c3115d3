#include "engine/dispatch/pools/spill_pool.hpp"

#include <bit>
#include <utility>

#include "engine/runtime/counters.hpp"

namespace uptempo::detail {

uint64_t SpillPool::capacity_for(uint64_t block_bytes) noexcept {
  return std::bit_ceil(block_bytes);
}

SpillPool::Block* SpillPool::find(uint64_t block_bytes) noexcept {
  Block* best = nullptr;
  for (Block& block : blocks_) {
    const uint64_t size = block.memory.size_bytes();
    if (size < block_bytes || (best != nullptr && best->memory.size_bytes() <= size)) continue;
    if (is_done(block.last_use)) best = &block;
  }
  return best;
}

std::byte* SpillPool::take(uint64_t block_bytes, const Completion& end) noexcept {
  Block* const block = find(block_bytes);
  if (block == nullptr) return nullptr;
  block->last_use = end;
  count(&CounterBlock::spills);
  count(&CounterBlock::spill_bytes, block_bytes);
  return block->memory.data();
}

bool SpillPool::reserve(uint64_t block_bytes, std::vector<KernargMemory>& dropped) {
  const uint64_t capacity = capacity_for(block_bytes);
  if (capacity > limit_bytes_) return false;
  for (size_t i = 0; i < blocks_.size() && size_bytes_ > limit_bytes_ - capacity;) {
    if (!is_done(blocks_[i].last_use)) {
      ++i;
      continue;
    }
    const uint64_t size = blocks_[i].memory.size_bytes();
    dropped.push_back(std::move(blocks_[i].memory));
    size_bytes_ -= size;
    std::swap(blocks_[i], blocks_.back());
    blocks_.pop_back();
  }
  if (size_bytes_ > limit_bytes_ - capacity) return false;
  size_bytes_ += capacity;
  return true;
}

void SpillPool::add(KernargMemory memory) {
  try {
    if (blocks_.size() == blocks_.capacity()) blocks_.reserve(2 * blocks_.size() + 1);
  } catch (...) {
    size_bytes_ -= memory.size_bytes();
    throw;
  }
  blocks_.push_back({std::move(memory)});
}

}  // namespace uptempo::detail
