#include "device/description.hpp"

#include <algorithm>
#include <array>

namespace uptempo::vgpu {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr uint32_t kKiB = 1u << 10, kMiB = 1u << 20;

// Sources:
// * Compute units, clocks, memory size, bus width: AMD's product pages and the ROCm documentation,
//   "Accelerator and GPU hardware specifications".
// * PCI ids, revisions and names: libdrm's amdgpu.ids.
// * Shader engines, units per array and waves per SIMD: gfx_v9_0.c and kfd_device.c of Linux
//   (max_waves_per_simd: 8 on gfx90a, else 10).
// * Host link: PCIe 4.0 x16, on gfx900 3.0 x16, on gfx942 5.0 x16, after encoding.
// * xGMI: AMD's product pages (MI50 and MI60: two links, rings of four boards; MI100 and MI210:
//   three links, four boards; MI300X: seven links, eight boards). Rates: amdgpu_xgmi.c, 16 lanes of
//   25 or 32 GT/s. The kernel learns the number of links from firmware of gfx90a and newer only
//   (psp_xgmi_peer_link_info_supported(), amdgpu_psp.c).
// * SRAM ECC: LLVM's AMDGPUUsage, "Processors".
// * MI300X: AMD's CDNA 3 whitepaper (XCDs, caches and their lines, memory); the KFD topology of
//   such a machine as rocminfo prints it (304 units in 32 arrays, of which each has room for 10).
//   A product disables two units of an XCD; their engines differ from die to die.
constexpr std::array<DeviceDescription, 5> kDescriptions{{
    {
        .target = "gfx90a",
        .marketing_name = "AMD Instinct MI210",
        .gfx_target_version = 90010,
        .device_id = 0x740f,
        .pci_revision = 0x02,
        .xcds = 1,
        .compute_units = 104,
        .simds_per_compute_unit = 4,
        .max_waves_per_simd = 8,
        .shader_engines = 8,
        .lds_bytes = 65536,
        .vram_bytes = 64 * kGiB,
        .l1_bytes = 16 * kKiB,
        .l1_line_bytes = 64,
        .l2_bytes = 8 * kMiB,
        .memory_side_cache_bytes = 0,
        .engine_clock_mhz = 1700,
        .memory_clock_mhz = 1600,
        .memory_width_bits = 4096,
        .host_link_mb_per_s = 31504,
        .hive_boards = 4,
        .xgmi_links = 3,
        .xgmi_mb_per_s = 50000,
        .compute_units_per_shader_array = 14,
        .sram_ecc = true,
        .first_rocr = "",
        .unified_accumulation_registers = true,
    },
    {
        .target = "gfx908",
        .marketing_name = "AMD Instinct MI100",
        .gfx_target_version = 90008,
        .device_id = 0x738c,
        .pci_revision = 0x01,
        .xcds = 1,
        .compute_units = 120,
        .simds_per_compute_unit = 4,
        .max_waves_per_simd = 10,
        .shader_engines = 8,
        .lds_bytes = 65536,
        .vram_bytes = 32 * kGiB,
        .l1_bytes = 16 * kKiB,
        .l1_line_bytes = 64,
        .l2_bytes = 8 * kMiB,
        .memory_side_cache_bytes = 0,
        .engine_clock_mhz = 1502,
        .memory_clock_mhz = 1200,
        .memory_width_bits = 4096,
        .host_link_mb_per_s = 31504,
        .hive_boards = 4,
        .xgmi_links = 3,
        .xgmi_mb_per_s = 0,
        .compute_units_per_shader_array = 16,
        .sram_ecc = true,
        .first_rocr = "",
        .unified_accumulation_registers = false,
    },
    {
        .target = "gfx906",
        .marketing_name = "AMD Instinct MI60 / MI50",
        .gfx_target_version = 90006,
        .device_id = 0x66a1,
        .pci_revision = 0x02,
        .xcds = 1,
        .compute_units = 64,
        .simds_per_compute_unit = 4,
        .max_waves_per_simd = 10,
        .shader_engines = 4,
        .lds_bytes = 65536,
        .vram_bytes = 32 * kGiB,
        .l1_bytes = 16 * kKiB,
        .l1_line_bytes = 64,
        .l2_bytes = 4 * kMiB,
        .memory_side_cache_bytes = 0,
        .engine_clock_mhz = 1800,
        .memory_clock_mhz = 1000,
        .memory_width_bits = 4096,
        .host_link_mb_per_s = 31504,
        .hive_boards = 4,
        .xgmi_links = 2,
        .xgmi_mb_per_s = 0,
        .compute_units_per_shader_array = 16,
        .sram_ecc = true,
        .first_rocr = "",
        .unified_accumulation_registers = false,
    },
    {
        .target = "gfx900",
        .marketing_name = "AMD Radeon Instinct MI25",
        .gfx_target_version = 90000,
        .device_id = 0x6860,
        .pci_revision = 0x00,
        .xcds = 1,
        .compute_units = 64,
        .simds_per_compute_unit = 4,
        .max_waves_per_simd = 10,
        .shader_engines = 4,
        .lds_bytes = 65536,
        .vram_bytes = 16 * kGiB,
        .l1_bytes = 16 * kKiB,
        .l1_line_bytes = 64,
        .l2_bytes = 4 * kMiB,
        .memory_side_cache_bytes = 0,
        .engine_clock_mhz = 1500,
        .memory_clock_mhz = 945,
        .memory_width_bits = 2048,
        .host_link_mb_per_s = 15752,
        .hive_boards = 1,
        .xgmi_links = 0,
        .xgmi_mb_per_s = 0,
        .compute_units_per_shader_array = 16,
        .sram_ecc = false,
        .first_rocr = "",
        .unified_accumulation_registers = false,
    },
    {
        .target = "gfx942",
        .marketing_name = "AMD Instinct MI300X",
        .gfx_target_version = 90402,
        .device_id = 0x74a1,
        .pci_revision = 0x00,
        .xcds = 8,
        .compute_units = 304,
        .simds_per_compute_unit = 4,
        .max_waves_per_simd = 8,
        .shader_engines = 32,
        .lds_bytes = 65536,
        .vram_bytes = 192 * kGiB,
        .l1_bytes = 32 * kKiB,
        .l1_line_bytes = 128,
        .l2_bytes = 4 * kMiB,
        .memory_side_cache_bytes = 256 * kMiB,
        .engine_clock_mhz = 2100,
        .memory_clock_mhz = 1300,
        .memory_width_bits = 8192,
        .host_link_mb_per_s = 63008,
        .hive_boards = 8,
        .xgmi_links = 7,
        .xgmi_mb_per_s = 64000,
        .compute_units_per_shader_array = 10,
        .sram_ecc = true,
        .first_rocr = "6.1",
        .unified_accumulation_registers = true,
    },
}};

constexpr bool arrays_hold_all_units() {
  return std::all_of(kDescriptions.begin(), kDescriptions.end(), [](const DeviceDescription& d) {
    return d.compute_units % d.xcds == 0 && d.shader_engines % d.xcds == 0 &&
           d.units_of_engine(0) <= d.compute_units_per_shader_array;
  });
}
static_assert(arrays_hold_all_units());

}  // namespace

std::span<const DeviceDescription> device_descriptions() { return kDescriptions; }

const DeviceDescription* find_device_description(std::string_view target) {
  const auto* found =
      std::find_if(kDescriptions.begin(), kDescriptions.end(),
                   [target](const DeviceDescription& d) { return d.target == target; });
  return found == kDescriptions.end() ? nullptr : found;
}

}  // namespace uptempo::vgpu
