// The number of workgroups that a compute unit holds at once.
//
// Sources: LLVM's AMDGPUBaseInfo.cpp (registers of a SIMD, granules, waves, barriers of a unit) and
// AMDGPUUsage (the granules of a kernel descriptor, and LDS in blocks of 512 bytes); HIP's
// hipOccupancyMaxActiveBlocksPerMultiprocessor (calculateOccupancy() of CLR: 800 SGPRs a SIMD);
// KFD's topology (waves and LDS of a unit). HIP counts at most 8 waves a SIMD. KFD and LLVM count
// 10 on gfx900, gfx906 and gfx908, and so does the virtual GPU.
//
// Thread safety: plain data.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "device/description.hpp"

namespace uptempo::vgpu {

// The needs of a workgroup on its compute unit. Small enough for a lock-free atomic.
struct WorkgroupNeeds {
  static constexpr uint32_t kLdsBlockBytes = 512;

  // Requires at most 64 KiB of LDS.
  static constexpr uint16_t lds_blocks_of(uint32_t bytes) noexcept {
    return static_cast<uint16_t>((bytes + kLdsBlockBytes - 1) / kLdsBlockBytes);
  }

  uint16_t waves = 1;
  uint16_t lds_blocks = 0;
  uint16_t vgprs = 0;  // of a wave, as the hardware allocates them, with accumulation registers of
                       // the same file
  uint16_t sgprs = 0;  // of a wave, the same

  friend bool operator==(const WorkgroupNeeds&, const WorkgroupNeeds&) = default;
};

inline constexpr uint32_t kSgprsPerSimd = 800;
// Workgroups of several waves on a unit: each needs a barrier.
inline constexpr uint32_t kBarriersPerUnit = 16;

constexpr uint32_t vgprs_per_simd(const DeviceDescription& device) noexcept {
  return device.unified_accumulation_registers ? 512 : 256;
}
constexpr uint32_t lds_blocks_per_unit(const DeviceDescription& device) noexcept {
  return device.lds_bytes / WorkgroupNeeds::kLdsBlockBytes;
}

struct Occupancy {
  enum Resource : unsigned { waves, lds, vgprs, sgprs, barriers };
  static constexpr unsigned kResources = 5;

  // Workgroups that each resource of a unit suffices for; all bits set: any number.
  std::array<uint32_t, kResources> of{};

  uint32_t workgroups() const noexcept;  // of a unit
};

// Whether a unit holds one workgroup, which has at most 16 waves and 64 KiB of LDS. Without the
// divisions of occupancy(). Its SGPRs always suffice.
constexpr bool fits_on_unit(const DeviceDescription& device, const WorkgroupNeeds& needs) noexcept {
  const uint32_t simds = device.simds_per_compute_unit;
  return (needs.waves + simds - 1) / simds * needs.vgprs <= vgprs_per_simd(device);
}

Occupancy occupancy(const DeviceDescription& device, const WorkgroupNeeds& needs) noexcept;

// The resources that limit the number, with need and size of the unit: "LDS: 64 of 64 KiB each".
std::string limits_text(const DeviceDescription& device, const WorkgroupNeeds& needs);

}  // namespace uptempo::vgpu
