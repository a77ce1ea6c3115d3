// KernargCursor: the kernarg slabs that a batch fills, block after block. Private: the templates of
// BatchSubmitter need it. kernarg_pool.hpp describes slabs and blocks.
//
// Thread safety: thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>

namespace uptempo {

// A linked run of slabs. Empty if first == none.
struct KernargSlabs {
  static constexpr uint32_t kNone = UINT32_MAX;

  uint32_t first = kNone;
  uint32_t last = kNone;
};

struct KernargCursor {
  KernargSlabs slabs;
  std::byte* next = nullptr;  // next block in slabs.last; `end` is the end of that slab
  std::byte* end = nullptr;
  uint32_t blocks = 0;  // taken since the last publication

  // True if take() may be called for one block of this size.
  bool fits(uint64_t block_size) const noexcept {
    return reinterpret_cast<uintptr_t>(next) + block_size <= reinterpret_cast<uintptr_t>(end);
  }
  size_t room() const noexcept { return static_cast<size_t>(end - next); }
  // Takes `count` consecutive blocks.
  std::byte* take(uint64_t block_size, uint32_t count = 1) noexcept {
    std::byte* const block = next;
    next += block_size * count;
    blocks += count;
    return block;
  }
};

}  // namespace uptempo
