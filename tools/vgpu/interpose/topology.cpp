#include "interpose/topology.hpp"

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "cp/command_processor.hpp"
#include "device/options.hpp"
#include "interpose/sockets.hpp"
#include "kfd/driver_profile.hpp"
#include "kfd/process.hpp"
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

std::string gpu_properties(const DeviceDescription& device, kfd::DriverProfile profile,
                           uint64_t p2p_links) {
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
  return properties({{"cpu_cores_count", 0},
                     {"simd_count", uint64_t{device.compute_units} * device.simds_per_compute_unit},
                     {"mem_banks_count", 1},
                     {"caches_count", device.memory_side_cache_bytes == 0 ? 3u : 4u},
                     {"io_links_count", 1},
                     {"p2p_links_count", p2p_links},
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
                     {"location_id", 0x300},
                     {"domain", 0},
                     {"drm_render_minor", kRenderMinor},
                     {"hive_id", 0},
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
                     {"unique_id", 0x757074656d706f00 + device.gfx_target_version % 100},
                     {"max_engine_clk_ccompute", 0}});
}

std::string memory_bank(uint64_t heap_type, uint64_t bytes, uint64_t width, uint64_t clock) {
  return properties({{"heap_type", heap_type},
                     {"size_in_bytes", bytes},
                     {"flags", 0},
                     {"width", width},
                     {"mem_clk_max", clock}});
}

struct Link {
  uint64_t type;
  uint64_t from, to;
  uint64_t weight;
  uint64_t min_mb_per_s, max_mb_per_s;
};
constexpr uint64_t kHyperTransport = 1;  // CRAT_IOLINK_TYPE_HYPERTRANSPORT: between AMD's sockets
constexpr uint64_t kPciExpress = 2;      // CRAT_IOLINK_TYPE_PCIEXPRESS
constexpr uint64_t kPciExpressWeight = 20;

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
                     {"flags", 1}});
}

// The links of a node, as the kernel builds them (kfd_crat.c, kfd_topology.c): `direct` ones to
// neighbours, and `indirect` ones, a PCI Express link and a link between sockets with both weights
// together and no bandwidth (kfd_create_indirect_link_prop).
struct NodeLinks {
  std::vector<Link> direct, indirect;
};

// Nodes are the sockets and, after them, the GPU. With a small BAR no link leads from the host to
// the GPU: Linux makes the GPU's link bidirectional, and indirect links from sockets, only for a
// large one.
NodeLinks links_of(uint32_t node, const Options& options) {
  const Sockets& sockets = options.sockets;
  const uint64_t host_link_mb_per_s = options.device->host_link_mb_per_s;
  const uint32_t gpu = sockets.count;
  NodeLinks links;
  for (uint32_t to = 0; to <= gpu; ++to) {
    if (to == node || (to == gpu && options.small_bar)) continue;
    if (node != gpu && to != gpu) {
      links.direct.push_back({kHyperTransport, node, to, numa_distance(node, to), 0, 0});
      continue;
    }
    const uint32_t socket = node == gpu ? to : node;
    if (socket == sockets.of_gpu) {
      links.direct.push_back({kPciExpress, node, to, kPciExpressWeight, 312, host_link_mb_per_s});
    } else {
      const uint64_t weight = kPciExpressWeight + numa_distance(socket, sockets.of_gpu);
      links.indirect.push_back({kPciExpress, node, to, weight, 0, 0});
    }
  }
  return links;
}

void add_links(Tree& tree, const std::string& node, const NodeLinks& links) {
  const auto add = [&](const char* folder, const std::vector<Link>& list) {
    for (size_t i = 0; i < list.size(); ++i)
      tree.add_file(node + folder + std::to_string(i) + "/properties", text_of(list[i]));
  };
  add("/io_links/", links.direct);
  add("/p2p_links/", links.indirect);
}

// The PCI function. location_id of gpu_properties() is its bus and function.
constexpr const char* kPciSlot = "0000:03:00.0";
constexpr const char* kPciDevice = "/sys/devices/pci0000:00/0000:00:01.1/0000:03:00.0";

std::string hex(const char* format, uint32_t value) {
  char text[16];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

// The header of a PCI function (PCI Local Bus Specification 3.0, 6.1) without capabilities. BAR 0,
// 64 bits wide and prefetchable, is all of VRAM.
constexpr uint64_t kBar0 = 0x200'0000'0000;

std::string pci_config(uint32_t vendor, uint32_t device, uint32_t subsystem, uint32_t class_code,
                       uint32_t revision) {
  constexpr uint32_t kMemoryAndBusMaster = 0x6, kBar64Prefetchable = 0xc;
  uint32_t words[64] = {};
  words[0] = device << 16 | vendor;
  words[1] = kMemoryAndBusMaster;
  words[2] = class_code << 8 | revision;
  words[4] = static_cast<uint32_t>(kBar0) | kBar64Prefetchable;
  words[5] = static_cast<uint32_t>(kBar0 >> 32);
  words[11] = subsystem << 16 | vendor;
  return {reinterpret_cast<const char*>(words), sizeof words};
}

// First and last address and IORESOURCE flags (include/linux/ioport.h) of each resource.
std::string pci_resources(uint64_t visible_vram_bytes) {
  constexpr uint64_t kMemory64Prefetchable = 0x14220c;
  constexpr int kResources = 13;
  const auto line = [](uint64_t first, uint64_t last, uint64_t flags) {
    char text[64];
    std::snprintf(text, sizeof text, "0x%016" PRIx64 " 0x%016" PRIx64 " 0x%016" PRIx64 "\n", first,
                  last, flags);
    return std::string(text);
  };
  std::string text = line(kBar0, kBar0 + visible_vram_bytes - 1, kMemory64Prefetchable);
  for (int i = 1; i < kResources; ++i) text += line(0, 0, 0);
  return text;
}

// Attributes of Documentation/ABI/testing/sysfs-bus-pci. The order and names in `uevent` are those
// of pci_uevent() (drivers/pci/pci-driver.c).
void add_pci_device(Tree& tree, const Options& options, const Socket& socket) {
  const DeviceDescription& device = *options.device;
  const uint32_t numa_node = options.sockets.of_gpu;
  constexpr uint32_t kVendor = 0x1002;
  constexpr uint32_t kClass = 0x038000;    // display controller, other: no VGA
  constexpr uint32_t kSubsystem = 0x0c34;  // the MI210's board, on every device
  // 16 lanes of PCI Express 3, 4 and 5 carry 15,752, 31,504 and 63,008 MB/s.
  constexpr uint32_t kPciExpress4MbPerS = 31'504, kPciExpress5MbPerS = 63'008;
  const std::string folder = kPciDevice;
  const char* const speed = device.host_link_mb_per_s >= kPciExpress5MbPerS   ? "32.0 GT/s PCIe\n"
                            : device.host_link_mb_per_s >= kPciExpress4MbPerS ? "16.0 GT/s PCIe\n"
                                                                              : "8.0 GT/s PCIe\n";
  tree.add_root(folder);
  tree.add_alias(std::string("/sys/bus/pci/devices/") + kPciSlot, folder);
  tree.add_alias(std::string("/sys/bus/pci/drivers/amdgpu/") + kPciSlot, folder);
  tree.add_file(folder + "/vendor", hex("0x%04x\n", kVendor));
  tree.add_file(folder + "/device", hex("0x%04x\n", device.device_id));
  tree.add_file(folder + "/subsystem_vendor", hex("0x%04x\n", kVendor));
  tree.add_file(folder + "/subsystem_device", hex("0x%04x\n", kSubsystem));
  tree.add_file(folder + "/class", hex("0x%06x\n", kClass));
  tree.add_file(folder + "/revision", hex("0x%02x\n", device.pci_revision));
  tree.add_file(folder + "/config",
                pci_config(kVendor, device.device_id, kSubsystem, kClass, device.pci_revision));
  tree.add_file(folder + "/resource", pci_resources(options.visible_vram_bytes()));
  tree.add_file(folder + "/irq", "0\n");
  tree.add_file(folder + "/enable", "1\n");
  tree.add_file(folder + "/numa_node", std::to_string(numa_node) + '\n');
  tree.add_file(folder + "/local_cpus", processor_mask(socket.processors));
  tree.add_file(folder + "/local_cpulist", processor_list(socket.processors));
  tree.add_file(folder + "/current_link_speed", speed);
  tree.add_file(folder + "/max_link_speed", speed);
  tree.add_file(folder + "/current_link_width", "16\n");
  tree.add_file(folder + "/max_link_width", "16\n");
  tree.add_file(folder + "/uevent",
                "DRIVER=amdgpu\nPCI_CLASS=" + hex("%X", kClass) +
                    "\nPCI_ID=" + hex("%04X", kVendor) + ':' + hex("%04X", device.device_id) +
                    "\nPCI_SUBSYS_ID=" + hex("%04X", kVendor) + ':' + hex("%04X", kSubsystem) +
                    "\nPCI_SLOT_NAME=" + kPciSlot + '\n');
  tree.add_directory(folder + "/drm/renderD128");
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

}  // namespace

Tree device_tree() {
  const Options options = Options::from_environment();
  const DeviceDescription& device = *options.device;
  const std::string topology = "/sys/devices/virtual/kfd/kfd/topology";
  const Sockets& sockets = options.sockets;
  const std::vector<Socket> host = divide_host(sockets.count);
  const auto node = [&](uint32_t number) { return topology + "/nodes/" + std::to_string(number); };
  const std::string gpu = node(sockets.count);  // after the sockets

  Tree tree;
  // /dev/accel stays empty: ROCr 6.4 probes it for accelerators of the machine.
  for (const char* root : {"/dev/kfd", "/dev/dri", "/dev/accel", "/sys/devices/virtual/kfd",
                           "/sys/dev/char/226:128", "/sys/module/amdgpu"})
    tree.add_root(root);
  tree.add_alias("/sys/class/kfd/kfd", "/sys/devices/virtual/kfd/kfd");
  tree.add_alias("/sys/class/kfd", "/sys/devices/virtual/kfd");

  tree.add_device("/dev/kfd", Entry::Kind::kfd_device);
  tree.add_device("/dev/dri/renderD128", Entry::Kind::render_device);
  add_pci_device(tree, options, host[sockets.of_gpu]);
  // A machine with one socket has the host's nodes.
  if (sockets.count > 1) add_numa_nodes(tree, host);
  // The node's `device` is a link in Linux: the entry lists it, the alias resolves it.
  tree.add_directory("/sys/dev/char/226:128/device");
  tree.add_alias("/sys/dev/char/226:128/device", kPciDevice);
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

  // With a large BAR the host can access all of VRAM, with a small one nothing: Linux reports one
  // heap, public or private (kfd_create_vcrat_image_gpu).
  constexpr uint64_t kPublicFrameBuffer = 1, kPrivateFrameBuffer = 2;
  tree.add_file(gpu + "/gpu_id", std::to_string(kfd::kGpuId) + '\n');
  tree.add_file(gpu + "/name", std::string(device.target) + '\n');
  const NodeLinks links = links_of(sockets.count, options);
  tree.add_file(gpu + "/properties", gpu_properties(device, kfd::DriverProfile(options.kfd_minor),
                                                    links.indirect.size()));
  tree.add_file(gpu + "/mem_banks/0/properties",
                memory_bank(options.small_bar ? kPrivateFrameBuffer : kPublicFrameBuffer,
                            device.vram_bytes, device.memory_width_bits, device.memory_clock_mhz));
  tree.add_file(gpu + "/caches/0/properties",
                cache(2147487744, 1, device.l1_bytes / 1024, device.l1_line_bytes, kGpuData));
  tree.add_file(gpu + "/caches/1/properties", cache(2147487744, 1, 32, 64, kGpuInstruction));
  tree.add_file(gpu + "/caches/2/properties",
                cache(2147487744, 2, device.l2_bytes / 1024, 128, kGpuData));
  if (device.memory_side_cache_bytes != 0)
    tree.add_file(gpu + "/caches/3/properties",
                  cache(2147487744, 3, device.memory_side_cache_bytes / 1024, 64, kGpuData));
  add_links(tree, gpu, links);
  return tree;
}

}  // namespace uptempo::vgpu::interpose
