// The shape of a dispatch: how many work-items, in workgroups of what size.
//
//   Grid{16384}.by(256)            16,384 work-items in workgroups of 256
//   Grid{640, 480}.by(16, 16)      two dimensions
//
// Sizes count work-items, as in HSA, not workgroups; the last workgroup of a dimension may be partial. Without by() a workgroup
// is one wavefront of 64 along x. Plain value; checked where it meets a kernel and a device.
#pragma once

#include <algorithm>
#include <cstdint>

#include "aql/packet.hpp"

namespace uptempo {

struct Grid {
  aql::Size3 items;
  aql::Size3 workgroup;
  uint16_t dimensions = 1;

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
  friend constexpr bool operator==(const Grid&, const Grid&) = default;
};

}  // namespace uptempo
