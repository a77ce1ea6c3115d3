// The emulated device: one record per supported target, with the source of each figure.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace uptempo::vgpu {

struct DeviceDescription {
  std::string_view target;  // "gfx90a": the compiler's -mcpu
  std::string_view marketing_name;
  // KFD topology: major * 10000 + minor * 100 + stepping, 90010 for gfx90a
  uint32_t gfx_target_version;
  uint32_t device_id;  // PCI
  // libdrm finds the marketing name by device id and revision (amdgpu.ids)
  uint32_t pci_revision;
  uint32_t compute_units;  // the same number in each shader engine
  uint32_t simds_per_compute_unit;
  uint32_t max_waves_per_simd;
  uint32_t shader_engines;
  uint32_t lds_bytes;  // per workgroup
  uint64_t vram_bytes;
  uint32_t l2_bytes;
  uint32_t engine_clock_mhz;
  uint32_t memory_clock_mhz;
  uint32_t memory_width_bits;
  uint32_t host_link_mb_per_s;
  // Physical: one shader array per engine; some units are fused off.
  uint32_t compute_units_per_shader_array;
  bool sram_ecc;
  // gfx90a: architected and accumulation VGPRs are one file, split at accum_offset.
  bool unified_accumulation_registers;
};

std::span<const DeviceDescription> device_descriptions();

// Returns nullptr when `target` is unknown.
const DeviceDescription* find_device_description(std::string_view target);

}  // namespace uptempo::vgpu
