// Grid: the shape of a dispatch: work-items, workgroup size and dynamic group memory.
//
//   Grid{16384}.by(256)            16,384 work-items in workgroups of 256
//   Grid{640, 480}.by(16, 16)      two dimensions
//   Grid{16384}.by(256).lds(1024)  1 KiB of LDS for each workgroup: HIP's `extern __shared__`
//   Grid::blocks(64).threads(256)  64 workgroups of 256 work-items, as HIP and CUDA count
//   Grid::blocks(dim).threads(dim) the same with HIP's dim3, or any type with members x, y and z
//
// Sizes count work-items, as in HSA, not workgroups, except in blocks(). The last workgroup of a dimension may be
// partial. Without by(), a workgroup is one wavefront of 64 along x. A plain value; dispatches
// check it against the kernel and the agent.
//
// Group memory (LDS) of a workgroup, from offset 0:
// 1. The kernel's static part, KernelInfo::group_segment_size. Its end has the alignment of the
//    kernel's dynamic array: the compiler rounds it up (LLVM, AMDGPUMachineFunction.cpp,
//    setDynLDSAlign) and uses this offset in the code as the array's address.
// 2. lds() bytes, not rounded: ROCm's CLR writes the sum of 1 and 2 to the packet (rocvirtual.cpp,
//    group_segment_size).
// 3. The arrays of LocalBytes arguments, in order, each aligned to 16 bytes. Their offsets are
//    arguments and therefore variable; the address of 2 is not. CLR has no such combination: HIP
//    has no such arguments, and OpenCL no lds().
// The sum may reach the agent's limit (KernelInfo::max_group_segment_size). A dispatch beyond it
// throws Error, because it would stop the queue on hardware.
#pragma once

#include <algorithm>
#include <cstdint>

#include "aql/packet.hpp"

namespace uptempo {

struct Grid;

namespace detail {

template <class T>
concept HasThreeSizes = requires(const T& size) {
  static_cast<uint32_t>(size.x);
  static_cast<uint32_t>(size.y);
  static_cast<uint32_t>(size.z);
};
template <HasThreeSizes T>
constexpr aql::Size3 size3(const T& size) noexcept {
  return {static_cast<uint32_t>(size.x), static_cast<uint32_t>(size.y),
          static_cast<uint32_t>(size.z)};
}

[[noreturn]] void refuse_blocks(const aql::Size3& blocks, const aql::Size3& threads);

}  // namespace detail

// A number of workgroups, until threads() gives their size.
class Blocks {
 public:
  // Throws Error if a dimension has more than 2^32 - 1 work-items, which HIP and CUDA refuse, too.
  constexpr Grid threads(uint32_t x, uint32_t y = 1, uint32_t z = 1) const;
  template <detail::HasThreeSizes T>
  constexpr Grid threads(const T& size) const;

 private:
  friend struct Grid;
  constexpr explicit Blocks(const aql::Size3& blocks) noexcept : blocks_(blocks) {}
  aql::Size3 blocks_;
};

struct Grid {
  aql::Size3 items;
  aql::Size3 workgroup;
  uint16_t dimensions = 1;
  uint32_t lds_bytes = 0;  // dynamic, per workgroup

  constexpr explicit Grid(uint32_t x) noexcept
      : items{x, 1, 1}, workgroup{std::min(x, 64u), 1, 1}, dimensions(1) {}
  constexpr Grid(uint32_t x, uint32_t y) noexcept
      : items{x, y, 1}, workgroup{std::min(x, 64u), 1, 1}, dimensions(2) {}
  constexpr Grid(uint32_t x, uint32_t y, uint32_t z) noexcept
      : items{x, y, z}, workgroup{std::min(x, 64u), 1, 1}, dimensions(3) {}

  // The grid has as many dimensions as sizes need that are not 1.
  static constexpr Blocks blocks(uint32_t x, uint32_t y = 1, uint32_t z = 1) noexcept {
    return Blocks({x, y, z});
  }
  template <detail::HasThreeSizes T>
  static constexpr Blocks blocks(const T& size) noexcept {
    return Blocks(detail::size3(size));
  }

  constexpr Grid by(uint32_t x, uint32_t y = 1, uint32_t z = 1) const noexcept {
    Grid grid = *this;
    grid.workgroup = {x, y, z};
    return grid;
  }
  constexpr Grid lds(uint32_t bytes) const noexcept {
    Grid grid = *this;
    grid.lds_bytes = bytes;
    return grid;
  }
  friend constexpr bool operator==(const Grid&, const Grid&) = default;
};

constexpr Grid Blocks::threads(uint32_t x, uint32_t y, uint32_t z) const {
  const uint64_t items_x = uint64_t{blocks_.x} * x, items_y = uint64_t{blocks_.y} * y,
                 items_z = uint64_t{blocks_.z} * z;
  if ((items_x | items_y | items_z) > UINT32_MAX) [[unlikely]]
    detail::refuse_blocks(blocks_, {x, y, z});
  Grid grid{static_cast<uint32_t>(items_x), static_cast<uint32_t>(items_y),
            static_cast<uint32_t>(items_z)};
  grid.workgroup = {x, y, z};
  grid.dimensions = aql::dimensions_of(grid.items);
  return grid;
}

template <detail::HasThreeSizes T>
constexpr Grid Blocks::threads(const T& size) const {
  const aql::Size3 threads = detail::size3(size);
  return this->threads(threads.x, threads.y, threads.z);
}

}  // namespace uptempo
