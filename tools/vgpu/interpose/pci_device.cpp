#include "interpose/pci_device.hpp"

#include <cinttypes>
#include <cstdio>

namespace uptempo::vgpu::interpose {
namespace {

// Each GPU is below a root complex of its own, with room for 32 buses.
constexpr uint32_t kBusesPerRoot = 0x20, kBusOfGpu = 3;
static_assert(Options::kMostGpus * kBusesPerRoot <= 0x100);

std::string hex(const char* format, uint32_t value) {
  char text[16];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

// The header of a PCI function (PCI Local Bus Specification 3.0, 6.1) without capabilities. BAR 0,
// 64 bits wide and prefetchable, is all of VRAM.
constexpr uint64_t kBar0 = 0x200'0000'0000;
constexpr uint64_t kBarStride = uint64_t{1} << 38;  // all of the largest VRAM, in a power of two

std::string pci_config(uint32_t vendor, uint32_t device, uint32_t subsystem, uint32_t class_code,
                       uint32_t revision, uint64_t bar) {
  constexpr uint32_t kMemoryAndBusMaster = 0x6, kBar64Prefetchable = 0xc;
  uint32_t words[64] = {};
  words[0] = device << 16 | vendor;
  words[1] = kMemoryAndBusMaster;
  words[2] = class_code << 8 | revision;
  words[4] = static_cast<uint32_t>(bar) | kBar64Prefetchable;
  words[5] = static_cast<uint32_t>(bar >> 32);
  words[11] = subsystem << 16 | vendor;
  return {reinterpret_cast<const char*>(words), sizeof words};
}

// First and last address and IORESOURCE flags (include/linux/ioport.h) of each resource.
std::string pci_resources(uint64_t bar, uint64_t visible_vram_bytes) {
  constexpr uint64_t kMemory64Prefetchable = 0x14220c;
  constexpr int kResources = 13;
  const auto line = [](uint64_t first, uint64_t last, uint64_t flags) {
    char text[64];
    std::snprintf(text, sizeof text, "0x%016" PRIx64 " 0x%016" PRIx64 " 0x%016" PRIx64 "\n", first,
                  last, flags);
    return std::string(text);
  };
  std::string text = line(bar, bar + visible_vram_bytes - 1, kMemory64Prefetchable);
  for (int i = 1; i < kResources; ++i) text += line(0, 0, 0);
  return text;
}

uint32_t location_of(uint32_t card) { return (kBusOfGpu + card * kBusesPerRoot) << 8; }

std::string slot_of(uint32_t card) {
  char slot[24];
  std::snprintf(slot, sizeof slot, "0000:%02x:00.0", location_of(card) >> 8);
  return slot;
}

// The first partition has the card's PCI function. Linux gives each further one a platform device
// without an address (amdgpu_xcp_drm_dev_alloc(), drivers/gpu/drm/amd/amdxcp/amdgpu_xcp_drv.c).
bool is_further_partition(const Options& options, uint32_t gpu) {
  return options.partitions != Options::Partitions::none && gpu > 0;
}

}  // namespace

uint32_t pci_location(const Options& options, uint32_t gpu) {
  return is_further_partition(options, gpu) ? location_of(0) | gpu : location_of(gpu);
}

std::string device_folder(const Options& options, uint32_t gpu) {
  if (is_further_partition(options, gpu))
    return "/sys/devices/platform/amdgpu_xcp_" + std::to_string(gpu - 1);
  char path[80];
  std::snprintf(path, sizeof path, "/sys/devices/pci0000:%02x/0000:%02x:01.1/%s",
                gpu * kBusesPerRoot, gpu * kBusesPerRoot, slot_of(gpu).c_str());
  return path;
}

namespace {

// The order and names in `uevent` are those of pci_uevent() (drivers/pci/pci-driver.c).
void add_pci_function(Tree& tree, const Options& options, uint32_t gpu, const Socket& socket) {
  const DeviceDescription& device = *options.gpus[gpu];
  const std::string slot = slot_of(gpu);
  const uint64_t bar = kBar0 + gpu * kBarStride;
  constexpr uint32_t kVendor = 0x1002;
  constexpr uint32_t kClass = 0x038000;    // display controller, other: no VGA
  constexpr uint32_t kSubsystem = 0x0c34;  // the MI210's board, on every device
  // 16 lanes of PCI Express 3, 4 and 5 carry 15,752, 31,504 and 63,008 MB/s.
  constexpr uint32_t kPciExpress4MbPerS = 31'504, kPciExpress5MbPerS = 63'008;
  const std::string folder = device_folder(options, gpu);
  const char* const speed = device.host_link_mb_per_s >= kPciExpress5MbPerS   ? "32.0 GT/s PCIe\n"
                            : device.host_link_mb_per_s >= kPciExpress4MbPerS ? "16.0 GT/s PCIe\n"
                                                                              : "8.0 GT/s PCIe\n";
  tree.add_alias("/sys/bus/pci/devices/" + slot, folder);
  tree.add_alias("/sys/bus/pci/drivers/amdgpu/" + slot, folder);
  tree.add_file(folder + "/vendor", hex("0x%04x\n", kVendor));
  tree.add_file(folder + "/device", hex("0x%04x\n", device.device_id));
  tree.add_file(folder + "/subsystem_vendor", hex("0x%04x\n", kVendor));
  tree.add_file(folder + "/subsystem_device", hex("0x%04x\n", kSubsystem));
  tree.add_file(folder + "/class", hex("0x%06x\n", kClass));
  tree.add_file(folder + "/revision", hex("0x%02x\n", device.pci_revision));
  tree.add_file(folder + "/config", pci_config(kVendor, device.device_id, kSubsystem, kClass,
                                               device.pci_revision, bar));
  tree.add_file(folder + "/resource", pci_resources(bar, options.of_gpu(gpu).visible_vram_bytes()));
  tree.add_file(folder + "/irq", "0\n");
  tree.add_file(folder + "/enable", "1\n");
  tree.add_file(folder + "/numa_node", std::to_string(options.socket_of_gpu(gpu)) + '\n');
  tree.add_file(folder + "/local_cpus", processor_mask(socket.processors));
  tree.add_file(folder + "/local_cpulist", processor_list(socket.processors));
  tree.add_file(folder + "/current_link_speed", speed);
  tree.add_file(folder + "/max_link_speed", speed);
  tree.add_file(folder + "/current_link_width", "16\n");
  tree.add_file(folder + "/max_link_width", "16\n");
  tree.add_file(folder + "/uevent", "DRIVER=amdgpu\nPCI_CLASS=" + hex("%X", kClass) + "\nPCI_ID=" +
                                        hex("%04X", kVendor) + ':' + hex("%04X", device.device_id) +
                                        "\nPCI_SUBSYS_ID=" + hex("%04X", kVendor) + ':' +
                                        hex("%04X", kSubsystem) + "\nPCI_SLOT_NAME=" + slot + '\n');
}

}  // namespace

void add_device(Tree& tree, const Options& options, uint32_t gpu, const Socket& socket) {
  const std::string folder = device_folder(options, gpu);
  tree.add_root(folder);
  if (!is_further_partition(options, gpu)) add_pci_function(tree, options, gpu, socket);
  tree.add_directory(folder + "/drm/renderD" + std::to_string(render_minor_of(gpu)));
  // libdrm_amdgpu knows a GPU by its primary node, and takes GPUs without one for one and the same
  // (fd_compare(), amdgpu_device.c). /dev/dri has no such node, as in a container that was given
  // the render nodes only.
  tree.add_directory(folder + "/drm/card" + std::to_string(gpu));
}

}  // namespace uptempo::vgpu::interpose
