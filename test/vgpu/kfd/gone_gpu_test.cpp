// A GPU that disappears, as the driver shows it. Expected results are those of Linux after
// drm_dev_unplug(): drm_ioctl() returns ENODEV, a mapping cannot be written
// (amdgpu_vm_update_range()), and unmap_bo_from_gpuvm() ignores that.
//
// The launcher's rule removes the second GPU at the first packet of its queue.
#include <fcntl.h>
#include <hsa/hsa.h>
#include <libdrm/amdgpu_drm.h>
#include <linux/kfd_ioctl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <vector>

#include "hsakmt_fixture.hpp"
#include "test/support/catch.hpp"
#include "test/support/eventually.hpp"

namespace uptempo::vgpu {
namespace {

constexpr HSAuint32 kGoneNode = kGpuNode + 1;

std::vector<uint32_t> gpu_ids() {
  kfd_ioctl_get_process_apertures_new_args args{};
  std::vector<kfd_process_device_apertures> all(2);
  args.num_of_nodes = 2;
  args.kfd_process_device_apertures_ptr = reinterpret_cast<uintptr_t>(all.data());
  REQUIRE(kfd_request(AMDKFD_IOC_GET_PROCESS_APERTURES_NEW, &args) == 0);
  REQUIRE(args.num_of_nodes == 2);
  return {all[0].gpu_id, all[1].gpu_id};
}

struct Buffer {
  explicit Buffer(uint32_t gpu_id)
      : address(mmap(nullptr, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    kfd_ioctl_alloc_memory_of_gpu_args args{};
    args.va_addr = reinterpret_cast<uintptr_t>(address);
    args.size = kPage;
    args.gpu_id = gpu_id;
    args.flags = KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE;
    error = kfd_request(AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &args);
    handle = args.handle;
  }
  ~Buffer() { munmap(address, kPage); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  // Returns the result, and the number of GPUs that succeeded in `succeeded`.
  int request(unsigned long number, std::vector<uint32_t> ids, uint32_t& succeeded) const {
    kfd_ioctl_map_memory_to_gpu_args args{};
    args.handle = handle;
    args.device_ids_array_ptr = reinterpret_cast<uintptr_t>(ids.data());
    args.n_devices = static_cast<uint32_t>(ids.size());
    const int result = kfd_request(number, &args);
    succeeded = args.n_success;
    return result;
  }
  int free() const {
    kfd_ioctl_free_memory_of_gpu_args args{.handle = handle};
    return kfd_request(AMDKFD_IOC_FREE_MEMORY_OF_GPU, &args);
  }

  void* const address;
  uint64_t handle = 0;
  int error = 0;
};

int available(uint32_t gpu_id) {
  kfd_ioctl_get_available_memory_args memory{};
  memory.gpu_id = gpu_id;
  return kfd_request(AMDKFD_IOC_AVAILABLE_MEMORY, &memory);
}

// Returns 0 or the error number of a DRM request.
int drm_error(int descriptor) {
  uint32_t works = 0;
  drm_amdgpu_info info{};
  info.query = AMDGPU_INFO_ACCEL_WORKING;
  info.return_size = sizeof works;
  info.return_pointer = reinterpret_cast<uintptr_t>(&works);
  return ioctl(descriptor, DRM_IOCTL_AMDGPU_INFO, &info) == 0 ? 0 : errno;
}

TEST_CASE("a GPU that is gone refuses requests with ENODEV, but unmaps and frees memory",
          "[gone]") {
  const Thunk thunk;
  const std::vector<uint32_t> ids = gpu_ids();
  const uint32_t stays = ids[0], gone = ids[1];
  const int node = open("/dev/dri/renderD129", O_RDWR | O_CLOEXEC);
  const int other_node = open("/dev/dri/renderD128", O_RDWR | O_CLOEXEC);
  REQUIRE(node >= 0);
  REQUIRE(other_node >= 0);
  REQUIRE(drm_error(node) == 0);
  const Buffer mapped(gone), unmapped(gone);
  REQUIRE(mapped.error == 0);
  REQUIRE(unmapped.error == 0);
  uint32_t count = 0;
  REQUIRE(mapped.request(AMDKFD_IOC_MAP_MEMORY_TO_GPU, {gone, stays}, count) == 0);

  // A queue of one barrier packet.
  void* memory = nullptr;
  HsaMemFlags flags = host_memory();
  flags.ui32.ExecuteAccess = 1;
  REQUIRE(hsaKmtAllocMemory(kCpuNode, 2 * kPage, flags, &memory) == HSAKMT_STATUS_SUCCESS);
  HSAuint64 alternate = 0;
  REQUIRE(hsaKmtMapMemoryToGPU(memory, 2 * kPage, &alternate) == HSAKMT_STATUS_SUCCESS);
  auto* const packets = static_cast<hsa_barrier_and_packet_t*>(memory);
  for (uint32_t packet = 0; packet < kPage / sizeof *packets; ++packet)
    packets[packet].header = HSA_PACKET_TYPE_INVALID;
  packets[0] = {};
  packets[0].header = HSA_PACKET_TYPE_BARRIER_AND << HSA_PACKET_HEADER_TYPE;
  auto* const indices = reinterpret_cast<uint64_t*>(static_cast<char*>(memory) + kPage + 0x200);
  HsaQueueResource resource{};
  resource.QueueWptrValue = reinterpret_cast<HSAuint64>(indices);
  resource.QueueRptrValue = reinterpret_cast<HSAuint64>(indices) + 0x48;
  REQUIRE(hsaKmtCreateQueue(kGoneNode, HSA_QUEUE_COMPUTE_AQL, 100, HSA_QUEUE_PRIORITY_NORMAL,
                            memory, kPage, nullptr, &resource) == HSAKMT_STATUS_SUCCESS);
  CHECK(available(gone) == 0);
  std::atomic_ref(*indices).store(1, std::memory_order_release);
  std::atomic_ref(*value(resource.Queue_DoorBell_aql)).store(0, std::memory_order_release);
  REQUIRE(test::eventually([&] { return available(gone) == -ENODEV; }));

  CHECK(available(stays) == 0);
  CHECK(available(0x7777) == -EINVAL);
  const Buffer refused(gone);
  CHECK(refused.error == -ENODEV);
  CHECK(unmapped.request(AMDKFD_IOC_MAP_MEMORY_TO_GPU, {stays, gone}, count) == -ENODEV);
  CHECK(count == 1);
  CHECK(unmapped.request(AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU, {stays}, count) == 0);
  CHECK(mapped.request(AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU, {gone, stays}, count) == 0);
  CHECK(count == 2);
  CHECK(mapped.request(AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU, {gone}, count) == -EINVAL);
  CHECK(mapped.free() == 0);
  CHECK(unmapped.free() == 0);
  CHECK(drm_error(node) == ENODEV);
  CHECK(drm_error(other_node) == 0);
  CHECK(open("/dev/dri/renderD129", O_RDWR | O_CLOEXEC) == -1);
  CHECK(errno == ENODEV);
  CHECK(mmap(nullptr, kPage, PROT_READ, MAP_SHARED, node, 0) == MAP_FAILED);
  CHECK(errno == ENODEV);
  errno = 0;
  (void)mmap(nullptr, kPage, PROT_READ, MAP_SHARED, other_node, 0);
  CHECK(errno != ENODEV);

  CHECK(hsaKmtDestroyQueue(value(resource.QueueId)) == HSAKMT_STATUS_SUCCESS);
  CHECK(hsaKmtUnmapMemoryToGPU(memory) == HSAKMT_STATUS_SUCCESS);
  CHECK(hsaKmtFreeMemory(memory, 2 * kPage) == HSAKMT_STATUS_SUCCESS);
  close(node);
  close(other_node);
}

}  // namespace
}  // namespace uptempo::vgpu
