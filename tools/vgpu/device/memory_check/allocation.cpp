#include "device/memory_check/allocation.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

namespace uptempo::vgpu::memory_check {
namespace {

constexpr uint64_t kWordBits = 64;
constexpr size_t kSmallestBlock = 64;             // bytes of bits
constexpr size_t kChunkBytes = size_t{1} << 20;   // for blocks up to kLargeBlock
constexpr size_t kLargeBlock = size_t{64} << 10;  // from here on a mapping of its own

// Zeros, which take memory when they are first written.
void* map_zeros(size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return memory;
}

// Calls visit(word index, mask) for each word of the range; stops when it returns false.
template <typename Visit>
bool for_words(uint64_t offset, uint64_t bytes, Visit visit) noexcept {
  while (bytes != 0) {
    const uint64_t bit = offset % kWordBits, count = std::min(bytes, kWordBits - bit);
    const uint64_t mask = (count == kWordBits ? ~uint64_t{0} : (uint64_t{1} << count) - 1) << bit;
    if (!visit(offset / kWordBits, mask)) return false;
    offset += count;
    bytes -= count;
  }
  return true;
}

// At most 64 bits from `offset` on, the first one lowest.
uint64_t bits_at(const std::atomic<uint64_t>* words, uint64_t offset, uint64_t count) noexcept {
  const uint64_t bit = offset % kWordBits;
  uint64_t bits = words[offset / kWordBits].load(std::memory_order_relaxed) >> bit;
  if (bit + count > kWordBits)
    bits |= words[offset / kWordBits + 1].load(std::memory_order_relaxed) << (kWordBits - bit);
  return count == kWordBits ? bits : bits & ((uint64_t{1} << count) - 1);
}

size_t class_of(uint64_t tracked_bytes) noexcept {
  const uint64_t block = std::max<uint64_t>((tracked_bytes + 7) / 8, kSmallestBlock);
  return static_cast<size_t>(std::countr_zero(std::bit_ceil(block) / kSmallestBlock));
}
constexpr size_t bytes_of_class(size_t size_class) noexcept { return kSmallestBlock << size_class; }

}  // namespace

bool all_initialised(const std::atomic<uint64_t>* words, uint64_t offset, uint64_t bytes) noexcept {
  return for_words(offset, bytes, [&](uint64_t word, uint64_t mask) {
    return (words[word].load(std::memory_order_relaxed) & mask) == mask;
  });
}

bool any_initialised(const std::atomic<uint64_t>* words, uint64_t offset, uint64_t bytes) noexcept {
  return !for_words(offset, bytes, [&](uint64_t word, uint64_t mask) {
    return (words[word].load(std::memory_order_relaxed) & mask) == 0;
  });
}

void mark_initialised(std::atomic<uint64_t>* words, uint64_t offset, uint64_t bytes) noexcept {
  for_words(offset, bytes, [&](uint64_t word, uint64_t mask) {
    // Most stores are to bytes that were stored before.
    if ((words[word].load(std::memory_order_relaxed) & mask) != mask)
      words[word].fetch_or(mask, std::memory_order_relaxed);
    return true;
  });
}

void copy_initialised(std::atomic<uint64_t>* to, uint64_t to_offset,
                      const std::atomic<uint64_t>* from, uint64_t from_offset,
                      uint64_t bytes) noexcept {
  if (from == nullptr) return mark_initialised(to, to_offset, bytes);
  for_words(to_offset, bytes, [&](uint64_t word, uint64_t mask) {
    const auto first = static_cast<uint64_t>(std::countr_zero(mask));
    const auto count = static_cast<uint64_t>(std::popcount(mask));
    const uint64_t source = from_offset + (word * kWordBits + first - to_offset);
    const uint64_t bits = bits_at(from, source, count) << first;
    to[word].fetch_or(bits, std::memory_order_relaxed);
    to[word].fetch_and(bits | ~mask, std::memory_order_relaxed);
    return true;
  });
}

AllocationMap::AllocationMap()
    : root_(static_cast<std::atomic<Leaf*>*>(
          map_zeros(kPages / kLeafPages * sizeof(std::atomic<Leaf*>)))) {}

AllocationMap::~AllocationMap() {
  for (uint64_t leaf = 0; leaf < kPages / kLeafPages; ++leaf)
    if (Leaf* const memory = root_[leaf].load(std::memory_order_relaxed))
      munmap(static_cast<void*>(memory), sizeof(Leaf));
  munmap(static_cast<void*>(root_), kPages / kLeafPages * sizeof(std::atomic<Leaf*>));
  for (const auto& [memory, bytes] : mapped_) munmap(memory, bytes);
}

template <typename Visit>
void AllocationMap::for_slots(GpuAddress begin, uint64_t bytes, Visit visit) noexcept {
  for (uint64_t page = begin / kPageBytes; page < (begin + bytes) / kPageBytes && page < kPages;
       ++page)
    if (Leaf* const leaf = root_[page / kLeafPages].load(std::memory_order_relaxed))
      visit((*leaf)[page % kLeafPages]);
}

void AllocationMap::assign(GpuAddress begin, uint64_t bytes, Allocation* allocation) {
  for (uint64_t leaf = begin / kPageBytes / kLeafPages;
       leaf <= (begin + bytes - 1) / kPageBytes / kLeafPages && leaf < kPages / kLeafPages; ++leaf)
    if (root_[leaf].load(std::memory_order_relaxed) == nullptr)
      root_[leaf].store(static_cast<Leaf*>(map_zeros(sizeof(Leaf))), std::memory_order_release);
  for_slots(begin, bytes, [&](std::atomic<Allocation*>& slot) {
    slot.store(allocation, std::memory_order_release);
  });
}

void AllocationMap::exchange(GpuAddress begin, uint64_t bytes, const Allocation* before,
                             Allocation* after) noexcept {
  for_slots(begin, bytes, [&](std::atomic<Allocation*>& slot) {
    if (slot.load(std::memory_order_relaxed) == before)
      slot.store(after, std::memory_order_release);
  });
}

std::atomic<uint64_t>* AllocationMap::take_words(size_t size_class) {
  std::vector<std::atomic<uint64_t>*>& unused = free_words_.at(size_class);
  const size_t bytes = bytes_of_class(size_class);
  if (!unused.empty()) {
    std::atomic<uint64_t>* const words = unused.back();
    unused.pop_back();
    // drop_bits() has emptied larger ones.
    for (size_t word = 0; bytes < kLargeBlock && word < bytes / sizeof(uint64_t); ++word)
      words[word].store(0, std::memory_order_relaxed);
    return words;
  }
  if (bytes >= kLargeBlock) {
    mapped_.reserve(mapped_.size() + 1);
    void* const memory = map_zeros(bytes);
    mapped_.emplace_back(memory, bytes);
    return static_cast<std::atomic<uint64_t>*>(memory);
  }
  if (chunk_left_ < bytes) {
    mapped_.reserve(mapped_.size() + 1);
    chunk_ = static_cast<std::byte*>(map_zeros(kChunkBytes));
    chunk_left_ = kChunkBytes;
    mapped_.emplace_back(chunk_, kChunkBytes);
  }
  auto* const words = reinterpret_cast<std::atomic<uint64_t>*>(chunk_);
  chunk_ += bytes;
  chunk_left_ -= bytes;
  return words;
}

Allocation& AllocationMap::make(uint64_t tracked_bytes) {
  if (unused_.empty()) {
    records_.push_back(std::make_unique<Allocation>());
    unused_.push_back(records_.back().get());
    // So that recycle() need not allocate.
    unused_.reserve(records_.size());
  }
  std::atomic<uint64_t>* const words =
      tracked_bytes == 0 ? nullptr : take_words(class_of(tracked_bytes));
  Allocation& allocation = *unused_.back();
  unused_.pop_back();
  allocation.initialised.store(words, std::memory_order_relaxed);
  return allocation;
}

void AllocationMap::drop_bits(Allocation& allocation) noexcept {
  std::atomic<uint64_t>* const words =
      allocation.initialised.exchange(nullptr, std::memory_order_relaxed);
  if (words == nullptr) return;
  const size_t size_class = class_of(allocation.bytes.load(std::memory_order_relaxed));
  const size_t bytes = bytes_of_class(size_class);
  try {
    if (bytes < kLargeBlock || madvise(static_cast<void*>(words), bytes, MADV_DONTNEED) == 0)
      free_words_.at(size_class).push_back(words);
  } catch (const std::bad_alloc&) {
    // The block is not used again.
  }
}

void AllocationMap::recycle(Allocation& allocation) noexcept {
  allocation.accessible.store(0, std::memory_order_relaxed);
  drop_bits(allocation);
  unused_.push_back(&allocation);
}

}  // namespace uptempo::vgpu::memory_check
