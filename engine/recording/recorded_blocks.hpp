// RecordedBlocks: the kernarg blocks of a recording. It allocates them while the recording is made,
// and replaces a block that is patched while the device may still read it. Private to
// engine/recording.
//
// A replaced block is reused when every replay that used it has completed. Replays are numbered
// from 1; the owner reports the number up to which all have completed.
//
// Thread safety: thread-compatible.
// Cost: only expect(), take_first() and keep_spare() allocate.
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
  // Returns memory that lives as long as this object, 64-byte aligned.
  using Allocate = std::function<std::span<std::byte>(size_t bytes)>;
  explicit RecordedBlocks(Allocate allocate) : allocate_(std::move(allocate)) {}

  // Announces blocks of this size, a multiple of 64.
  void expect(uint32_t size);
  // Returns a block of an announced size for recording. Allocates as needed. Throws Error.
  std::byte* take_first(uint32_t size);
  // Ensures that `bytes` are left for replacement blocks. Throws Error.
  void keep_spare(size_t bytes);

  // Returns a replacement block of an announced size. Null if none is free yet.
  std::byte* take_spare(uint32_t size) noexcept;
  // Retires a block that replays up to `last_used_by` may read.
  void retire(std::byte* block, uint32_t size, uint64_t last_used_by) noexcept;
  // Reuses the blocks of replays up to `completed`, which have all completed.
  void recycle(uint64_t completed) noexcept;

  size_t retired() const noexcept { return retired_count_; }

 private:
  static constexpr size_t kLineBytes = 64, kSmallestChunkBytes = 4096;
  struct Retired {
    std::byte* block;
    uint32_t size;
    uint64_t last_used_by;
  };

  std::vector<std::byte*>& free_of(uint32_t size) noexcept { return free_[size / kLineBytes]; }
  void grow(size_t bytes);
  void reserve();
  std::byte* cut(uint32_t size) noexcept;

  Allocate allocate_;
  std::byte* next_ = nullptr;  // of the chunk that is being cut
  std::byte* end_ = nullptr;
  // maximum number of blocks of the smallest size; the lists have this capacity
  size_t blocks_ = 0;
  std::vector<std::vector<std::byte*>> free_;  // by size in 64-byte lines
  std::vector<Retired> retired_;               // ring buffer; oldest at retired_first_
  size_t retired_first_ = 0, retired_count_ = 0;
};

}  // namespace uptempo::detail
