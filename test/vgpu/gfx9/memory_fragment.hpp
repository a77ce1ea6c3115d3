// Helpers of the tests of memory instructions.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>

#include "test/vgpu/gfx9/fragment.hpp"

namespace uptempo::vgpu::gfx9::test {

inline constexpr uint64_t kStripes = 0x5555555555555555;

inline Buffer counted(Machine& machine, size_t dwords) {
  const Buffer buffer = machine.allocate(dwords * 4);
  for (uint32_t i = 0; i < dwords; ++i) buffer.as<uint32_t>()[i] = 0x10000 + i;
  return buffer;
}

inline uint32_t lds_dword(const Wave& wave, unsigned index) {
  uint32_t value = 0;
  std::memcpy(&value, wave.lds + 4 * index, 4);
  return value;
}
inline void set_lds(Wave& wave, unsigned index, uint32_t value) {
  std::memcpy(wave.lds + 4 * index, &value, 4);
}

inline void each_lane(const std::function<void(unsigned)>& function) {
  for (unsigned lane = 0; lane < kLanes; ++lane) function(lane);
}

inline void set_address(Wave& wave, unsigned vgpr, unsigned lane, GpuAddress address) {
  wave.vgpr[vgpr].lane[lane] = static_cast<uint32_t>(address);
  wave.vgpr[vgpr + 1].lane[lane] = static_cast<uint32_t>(address >> 32);
}

}  // namespace uptempo::vgpu::gfx9::test
