// The accesses of one task to one page, byte by byte.
//
// Thread safety: none; a value type. While a dispatch runs, AccessSet fills it by atomic
// operations.
#pragma once

#include <array>
#include <cstdint>

#include "device/memory.hpp"

namespace uptempo::vgpu::fences {

inline constexpr uint32_t kPageBytes = 4096;
// A line of the scalar L1. A line of the vector L1 is one of them, or an aligned pair.
inline constexpr uint32_t kLineBytes = 64;
inline constexpr uint32_t kLinesPerPage = kPageBytes / kLineBytes;

constexpr GpuAddress page_of(GpuAddress address) noexcept {
  return address & ~GpuAddress{kPageBytes - 1};
}

// Returns the bits [first, first + count) of a word, one per byte of a line; `count` from 1 to 64.
constexpr uint64_t line_bits(uint32_t first, uint32_t count) noexcept {
  return (count == 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1) << first;
}

struct PageAccesses {
  // A word per line, a bit per byte.
  std::array<uint64_t, kLinesPerPage> read{}, written{}, synchronising{};
  // A word per line, a bit per L2 through which the task read or wrote bytes of the line. 0: not
  // known, none, or the agent has one L2.
  std::array<uint8_t, kLinesPerPage> read_l2s{}, written_l2s{};
  // A bit per line.
  uint64_t vector_lines = 0;  // lines that a vector L1 may hold, touched or not
  uint64_t scalar_lines = 0;  // lines that a scalar L1 may hold
  uint64_t shared_lines = 0;  // parts of vector L1 lines that several workgroups touched

  bool operator==(const PageAccesses&) const = default;
};

}  // namespace uptempo::vgpu::fences
