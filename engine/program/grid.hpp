// The shape of a dispatch: how many work-items, in workgroups of what size, with how much dynamic
// group memory.
//
//   Grid{16384}.by(256)            16,384 work-items in workgroups of 256
//   Grid{640, 480}.by(16, 16)      two dimensions
//   Grid{16384}.by(256).lds(1024)  1 KiB of LDS for each workgroup: HIP's `extern __shared__`
//
// Sizes count work-items, as in HSA, not workgroups; the last workgroup of a dimension may be partial. Without by() a workgroup
// is one wavefront of 64 along x. Plain value; checked where it meets a kernel and a device.
//
// Group memory (LDS) of a workgroup, from offset 0 up:
//   1. the kernel's static part, KernelInfo::group_segment_size. It ends at the alignment of the
//      kernel's dynamic array: the compiler rounds it up (LLVM, AMDGPUMachineFunction.cpp,
//      setDynLDSAlign) and has this offset in the code as the array's address.
//   2. lds() bytes, not rounded: ROCm's CLR puts the sum of both in the packet (rocvirtual.cpp,
//      group_segment_size).
//   3. the arrays of LocalBytes arguments, in order, each aligned to 16 bytes. Their offsets are
//      arguments, so they can move; the address of 2 cannot. CLR has no such combination: HIP has
//      no such arguments, and OpenCL no lds().
// The sum may be all that the agent has (KernelInfo::max_group_segment_size). One byte more is an
// Error where the dispatch is made: on hardware it would stop the queue.
#pragma once

#include <algorithm>
#include <cstdint>

#include "aql/packet.hpp"

namespace uptempo {

struct Grid {
  aql::Size3 items;
  aql::Size3 workgroup;
  uint16_t dimensions = 1;
  uint32_t lds_bytes = 0;  // dynamic, for each workgroup

  constexpr explicit Grid(uint32_t x) noexcept
      : items{x, 1, 1}, workgroup{std::min(x, 64u), 1, 1}, dimensions(1) {}
  constexpr Grid(uint32_t x, uint32_t y) noexcept
      : items{x, y, 1}, workgroup{std::min(x, 64u), 1, 1}, dimensions(2) {}
  constexpr Grid(uint32_t x, uint32_t y, uint32_t z) noexcept
      : items{x, y, z}, workgroup{std::min(x, 64u), 1, 1}, dimensions(3) {}

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

}  // namespace uptempo
