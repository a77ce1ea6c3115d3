// DispatchShape: the common part of all dispatches of one kernel with one grid. It holds the packet
// without its kernarg address and the kernarg block without its explicit arguments. Private: the
// templates of BatchSubmitter, Stream and Launcher need it.
//
// Cost: programs launch the same kernels repeatedly. A dispatch with a known shape costs a
// comparison and a copy. Geometry is checked and hidden arguments are computed once per kernel and
// grid, and again (without allocation) when a kernel's grid changes between dispatches.
//
// Thread safety: thread-compatible.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include <uptempo/aql/packet.hpp>
#include <uptempo/program/argument_layout.hpp>
#include <uptempo/program/detail/argument_places.hpp>
#include <uptempo/program/grid.hpp>
#include <uptempo/program/program.hpp>
#include <uptempo/runtime/tried.hpp>

namespace uptempo::detail {

struct DispatchShape {
  // Kernel and grid in five words.
  struct Key {
    Key() = default;  // no kernel: identities begin at 1
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
    uint64_t kernel_number = 0, dimensions_lds = 0, items_xy = 0, items_z_workgroup_x = 0,
             workgroup_yz = 0;
  };

  // Part of the kernarg block without explicit arguments: hidden arguments and zero padding.
  struct Word {
    uint32_t offset;
    uint64_t value;
  };

  Key key;
  // its header is that of a packet without declarations, neither first nor last
  aql::Packet64 packet;
  // size of the kernarg block, in whole cache lines; 0: the kernel takes no arguments
  uint32_t block_bytes = 0;
  // Words of the block that explicit arguments do not fill completely, up to the end of the last
  // argument. Explicit arguments are stored after them.
  std::vector<Word> implicit;
  bool reads_packet = false;  // KernelInfo::reads_packet
  size_t implicit_words = 0;  // separate, because testing the vector's size takes two loads

  void put_implicit(std::byte* into) const noexcept {
    if (implicit_words == 0) [[likely]]
      return;
    for (const Word& word : implicit)
      std::memcpy(into + word.offset, &word.value, sizeof word.value);
  }
};

template <class... Args>
bool takes_block(const DispatchShape& shape) noexcept {
  return (sizeof...(Args) != 0 && !kAtRunTime<Args...>) || shape.block_bytes != 0;
}

// Writes one dispatch: its block (null if the kernel takes no arguments) and its packet, in
// ordinary memory or behind a gate. `like` is the shape's packet or a copy of it. Always inline: a
// call costs as much as the copy of a few arguments.
template <class... Args>
[[gnu::always_inline]] inline void write_dispatch(aql::Packet64& packet, std::byte* block,
                                                  const DispatchShape& shape,
                                                  const aql::Packet64& like,
                                                  const ArgumentPlaces<Args...>& places,
                                                  const Args&... args) noexcept {
  shape.put_implicit(block);
  uint32_t group_segment = like.group_segment_size();
  places.store(block, group_segment, args...);
  aql::store_behind_gate(packet, like, block, group_segment);
}

// Cache of shapes: the last one of each kernel, unless two kernels map to the same place.
class DispatchShapes {
 public:
  // `facts` must outlive this object. `flags` are those of a packet without declarations, neither
  // first nor last. `reads_packet`, unless null, is set once there is a shape of a kernel that
  // reads its packet.
  DispatchShapes(const QueueFacts& facts, aql::HeaderFlags flags,
                 bool* reads_packet = nullptr) noexcept
      : facts_(facts), flags_(flags), reads_packet_(reads_packet) {
    for (size_t i = 0; i < shapes_.size(); ++i) places_[i] = &shapes_[i];
  }

  DispatchShapes(const DispatchShapes&) = delete;
  DispatchShapes& operator=(const DispatchShapes&) = delete;

  // Throws Error if the kernel or the agent cannot run the geometry or the amount of group memory,
  // and for a kernel that is loaded for another agent.
  const DispatchShape& of(const KernelInfo& kernel, const Grid& grid) {
    DispatchShape& shape = *places_[kernel.identity.number() % places_.size()];
    const DispatchShape::Key key(kernel, grid);
    if (shape.key != key) [[unlikely]]
      make(shape, kernel, key.items_xy, key.items_z_workgroup_x, key.workgroup_yz,
           key.dimensions_lds);
    return shape;
  }
  // The same as a value.
  Tried<const DispatchShape*> try_of(const KernelInfo& kernel, const Grid& grid) {
    const DispatchShape& shape = *places_[kernel.identity.number() % places_.size()];
    if (shape.key == DispatchShape::Key(kernel, grid)) [[likely]]
      return &shape;
    return try_make(kernel, grid);
  }

 private:
  Tried<const DispatchShape*> try_make(const KernelInfo& kernel, const Grid& grid);
  // Takes the key in pieces, which fit in registers. A whole grid or key would be stored to memory
  // at every dispatch, for a call that is rarely made.
  void make(DispatchShape& shape, const KernelInfo& kernel, uint64_t items_xy,
            uint64_t items_z_workgroup_x, uint64_t workgroup_yz, uint64_t dimensions_lds);

  const QueueFacts& facts_;
  const aql::HeaderFlags flags_;
  bool* const reads_packet_;
  std::array<DispatchShape, 32>
      shapes_;  // identities are consecutive, so the kernels of one program get different places
  // pointers, because a multiplication takes longer than a load
  std::array<DispatchShape*, 32> places_;
  std::vector<uint64_t> block_;  // reused to avoid allocations
};

}  // namespace uptempo::detail
