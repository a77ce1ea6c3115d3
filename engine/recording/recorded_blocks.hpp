// The kernarg blocks of a recording: taken while it is made, replaced when one that the device may still read is patched.
// Private to engine/dispatch.
//
// A block that was replaced is used again when every replay that used it has completed. Replays are numbered from 1; the owner tells up to which
// one all have completed.
//
// Thread safety: one owner. Only expect(), take_first() and keep_spare() allocate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/memory/buffer.hpp"
#include "engine/runtime/agent.hpp"

namespace uptempo::detail {

class RecordedBlocks {
 public:
  // Memory that lives as long as this, 64-byte aligned.
  using Allocate = std::function<std::span<std::byte>(size_t bytes)>;
  explicit RecordedBlocks(Allocate allocate) : allocate_(std::move(allocate)) {}

  // There will be blocks of this size, a multiple of 64.
  void expect(uint32_t size);
  // A block while the recording is made, of an expected size. Allocates as needed. Throws Error.
  std::byte* take_first(uint32_t size);
  // Sees to it that `bytes` are left for blocks to replace others with. Throws Error.
  void keep_spare(size_t bytes);

  // A block of an expected size to replace another one with; null if there is none yet.
  std::byte* take_spare(uint32_t size) noexcept;
  // Replays up to `last_used_by` may read this block.
  void retire(std::byte* block, uint32_t size, uint64_t last_used_by) noexcept;
  // All replays up to this one have completed.
  void recycle(uint64_t completed) noexcept;

  size_t retired() const noexcept { return retired_count_; }

 private:
  static constexpr size_t line = 64, smallest_chunk = 4096;
  struct Retired {
    std::byte* block;
    uint32_t size;
    uint64_t last_used_by;
  };

  std::vector<std::byte*>& free_of(uint32_t size) noexcept { return free_[size / line]; }
  void grow(size_t bytes);
  void reserve();
  std::byte* cut(uint32_t size) noexcept;

  Allocate allocate_;
  std::byte* next_ = nullptr;  // of the chunk that is being cut
  std::byte* end_ = nullptr;
  size_t blocks_ = 0;                          // at most, of the smallest size: what the lists are made for
  std::vector<std::vector<std::byte*>> free_;  // by size in lines
  std::vector<Retired> retired_;               // a ring, oldest at retired_first_
  size_t retired_first_ = 0, retired_count_ = 0;
};

}  // namespace uptempo::detail
