// RecordedBlocks: the kernarg blocks of a recording. It allocates them while the recording is made,
// and replaces a block that is patched while the device may still read it. Private to
// engine/recording.
//
// A replaced block is reused when every replay that used it has completed. Replays are numbered
// from 1; the owner knows the number up to which all have completed.
//
// Thread safety: thread-compatible.
// Cost: only expect(), take_first() and keep_spare() allocate.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

namespace uptempo::detail {

// First in, first out, with a number of places that only reserve() changes.
template <class T>
class Ring {
 public:
  size_t size() const noexcept { return count_; }
  bool empty() const noexcept { return count_ == 0; }
  bool full() const noexcept { return count_ == places_.size(); }
  // A power of two, because a division takes longer than the rest.
  T& operator[](size_t i) noexcept { return places_[(first_ + i) & (places_.size() - 1)]; }
  T& front() noexcept { return (*this)[0]; }
  T& back() noexcept { return (*this)[count_ - 1]; }
  void push_back(const T& value) noexcept { (*this)[count_++] = value; }  // requires a free place
  void pop_back() noexcept { --count_; }
  void pop_front() noexcept {
    first_ = (first_ + 1) & (places_.size() - 1);
    --count_;
  }
  // Strong guarantee.
  void reserve(size_t places) {
    if (places <= places_.size()) return;
    std::vector<T> all(std::bit_ceil(places));
    for (size_t i = 0; i < count_; ++i) all[i] = (*this)[i];
    places_ = std::move(all);
    first_ = 0;
  }

 private:
  std::vector<T> places_;
  size_t first_ = 0, count_ = 0;
};

class RecordedBlocks {
 public:
  // Returns memory that lives as long as this object, 64-byte aligned.
  using Allocate = std::function<std::span<std::byte>(size_t bytes)>;
  explicit RecordedBlocks(Allocate allocate) : allocate_(std::move(allocate)) {}

  // Announces blocks of this size, a multiple of 64.
  void expect(uint32_t size);
  // Returns a block of an announced size for recording. Allocates as needed. Throws Error.
  std::byte* take_first(uint32_t size);
  // Ensures that `bytes` are left for replacement blocks. Throws Error.
  void keep_spare(size_t bytes);

  // Returns a replacement block of an announced size. Null if none is free while replays after
  // `completed` run.
  std::byte* take_spare(uint32_t size, uint64_t completed) noexcept;
  // Retires a block that replays up to `last_used_by` may read.
  void retire(std::byte* block, uint32_t size, uint64_t last_used_by) noexcept {
    retired_[size / kLineBytes].push_back({block, last_used_by});
  }
  // Number of retired blocks that replays after `completed` may read.
  size_t held(uint64_t completed) noexcept;

 private:
  static constexpr size_t kLineBytes = 64, kSmallestChunkBytes = 4096;
  struct Retired {
    std::byte* block;
    uint64_t last_used_by;
  };

  void grow(size_t bytes);
  void reserve();
  std::byte* cut(uint32_t size) noexcept;

  Allocate allocate_;
  std::byte* next_ = nullptr;  // of the chunk that is being cut
  std::byte* end_ = nullptr;
  size_t blocks_ = 0;                   // maximum number of blocks of the smallest size
  std::vector<Ring<Retired>> retired_;  // by size in lines; each has places for all blocks
};

}  // namespace uptempo::detail
