// A machine with several GPUs as ROCT and KFD's requests show it. Expected links and weights are
// those of Linux: kfd_fill_gpu_xgmi_link_to_gpu() in kfd_crat.c (15 for a hop), kfd_add_peer_prop()
// and kfd_create_indirect_link_prop() in kfd_topology.c (sums of 20 for each PCI Express link and
// the sockets' distance).
#include <amdgpu.h>
#include <amdgpu_drm.h>
#include <fcntl.h>
#include <linux/kfd_ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <xf86drm.h>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "hsakmt_fixture.hpp"
#include "test/support/catch.hpp"

namespace uptempo::vgpu {
namespace {

// Two sockets; an MI210 and an MI100 at the first, an MI210 at the second.
constexpr HSAuint32 kSocket0 = 0, kSocket1 = 1, kFirst = 2, kMi100 = 3, kLast = 4;

std::vector<kfd_process_device_apertures> apertures() {
  kfd_ioctl_get_process_apertures_new_args args{};
  REQUIRE(kfd_request(AMDKFD_IOC_GET_PROCESS_APERTURES_NEW, &args) == 0);
  std::vector<kfd_process_device_apertures> all(args.num_of_nodes);
  args.kfd_process_device_apertures_ptr = reinterpret_cast<uintptr_t>(all.data());
  REQUIRE(kfd_request(AMDKFD_IOC_GET_PROCESS_APERTURES_NEW, &args) == 0);
  REQUIRE(args.num_of_nodes == all.size());
  return all;
}

uint64_t available(uint32_t gpu_id) {
  kfd_ioctl_get_available_memory_args memory{};
  memory.gpu_id = gpu_id;
  CHECK(kfd_request(AMDKFD_IOC_AVAILABLE_MEMORY, &memory) == 0);
  return memory.available;
}

TEST_CASE("each GPU has a node, an identity, a PCI address and a render node", "[gpus]") {
  const Thunk thunk;
  REQUIRE(value(thunk.system().NumNodes) == 5);
  std::set<HSAuint64> ids, addresses, minors, unique;
  for (const auto& gpu : apertures()) ids.insert(gpu.gpu_id);
  for (const HSAuint32 node : {kFirst, kMi100, kLast}) {
    const HsaNodeProperties properties = properties_of(node);
    const HSAuint32 stepping = properties.EngineId.ui32.Stepping;
    CHECK(stepping == (node == kMi100 ? 8u : 10u));
    addresses.insert(value(properties.LocationId));
    minors.insert(static_cast<HSAuint64>(value(properties.DrmRenderMinor)));
    unique.insert(value(properties.UniqueID));
    struct stat status {};
    const std::string path = "/dev/dri/renderD" + std::to_string(value(properties.DrmRenderMinor));
    REQUIRE(stat(path.c_str(), &status) == 0);
    CHECK(S_ISCHR(status.st_mode));
    CHECK(major(status.st_rdev) == 226);
    CHECK(minor(status.st_rdev) == static_cast<unsigned>(value(properties.DrmRenderMinor)));
    // libdrm tells devices apart by the card's number.
    const std::string card = "/sys/dev/char/226:" + std::to_string(minor(status.st_rdev)) +
                             "/device/drm/card" + std::to_string(node - kFirst);
    CHECK(stat(card.c_str(), &status) == 0);
  }
  CHECK(ids.size() == 3);
  CHECK(addresses.size() == 3);
  CHECK(unique.size() == 3);
  CHECK(minors == std::set<HSAuint64>{128, 129, 130});
}

TEST_CASE("libdrm tells the GPUs apart", "[gpus]") {
  const Thunk thunk;
  std::map<std::string, amdgpu_device_handle> devices;  // by primary node
  for (const char* path : {"/dev/dri/renderD128", "/dev/dri/renderD129", "/dev/dri/renderD130"}) {
    CAPTURE(path);
    const int node = open(path, O_RDWR | O_CLOEXEC);
    REQUIRE(node >= 0);
    uint32_t major = 0, minor = 0;
    amdgpu_device_handle device = nullptr;
    REQUIRE(amdgpu_device_initialize(node, &major, &minor, &device) == 0);
    char* const primary = drmGetPrimaryDeviceNameFromFd(node);
    REQUIRE(primary != nullptr);
    devices[primary] = device;
    std::free(primary);
    amdgpu_gpu_info info{};
    REQUIRE(amdgpu_query_gpu_info(device, &info) == 0);
    CHECK(info.asic_id ==
          value(properties_of(kFirst + static_cast<HSAuint32>(devices.size()) - 1).DeviceId));
    close(node);
  }
  CHECK(devices.size() == 3);
  for (const auto& [primary, device] : devices) amdgpu_device_deinitialize(device);
}

TEST_CASE("GPUs of one target form a hive, a GPU alone has none", "[gpus]") {
  const Thunk thunk;
  CHECK(value(properties_of(kFirst).HiveID) != 0);
  CHECK(value(properties_of(kFirst).HiveID) == value(properties_of(kLast).HiveID));
  CHECK(value(properties_of(kMi100).HiveID) == 0);
}

TEST_CASE("links are xGMI in the hive and PCI Express over the host elsewhere", "[gpus]") {
  const Thunk thunk;
  struct Row {
    HSAuint32 from, to;
    HSA_IOLINKTYPE type;
    HSAuint32 weight;
  };
  for (const Row& row : {Row{kSocket0, kFirst, HSA_IOLINKTYPE_PCIEXPRESS, 20},
                         Row{kSocket0, kMi100, HSA_IOLINKTYPE_PCIEXPRESS, 20},
                         Row{kSocket0, kLast, HSA_IOLINKTYPE_PCIEXPRESS, 20 + 32},
                         Row{kSocket1, kLast, HSA_IOLINKTYPE_PCIEXPRESS, 20},
                         Row{kFirst, kSocket0, HSA_IOLINKTYPE_PCIEXPRESS, 20},
                         Row{kFirst, kSocket1, HSA_IOLINKTYPE_PCIEXPRESS, 20 + 32},
                         Row{kFirst, kMi100, HSA_IOLINKTYPE_PCIEXPRESS, 20 + 20},
                         Row{kFirst, kLast, HSA_IOLINK_TYPE_XGMI, 15},
                         Row{kMi100, kLast, HSA_IOLINKTYPE_PCIEXPRESS, 20 + 20 + 32},
                         Row{kLast, kFirst, HSA_IOLINK_TYPE_XGMI, 15}}) {
    CAPTURE(row.from, row.to);
    const auto links = links_of(row.from);
    REQUIRE(links.contains(row.to));
    CHECK(links.at(row.to).IoLinkType == row.type);
    CHECK(links.at(row.to).Weight == row.weight);
  }
  CHECK(links_of(kFirst).at(kLast).MaximumBandwidth == 50'000);
}

TEST_CASE("memory of one GPU is taken from that GPU only", "[gpus]") {
  const Thunk thunk;
  const auto gpus = apertures();
  REQUIRE(gpus.size() == 3);
  std::vector<uint64_t> before;
  for (const auto& gpu : gpus) before.push_back(available(gpu.gpu_id));
  CHECK(before[0] == find_device_description("gfx90a")->vram_bytes);
  CHECK(before[1] == find_device_description("gfx908")->vram_bytes);
  void* memory = nullptr;
  REQUIRE(hsaKmtAllocMemory(kMi100, 16 * kPage, vram(true), &memory) == HSAKMT_STATUS_SUCCESS);
  CHECK(available(gpus[0].gpu_id) == before[0]);
  CHECK(available(gpus[1].gpu_id) == before[1] - 16 * kPage);
  CHECK(available(gpus[2].gpu_id) == before[2]);
  CHECK(hsaKmtFreeMemory(memory, 16 * kPage) == HSAKMT_STATUS_SUCCESS);
}

TEST_CASE("a buffer is mapped to each GPU separately", "[gpus]") {
  const Thunk thunk;
  const auto gpus = apertures();
  void* const address = mmap(nullptr, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  kfd_ioctl_alloc_memory_of_gpu_args buffer{};
  buffer.va_addr = reinterpret_cast<uintptr_t>(address);
  buffer.size = kPage;
  buffer.gpu_id = gpus[1].gpu_id;
  buffer.flags = KFD_IOC_ALLOC_MEM_FLAGS_VRAM | 1u << 31;
  REQUIRE(kfd_request(AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &buffer) == 0);
  const auto request = [&](unsigned long number, std::vector<uint32_t> ids, uint32_t succeeded) {
    kfd_ioctl_map_memory_to_gpu_args args{};
    args.handle = buffer.handle;
    args.device_ids_array_ptr = reinterpret_cast<uintptr_t>(ids.data());
    args.n_devices = static_cast<uint32_t>(ids.size());
    const int result = kfd_request(number, &args);
    CHECK(args.n_success == succeeded);
    return result;
  };
  const uint32_t owner = gpus[1].gpu_id, peer = gpus[2].gpu_id;
  CHECK(request(AMDKFD_IOC_MAP_MEMORY_TO_GPU, {owner, peer}, 2) == 0);
  CHECK(request(AMDKFD_IOC_MAP_MEMORY_TO_GPU, {peer, 1u}, 1) == -EINVAL);  // no such GPU
  CHECK(request(AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU, {gpus[0].gpu_id}, 0) == -EINVAL);
  CHECK(request(AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU, {owner}, 1) == 0);
  kfd_ioctl_free_memory_of_gpu_args release{.handle = buffer.handle};
  CHECK(kfd_request(AMDKFD_IOC_FREE_MEMORY_OF_GPU, &release) == -EBUSY);
  CHECK(request(AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU, {owner}, 0) == -EINVAL);
  CHECK(request(AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU, {peer}, 1) == 0);
  CHECK(kfd_request(AMDKFD_IOC_FREE_MEMORY_OF_GPU, &release) == 0);
  munmap(address, kPage);
}

// Five MI60: a hive of four in a ring, and one alone.
TEST_CASE("boards with two links form a ring, in which the opposite board is two hops away",
          "[.][ring]") {
  const Thunk thunk;
  REQUIRE(value(thunk.system().NumNodes) == 6);
  const auto links = links_of(1);
  for (const auto& [node, weight] : {std::pair{2u, 15u}, {3u, 30u}, {4u, 15u}}) {
    CHECK(links.at(node).IoLinkType == HSA_IOLINK_TYPE_XGMI);
    CHECK(links.at(node).Weight == weight);
  }
  CHECK(links.at(5).IoLinkType == HSA_IOLINKTYPE_PCIEXPRESS);
  CHECK(value(properties_of(4).HiveID) == value(properties_of(1).HiveID));
  CHECK(value(properties_of(5).HiveID) == 0);
}

// With a small BAR neither the host nor a peer outside the hive reaches a GPU's memory.
TEST_CASE("a small BAR leaves xGMI links only", "[.][small_bar]") {
  const Thunk thunk;
  CHECK(links_of(1).contains(3));
  CHECK_FALSE(links_of(1).contains(2));
  CHECK_FALSE(links_of(0).contains(1));
}

}  // namespace
}  // namespace uptempo::vgpu
