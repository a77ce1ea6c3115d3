#include "device/occupancy.hpp"

#include <algorithm>

namespace uptempo::vgpu {
namespace {

std::string of_text(uint32_t needed, uint32_t there, const char* unit) {
  return std::to_string(needed) + " of " + std::to_string(there) + ' ' + unit;
}

std::string lds_text(uint32_t blocks, uint32_t bytes) {
  const uint32_t needed = blocks * WorkgroupNeeds::kLdsBlockBytes;
  return needed % 1024 == 0 ? of_text(needed / 1024, bytes / 1024, "KiB")
                            : of_text(needed, bytes, "bytes");
}

}  // namespace

uint32_t Occupancy::workgroups() const noexcept { return *std::ranges::min_element(of); }

Occupancy occupancy(const DeviceDescription& device, const WorkgroupNeeds& needs) noexcept {
  const uint32_t simds = device.simds_per_compute_unit;
  const auto per_unit = [](uint32_t there, uint32_t needed) {
    return needed == 0 ? ~0u : there / needed;
  };
  // A wave's registers are of one SIMD; a workgroup's waves are on any of them.
  const auto by_registers = [&](uint32_t of_simd, uint32_t of_wave) {
    return of_wave == 0 ? ~0u : simds * (of_simd / of_wave) / needs.waves;
  };
  Occupancy result;
  result.of[Occupancy::waves] = per_unit(simds * device.max_waves_per_simd, needs.waves);
  result.of[Occupancy::lds] = per_unit(lds_blocks_per_unit(device), needs.lds_blocks);
  result.of[Occupancy::vgprs] = by_registers(vgprs_per_simd(device), needs.vgprs);
  result.of[Occupancy::sgprs] = by_registers(kSgprsPerSimd, needs.sgprs);
  result.of[Occupancy::barriers] = needs.waves > 1 ? kBarriersPerUnit : ~0u;
  return result;
}

std::string limits_text(const DeviceDescription& device, const WorkgroupNeeds& needs) {
  const Occupancy found = occupancy(device, needs);
  const uint32_t most = found.workgroups();
  std::string text;
  const auto add = [&](Occupancy::Resource resource, const std::string& what) {
    if (found.of[resource] != most) return;
    text += (text.empty() ? "" : "; ") + what;
  };
  add(Occupancy::lds, "LDS: " + lds_text(needs.lds_blocks, device.lds_bytes) + " each");
  add(Occupancy::vgprs,
      "VGPRs: " + of_text(needs.vgprs, vgprs_per_simd(device), "of a SIMD for each wave"));
  add(Occupancy::sgprs, "SGPRs: " + of_text(needs.sgprs, kSgprsPerSimd, "of a SIMD for each wave"));
  add(Occupancy::waves,
      "wave slots: " +
          of_text(needs.waves, device.simds_per_compute_unit * device.max_waves_per_simd, "each"));
  add(Occupancy::barriers, "barriers: 1 of " + std::to_string(kBarriersPerUnit) + " each");
  return text;
}

}  // namespace uptempo::vgpu
