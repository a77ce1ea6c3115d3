#include "interpose/topology.hpp"

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "cp/command_processor.hpp"
#include "device/hives.hpp"
#include "device/options.hpp"
#include "interpose/links.hpp"
#include "interpose/pci_device.hpp"
#include "interpose/sockets.hpp"
#include "kfd/driver_profile.hpp"
#include "kfd/gpu.hpp"
#include "kfd/queues.hpp"

namespace uptempo::vgpu::interpose {
namespace {

using Property = std::pair<const char*, uint64_t>;

std::string properties(std::initializer_list<Property> list) {
  std::string text;
  for (const auto& [name, value] : list)
    text += std::string(name) + ' ' + std::to_string(value) + '\n';
  return text;
}

std::string cpu_properties(const Socket& socket, uint64_t io_links, uint64_t p2p_links) {
  return properties({{"cpu_cores_count", socket.cores},
                     {"simd_count", 0},
                     {"mem_banks_count", 1},
                     {"caches_count", 1},  // 0 makes ROCT read the host's own tables
                     {"io_links_count", io_links},
                     {"p2p_links_count", p2p_links},
                     {"cpu_core_id_base", socket.apic_id},
                     {"simd_id_base", 0},
                     {"max_waves_per_simd", 0},
                     {"lds_size_in_kb", 0},
                     {"gds_size_in_kb", 0},
                     {"num_gws", 0},
                     {"wave_front_size", 0},
                     {"array_count", 0},
                     {"simd_arrays_per_engine", 0},
                     {"cu_per_simd_array", 0},
                     {"simd_per_cu", 0},
                     {"max_slots_scratch_cu", 0},
                     {"gfx_target_version", 0},
                     {"vendor_id", 0},
                     {"device_id", 0},
                     {"location_id", 0},
                     {"domain", 0},
                     {"drm_render_minor", 0},
                     {"hive_id", 0},
                     {"num_sdma_engines", 0},
                     {"num_sdma_xgmi_engines", 0},
                     {"num_sdma_queues_per_engine", 0},
                     {"num_cp_queues", 0},
                     {"max_engine_clk_ccompute", 0}});
}

std::string gpu_properties(uint32_t index, const Options& options, const NodeLinks& links) {
  const DeviceDescription& device = *options.gpus[index];
  const kfd::DriverProfile profile(options.kfd_minor);
  // Identifiers of a hive come from firmware; any number except 0 works.
  constexpr uint64_t kHiveId = 0x7570'6869'7665'0000;
  const auto hive = hive_place(index, options);
  // Partitions have the id of their card. Drivers from November 2025 on report the id of each
  // partition's first XCD instead (amdgpu_xcp.c, __amdgpu_xcp_set_unique_id()).
  const uint32_t id = options.partitions == Options::Partitions::same_id ? 0 : index;
  // HSA_CAP_* of kfd_topology.h.
  constexpr uint64_t kQueueSizePowerOfTwo = 1u << 3;
  // four of them, encoded as a power of two
  constexpr uint64_t kWatchPoints = (1u << 7) | (2u << 8);
  constexpr uint64_t kDoorbellType2 = 2u << 12;  // 64-bit doorbells of GFX9
  constexpr uint64_t kSramEcc = 1u << 26;
  constexpr uint64_t kTrapDebugger = 1u << 15;
  constexpr uint64_t kTrapDebuggerFirmware = 1u << 29;
  const uint64_t capability =
      kQueueSizePowerOfTwo | kWatchPoints | kDoorbellType2 | (device.sram_ecc ? kSramEcc : 0) |
      (profile.reports_exceptions() ? kTrapDebugger | kTrapDebuggerFirmware : 0);
  const kfd::SdmaLayout sdma = kfd::sdma_layout(device);
  return properties(
      {{"cpu_cores_count", 0},
       {"simd_count", uint64_t{device.compute_units} * device.simds_per_compute_unit},
       {"mem_banks_count", 1},
       {"caches_count", device.memory_side_cache_bytes == 0 ? 3u : 4u},
       {"io_links_count", links.direct.size()},
       {"p2p_links_count", links.indirect.size()},
       {"cpu_core_id_base", 0},
       {"simd_id_base", 2147487744},
       {"max_waves_per_simd", device.max_waves_per_simd},
       {"lds_size_in_kb", device.lds_bytes / 1024},
       {"gds_size_in_kb", 0},
       {"num_gws", 64},
       {"wave_front_size", 64},
       {"array_count", device.shader_engines},
       {"simd_arrays_per_engine", 1},
       {"cu_per_simd_array", device.compute_units_per_shader_array},
       {"simd_per_cu", device.simds_per_compute_unit},
       {"max_slots_scratch_cu", 32},
       {"gfx_target_version", device.gfx_target_version},
       {"vendor_id", 0x1002},
       {"device_id", device.device_id},
       {"location_id", pci_location(options, index)},
       {"domain", 0},
       {"drm_render_minor", render_minor_of(index)},
       {"hive_id", hive ? kHiveId + hive->hive : 0},
       {"num_sdma_engines", sdma.engines},
       {"num_sdma_xgmi_engines", sdma.xgmi_engines},
       {"num_sdma_queues_per_engine", sdma.queues_per_engine},
       {"num_cp_queues", kHardwareQueues},
       {"num_xcc", device.xcds},
       {"max_engine_clk_fcompute", device.engine_clock_mhz},
       {"local_mem_size", 0},
       {"fw_version", 71},
       {"capability", capability},
       {"debug_prop", 0},
       {"sdma_fw_version", 8},
       {"unique_id", 0x757074656d706f00 + id * 0x10 + device.gfx_target_version % 100},
       {"max_engine_clk_ccompute", 0}});
}

std::string memory_bank(uint64_t heap_type, uint64_t bytes, uint64_t width, uint64_t clock) {
  return properties({{"heap_type", heap_type},
                     {"size_in_bytes", bytes},
                     {"flags", 0},
                     {"width", width},
                     {"mem_clk_max", clock}});
}

std::string text_of(const Link& link) {
  return properties({{"type", link.type},
                     {"version_major", 0},
                     {"version_minor", 0},
                     {"node_from", link.from},
                     {"node_to", link.to},
                     {"weight", link.weight},
                     {"min_latency", 0},
                     {"max_latency", 0},
                     {"min_bandwidth", link.min_mb_per_s},
                     {"max_bandwidth", link.max_mb_per_s},
                     {"recommended_transfer_size", 0},
                     {"flags", link.flags}});
}

void add_links(Tree& tree, const std::string& node, const NodeLinks& links) {
  const auto add = [&](const char* folder, const std::vector<Link>& list) {
    for (size_t i = 0; i < list.size(); ++i)
      tree.add_file(node + folder + std::to_string(i) + "/properties", text_of(list[i]));
  };
  add("/io_links/", links.direct);
  add("/p2p_links/", links.indirect);
}

enum CacheType : uint64_t { kCpuData = 0x5, kGpuData = 0x9, kGpuInstruction = 0xa };

std::string cache(uint64_t processor, uint64_t level, uint64_t kilobytes, uint64_t line,
                  CacheType type) {
  return properties({{"processor_id_low", processor},
                     {"level", level},
                     {"size", kilobytes},
                     {"cache_line_size", line},
                     {"cache_lines_per_tag", 1},
                     {"association", 16},
                     {"latency", 0},
                     {"type", type}}) +
         "sibling_map 1\n";
}

// A GPU's node, render node and device.
void add_gpu(Tree& tree, uint32_t index, const Options& options, const Socket& socket,
             const std::string& node) {
  const DeviceDescription& device = *options.gpus[index];
  const std::string minor = std::to_string(render_minor_of(index));
  tree.add_root("/sys/dev/char/226:" + minor);
  tree.add_device("/dev/dri/renderD" + minor, Entry::Kind::render_device, index);
  add_device(tree, options, index, socket);
  // The node's `device` is a link in Linux: the entry lists it, the alias resolves it.
  const std::string link = "/sys/dev/char/226:" + minor + "/device";
  tree.add_directory(link);
  tree.add_alias(link, device_folder(options, index));

  // With a large BAR the host can access all of VRAM, with a small one nothing: Linux reports one
  // heap, public or private (kfd_create_vcrat_image_gpu).
  constexpr uint64_t kPublicFrameBuffer = 1, kPrivateFrameBuffer = 2;
  tree.add_file(node + "/gpu_id", std::to_string(kfd::gpu_id_of(index)) + '\n');
  tree.add_file(node + "/name", std::string(device.target) + '\n');
  const NodeLinks links = links_of(options.sockets.count + index, options);
  tree.add_file(node + "/properties", gpu_properties(index, options, links));
  tree.add_file(node + "/mem_banks/0/properties",
                memory_bank(options.small_bar ? kPrivateFrameBuffer : kPublicFrameBuffer,
                            device.vram_bytes, device.memory_width_bits, device.memory_clock_mhz));
  tree.add_file(node + "/caches/0/properties",
                cache(2147487744, 1, device.l1_bytes / 1024, device.l1_line_bytes, kGpuData));
  tree.add_file(node + "/caches/1/properties", cache(2147487744, 1, 32, 64, kGpuInstruction));
  tree.add_file(node + "/caches/2/properties",
                cache(2147487744, 2, device.l2_bytes / 1024, 128, kGpuData));
  if (device.memory_side_cache_bytes != 0)
    tree.add_file(node + "/caches/3/properties",
                  cache(2147487744, 3, device.memory_side_cache_bytes / 1024, 64, kGpuData));
  add_links(tree, node, links);
}

}  // namespace

Tree device_tree() {
  const Options options = Options::from_environment();
  const std::string topology = "/sys/devices/virtual/kfd/kfd/topology";
  const Sockets& sockets = options.sockets;
  const std::vector<Socket> host = divide_host(sockets.count);
  const auto node = [&](uint32_t number) { return topology + "/nodes/" + std::to_string(number); };

  Tree tree;
  // /dev/accel stays empty: ROCr 6.4 probes it for accelerators of the machine.
  for (const char* root :
       {"/dev/kfd", "/dev/dri", "/dev/accel", "/sys/devices/virtual/kfd", "/sys/module/amdgpu"})
    tree.add_root(root);
  tree.add_alias("/sys/class/kfd/kfd", "/sys/devices/virtual/kfd/kfd");
  tree.add_alias("/sys/class/kfd", "/sys/devices/virtual/kfd");

  tree.add_device("/dev/kfd", Entry::Kind::kfd_device);
  // A machine with one socket has the host's nodes.
  if (sockets.count > 1) add_numa_nodes(tree, host);
  tree.add_file("/sys/module/amdgpu/initstate", "live\n");
  tree.add_file("/sys/module/amdgpu/parameters/cwsr_enable", "1\n");  // the module's default

  tree.add_file(topology + "/generation_id", "1\n");
  tree.add_file(topology + "/system_properties",
                properties({{"platform_oem", 0}, {"platform_id", 0}, {"platform_rev", 0}}));

  for (uint32_t i = 0; i < sockets.count; ++i) {
    const std::string cpu = node(i);
    const NodeLinks links = links_of(i, options);
    tree.add_file(cpu + "/gpu_id", "0\n");
    tree.add_file(cpu + "/name", "\n");
    tree.add_file(cpu + "/properties",
                  cpu_properties(host[i], links.direct.size(), links.indirect.size()));
    tree.add_file(cpu + "/mem_banks/0/properties", memory_bank(0, host[i].memory_bytes, 72, 3200));
    tree.add_file(cpu + "/caches/0/properties", cache(host[i].apic_id, 3, 32768, 64, kCpuData));
    add_links(tree, cpu, links);
  }

  for (uint32_t gpu = 0; gpu < options.gpus.size(); ++gpu)
    add_gpu(tree, gpu, options, host[options.socket_of_gpu(gpu)], node(sockets.count + gpu));
  return tree;
}

}  // namespace uptempo::vgpu::interpose
