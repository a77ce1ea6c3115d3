// Grid: the shape of a dispatch: work-items, workgroup size and dynamic group memory.
//
//   Grid{16384}.by(256)            16,384 work-items in workgroups of 256
//   Grid{640, 480}.by(16, 16)      two dimensions
//   Grid::blocks(64).threads(256)  64 workgroups of 256 work-items, as HIP and CUDA count
//   grid.lds(1024)                 1 KiB of LDS for each workgroup: HIP's `extern __shared__`
//   Grid::blocks(dim).threads(dim) the same with HIP's dim3, or any type with members x, y and z
//
// Sizes count work-items, as in HSA; only blocks() counts workgroups. Without by(), a workgroup is
// one wavefront of 64 along x. A plain value; dispatches check it against the kernel and the agent.
//
// Partial workgroups: kernels of OpenCL C 2.0 and later may have one at the end of each dimension,
// in which get_local_size() is smaller. Kernels of HIP, and of older OpenCL C, may not: they are
// written for, and often compiled for, one size. A dispatch of such a kernel with another grid
// throws Error (KernelInfo::whole_workgroups). Use blocks(), and let the kernel test its index.
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

#include <uptempo/aql/packet.hpp>

namespace uptempo {

struct Grid;

namespace detail {

// Members that fit into 32 bits, as those of HIP's dim3.
template <class T>
concept HasThreeSizes = requires(const T& size) {
  uint32_t{size.x};
  uint32_t{size.y};
  uint32_t{size.z};
};

[[noreturn]] void refuse_blocks(uint64_t blocks_x, uint64_t blocks_y, uint64_t blocks_z,
                                const aql::Size3& threads);

// A number of workgroups, until threads() gives their size.
struct Blocks {
  // Throws Error if a dimension has more than 2^32 - 1 work-items, which HIP and CUDA refuse, too.
  constexpr Grid threads(uint32_t x, uint32_t y = 1, uint32_t z = 1) const;
  template <HasThreeSizes T>
  constexpr Grid threads(const T& size) const;

  uint64_t x, y, z;
};

}  // namespace detail

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
  static constexpr detail::Blocks blocks(uint64_t x, uint64_t y = 1, uint64_t z = 1) noexcept {
    return {x, y, z};
  }
  template <detail::HasThreeSizes T>
  static constexpr detail::Blocks blocks(const T& size) noexcept {
    return {size.x, size.y, size.z};
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

constexpr Grid detail::Blocks::threads(uint32_t size_x, uint32_t size_y, uint32_t size_z) const {
  const auto fits = [](uint64_t blocks, uint32_t size) {
    return blocks <= UINT32_MAX && blocks * size <= UINT32_MAX;
  };
  if (!fits(x, size_x) || !fits(y, size_y) || !fits(z, size_z)) [[unlikely]]
    refuse_blocks(x, y, z, {size_x, size_y, size_z});
  Grid grid{static_cast<uint32_t>(x * size_x), static_cast<uint32_t>(y * size_y),
            static_cast<uint32_t>(z * size_z)};
  grid.workgroup = {size_x, size_y, size_z};
  grid.dimensions = aql::dimensions_of(grid.items);
  return grid;
}

template <detail::HasThreeSizes T>
constexpr Grid detail::Blocks::threads(const T& size) const {
  return threads(size.x, size.y, size.z);
}

}  // namespace uptempo
