// What all dispatches of one kernel with one grid have in common: the packet but for its kernarg address, and the kernarg block but for its explicit
// arguments. Private to engine/dispatch and engine/stream.
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
#include "engine/dispatch/pools/kernarg_pool.hpp"
#include "engine/program/arguments.hpp"
#include "engine/program/grid.hpp"
#include "engine/program/program.hpp"

namespace uptempo::detail {

struct DispatchShape {
  // Kernel and grid in few words.
  struct Key {
    Key() = default;  // of no kernel: identities begin at 1
    Key(const KernelInfo& kernel, const Grid& grid) noexcept
        : kernel_number(kernel.identity.number()),
          dimensions_lds(pair(grid.dimensions, grid.lds_bytes)),
          items_xy(pair(grid.items.x, grid.items.y)),
          items_z_workgroup_x(pair(grid.items.z, grid.workgroup.x)),
          workgroup_yz(pair(grid.workgroup.y, grid.workgroup.z)) {}
    friend bool operator==(const Key&, const Key&) = default;

    static constexpr uint64_t pair(uint32_t low, uint32_t high) noexcept {
      return low | uint64_t{high} << 32;
    }
    uint64_t kernel_number = 0, dimensions_lds = 0, items_xy = 0, items_z_workgroup_x = 0, workgroup_yz = 0;
  };

  // What a kernarg block holds besides the explicit arguments: hidden ones, and zeros between.
  struct Word {
    uint32_t offset;
    uint64_t value;
  };

  Key key;
  aql::Packet64 packet;  // its header is that of a packet in the midst of a batch, of which nothing is said
  uint32_t block_bytes = 0;  // of its kernarg block, whole lines; 0: the kernel takes no arguments
  // Words of the block that explicit arguments do not fill; these are stored afterwards.
  std::vector<Word> implicit;
  size_t implicit_words = 0;  // a test of the vector takes two loads

  void put_implicit(std::byte* into) const noexcept {
    if (implicit_words == 0) [[likely]]
      return;
    for (const Word& word : implicit) std::memcpy(into + word.offset, &word.value, sizeof word.value);
  }
};

// Where a kernarg block has the explicit arguments.
template <class... Args>
std::array<uint32_t, sizeof...(Args)> offsets(const KernelInfo& kernel) noexcept {
  std::array<uint32_t, sizeof...(Args)> offsets;
  for (size_t i = 0; i < sizeof...(Args); ++i) offsets[i] = kernel.arguments.offset(i);
  return offsets;
}

template <class... Args>
bool takes_block(const DispatchShape& shape) noexcept {
  return sizeof...(Args) != 0 || shape.block_bytes != 0;
}

// One dispatch: its block, which is null where the kernel takes no arguments, and its packet, in ordinary memory or behind a gate. `like` is the shape's, or a copy of it.
template <class... Args>
void write_dispatch(aql::Packet64& packet, std::byte* block, const DispatchShape& shape,
                    const aql::Packet64& like, const std::array<uint32_t, sizeof...(Args)>& offsets,
                    const Args&... args) noexcept {
  shape.put_implicit(block);
  uint32_t group_segment = like.group_segment_size();
  [[maybe_unused]] size_t i = 0;
  (store_argument(block, offsets[i++], args, group_segment), ...);
  aql::store_behind_gate(packet, like, block, group_segment);
}

// The shapes at hand: of each kernel the last one, as far as kernels do not share a place.
class DispatchShapes {
 public:
  // `facts` outlive this. `flags` are those of a packet in the midst of a batch, of which nothing is said.
  DispatchShapes(const QueueFacts& facts, aql::HeaderFlags flags) noexcept : facts_(facts), flags_(flags) {
    for (size_t i = 0; i < shapes_.size(); ++i) places_[i] = &shapes_[i];
  }

  DispatchShapes(const DispatchShapes&) = delete;
  DispatchShapes& operator=(const DispatchShapes&) = delete;

  // Throws Error for a geometry, or an amount of group memory, that kernel or agent cannot run.
  const DispatchShape& of(const KernelInfo& kernel, const Grid& grid) {
    DispatchShape& shape = *places_[kernel.identity.number() % places_.size()];
    const DispatchShape::Key key(kernel, grid);
    if (shape.key != key) [[unlikely]]
      make(shape, kernel, key.items_xy, key.items_z_workgroup_x, key.workgroup_yz, key.dimensions_lds);
    return shape;
  }

 private:
  // The key in pieces, for registers: a whole grid or key would have to lie in memory at every dispatch, for a call that is hardly ever made.
  void make(DispatchShape& shape, const KernelInfo& kernel, uint64_t items_xy, uint64_t items_z_workgroup_x,
            uint64_t workgroup_yz, uint64_t dimensions_lds);

  const QueueFacts& facts_;
  const aql::HeaderFlags flags_;
  std::array<DispatchShape, 32>
      shapes_;  // identities are given out in order, so the kernels of a program lie apart
  std::array<DispatchShape*, 32> places_;  // to each, because a product takes longer than a load
  std::vector<uint64_t> block_;            // kept for its memory
};

}  // namespace uptempo::detail
