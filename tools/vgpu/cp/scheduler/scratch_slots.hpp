// The wave slots of a queue's scratch that resident workgroups use.
//
// Thread safety: none; the scheduler's lock guards it. Lifetime: the queue owns it, and it outlives
// the queue's dispatches.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace uptempo::vgpu {

class ScratchSlots {
 public:
  // Returns the first of `count` consecutive free slots among `slots`, or nullopt.
  std::optional<uint32_t> take(uint32_t slots, uint32_t count) {
    used_.resize(std::max<size_t>(used_.size(), slots));
    for (uint32_t first = 0; first + count <= slots; ++first) {
      uint32_t length = 0;
      while (length < count && !used_[first + length]) ++length;
      if (length == count) {
        std::fill_n(used_.begin() + first, count, true);
        return first;
      }
      first += length;
    }
    return std::nullopt;
  }

  void give_back(uint32_t first, uint32_t count) {
    std::fill_n(used_.begin() + first, count, false);
  }

 private:
  std::vector<bool> used_;
};

}  // namespace uptempo::vgpu
