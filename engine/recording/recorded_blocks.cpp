#include "engine/recording/recorded_blocks.hpp"

#include <algorithm>

namespace uptempo::detail {

void RecordedBlocks::grow(size_t bytes) {
  const std::span<std::byte> chunk = allocate_(bytes);
  blocks_ += chunk.size() / kLineBytes;
  std::vector<Retired> ring(blocks_);
  for (size_t i = 0; i < retired_count_; ++i)
    ring[i] = retired_[(retired_first_ + i) % retired_.size()];
  retired_ = std::move(ring);
  retired_first_ = 0;
  reserve();
  // last: if an allocation failed, no block of this chunk is given out
  next_ = chunk.data();
  end_ = next_ + chunk.size();
}

std::byte* RecordedBlocks::cut(uint32_t size) noexcept {
  if (static_cast<size_t>(end_ - next_) < size) return nullptr;
  std::byte* const block = next_;
  next_ += size;
  return block;
}

// Reserves a place for every possible block of each size, so that returning a block never
// allocates.
void RecordedBlocks::reserve() {
  for (size_t lines = 1; lines < free_.size(); ++lines) free_[lines].reserve(blocks_ / lines);
}

void RecordedBlocks::expect(uint32_t size) {
  if (size / kLineBytes < free_.size()) return;
  const size_t before = free_.size();
  free_.resize(size / kLineBytes + 1);
  try {
    reserve();
  } catch (...) {
    free_.resize(before);  // the next call reserves
    throw;
  }
}

std::byte* RecordedBlocks::take_first(uint32_t size) {
  if (std::byte* const block = cut(size)) return block;
  // doubles: few allocations for many nodes
  grow(std::max({size_t{size}, kSmallestChunkBytes, blocks_ * kLineBytes}));
  return cut(size);
}

void RecordedBlocks::keep_spare(size_t bytes) {
  // doubles, as above
  if (static_cast<size_t>(end_ - next_) < bytes) grow(std::max(bytes, blocks_ * kLineBytes));
}

std::byte* RecordedBlocks::take_spare(uint32_t size) noexcept {
  std::vector<std::byte*>& free = free_of(size);
  if (free.empty()) return cut(size);
  std::byte* const block = free.back();
  free.pop_back();
  return block;
}

void RecordedBlocks::retire(std::byte* block, uint32_t size, uint64_t last_used_by) noexcept {
  retired_[(retired_first_ + retired_count_) % retired_.size()] = {block, size, last_used_by};
  ++retired_count_;
}

void RecordedBlocks::recycle(uint64_t completed) noexcept {
  while (retired_count_ != 0 && retired_[retired_first_].last_used_by <= completed) {
    const Retired& oldest = retired_[retired_first_];
    free_of(oldest.size).push_back(oldest.block);
    retired_first_ = (retired_first_ + 1) % retired_.size();
    --retired_count_;
  }
}

}  // namespace uptempo::detail
