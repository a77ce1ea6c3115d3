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
  // GPU dies of the device, each with shader engines, compute units and an L2 of its own
  uint32_t xcds;
  uint32_t compute_units;  // of all XCDs, the same number in each
  uint32_t simds_per_compute_unit;
  uint32_t max_waves_per_simd;
  uint32_t shader_engines;  // of all XCDs, the same number in each
  uint32_t lds_bytes;       // per workgroup
  uint64_t vram_bytes;
  uint32_t l1_bytes;                 // vector L1 of one compute unit
  uint32_t l1_line_bytes;            // of the vector L1
  uint32_t l2_bytes;                 // of one XCD
  uint32_t memory_side_cache_bytes;  // between the L2s and memory, 0: none
  uint32_t engine_clock_mhz;
  uint32_t memory_clock_mhz;
  uint32_t memory_width_bits;
  uint32_t host_link_mb_per_s;
  // xGMI (Infinity Fabric): boards of one hive and links of a board; 1 and 0: the board has none.
  // The rate of a link is what the kernel reports, 0 if it does not know the number of links.
  uint32_t hive_boards;
  uint32_t xgmi_links;
  uint32_t xgmi_mb_per_s;
  // Physical: one shader array per engine; some units are fused off.
  uint32_t compute_units_per_shader_array;
  bool sram_ecc;
  std::string_view first_rocr;  // the oldest ROCr that knows the target; empty: any
  // gfx90a: architected and accumulation VGPRs are one file, split at accum_offset.
  bool unified_accumulation_registers;

  constexpr uint32_t units_per_xcd() const noexcept { return compute_units / xcds; }
  constexpr uint32_t engines_per_xcd() const noexcept { return shader_engines / xcds; }
  // Working units of engine `engine` of an XCD. The first engines have one more where the number
  // does not divide evenly.
  constexpr uint32_t units_of_engine(uint32_t engine) const noexcept {
    return units_per_xcd() / engines_per_xcd() +
           (engine < units_per_xcd() % engines_per_xcd() ? 1 : 0);
  }
};

std::span<const DeviceDescription> device_descriptions();

// Returns nullptr when `target` is unknown.
const DeviceDescription* find_device_description(std::string_view target);

}  // namespace uptempo::vgpu
