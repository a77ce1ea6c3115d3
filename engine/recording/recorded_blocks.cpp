#include <uptempo/recording/recorded_blocks.hpp>

namespace uptempo::detail {

void RecordedBlocks::grow(size_t bytes) {
  const std::span<std::byte> chunk = allocate_(bytes);
  blocks_ += chunk.size() / kLineBytes;
  reserve();
  // last: if an allocation failed, no block of this chunk is given out
  next_ = chunk.data();
  end_ = next_ + chunk.size();
}

std::byte* RecordedBlocks::cut(uint32_t size) noexcept {
  if (static_cast<size_t>(end_ - next_) < size) return nullptr;
  return std::exchange(next_, next_ + size);
}

// Reserves a place for every possible block of each size, so that retire() never allocates.
void RecordedBlocks::reserve() {
  for (size_t lines = 1; lines < retired_.size(); ++lines) retired_[lines].reserve(blocks_ / lines);
}

void RecordedBlocks::expect(uint32_t size) {
  if (size / kLineBytes < retired_.size()) return;
  const size_t before = retired_.size();
  retired_.resize(size / kLineBytes + 1);
  try {
    reserve();
  } catch (...) {
    retired_.resize(before);  // the next call reserves
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

std::byte* RecordedBlocks::take_spare(uint32_t size, uint64_t completed) noexcept {
  Ring<Retired>& retired = retired_[size / kLineBytes];
  if (retired.empty() || retired.front().last_used_by > completed) return cut(size);
  std::byte* const block = retired.front().block;
  retired.pop_front();
  return block;
}

size_t RecordedBlocks::held(uint64_t completed) noexcept {
  size_t count = 0;
  for (Ring<Retired>& retired : retired_)
    for (size_t i = 0; i < retired.size(); ++i) count += retired[i].last_used_by > completed;
  return count;
}

}  // namespace uptempo::detail
