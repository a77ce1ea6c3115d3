// What all dispatches of one kernel with one grid have in common: the packet but for its kernarg address, and the kernarg block but for its explicit
// arguments. Private to engine/dispatch.
//
// Programs launch the same kernels again and again. A dispatch whose shape is at hand is a comparison and a copy; geometry is checked and hidden
// arguments are worked out once, or again (without allocation) when a kernel's grid changes from one dispatch to the next.
//
// Thread safety: one owner.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "aql/packet.hpp"
#include "engine/dispatch/kernarg_pool.hpp"
#include "engine/program/geometry.hpp"
#include "engine/program/program.hpp"

namespace uptempo::detail {

struct DispatchShape {
  // What a kernarg block holds besides the explicit arguments: hidden ones, and zeros between.
  struct Word {
    uint32_t offset;
    uint64_t value;
  };

  uint64_t kernel = 0;  // its identity; 0: none yet
  Grid grid{0};
  aql::Packet64 packet;
  uint32_t block_bytes = 0;  // 0: the kernel takes no arguments
  // Words of the block that explicit arguments do not fill; these are stored afterwards.
  std::vector<Word> implicit;

  bool is_of(const KernelInfo& info, const Grid& of) const noexcept {
    return kernel == info.identity.number() && grid == of;
  }
  void put_implicit(std::byte* into) const noexcept {
    for (const Word& word : implicit) std::memcpy(into + word.offset, &word.value, sizeof word.value);
  }
};

// The shapes at hand: of each kernel the last one, as far as kernels do not share a place.
class DispatchShapes {
 public:
  // `flags` and `facts` are the same in every call. Throws Error for a geometry that kernel or agent cannot run.
  const DispatchShape& of(const KernelInfo& kernel, const Grid& grid, const QueueFacts& facts,
                          aql::HeaderFlags flags) {
    DispatchShape& shape = shapes_[kernel.identity.number() % shapes_.size()];
    if (!shape.is_of(kernel, grid)) make(shape, kernel, grid, facts, flags);
    return shape;
  }

 private:
  void make(DispatchShape& shape, const KernelInfo& kernel, const Grid& grid, const QueueFacts& facts,
            aql::HeaderFlags flags);

  std::array<DispatchShape, 32>
      shapes_;                   // identities are given out in order, so the kernels of a program lie apart
  std::vector<uint64_t> block_;  // kept for its memory
};

}  // namespace uptempo::detail
