#include "hsakmt_fixture.hpp"

#include <fcntl.h>
#include <linux/kfd_ioctl.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <cerrno>
#include <cstdlib>
#include <vector>

#include "test/support/catch.hpp"

namespace uptempo::vgpu {

const DeviceDescription& expected_device() {
  const char* target = std::getenv("UPTEMPO_VGPU_DEVICE");
  const DeviceDescription* description =
      find_device_description(target == nullptr ? "gfx90a" : target);
  REQUIRE(description != nullptr);
  return *description;
}

Thunk::Thunk() {
  REQUIRE(hsaKmtOpenKFD() == HSAKMT_STATUS_SUCCESS);
  REQUIRE(hsaKmtAcquireSystemProperties(&system_) == HSAKMT_STATUS_SUCCESS);
  vram_at_start_ = available_vram();
}

Thunk::~Thunk() {
  CHECK(available_vram() == vram_at_start_);
  CHECK(hsaKmtReleaseSystemProperties() == HSAKMT_STATUS_SUCCESS);
  CHECK(hsaKmtCloseKFD() == HSAKMT_STATUS_SUCCESS);
}

HSAuint64 Thunk::available_vram() const {
  // Makes the request itself, because ROCT 5.2.3 lacks hsaKmtAvailableMemory().
  kfd_ioctl_get_process_apertures_new_args apertures{};
  kfd_process_device_apertures gpu{};
  apertures.kfd_process_device_apertures_ptr = reinterpret_cast<uintptr_t>(&gpu);
  apertures.num_of_nodes = 1;
  CHECK(kfd_request(AMDKFD_IOC_GET_PROCESS_APERTURES_NEW, &apertures) == 0);
  kfd_ioctl_get_available_memory_args memory{};
  memory.gpu_id = gpu.gpu_id;
  CHECK(kfd_request(AMDKFD_IOC_AVAILABLE_MEMORY, &memory) == 0);
  return memory.available;
}

HsaMemFlags host_memory() {
  HsaMemFlags flags{};
  flags.ui32.HostAccess = 1;
  flags.ui32.NonPaged = 0;
  flags.ui32.PageSize = HSA_PAGE_SIZE_4KB;
  return flags;
}

HsaMemFlags vram(bool host_access) {
  HsaMemFlags flags{};
  flags.ui32.NonPaged = 1;
  flags.ui32.HostAccess = host_access ? 1 : 0;
  flags.ui32.CoarseGrain = 1;
  flags.ui32.PageSize = HSA_PAGE_SIZE_4KB;
  return flags;
}

int kfd_request(unsigned long request, void* argument) {
  const int descriptor = open("/dev/kfd", O_RDWR | O_CLOEXEC);
  REQUIRE(descriptor >= 0);
  const int result = ioctl(descriptor, request, argument);
  const int error = errno;
  close(descriptor);
  return result == -1 ? -error : result;
}

HsaNodeProperties properties_of(HSAuint32 node) {
  HsaNodeProperties properties{};
  REQUIRE(hsaKmtGetNodeProperties(node, &properties) == HSAKMT_STATUS_SUCCESS);
  return properties;
}

std::map<HSAuint32, HsaIoLinkProperties> links_of(HSAuint32 node) {
  std::vector<HsaIoLinkProperties> links(properties_of(node).NumIOLinks);
  if (links.empty()) return {};  // ROCT refuses to list none
  REQUIRE(hsaKmtGetNodeIoLinkProperties(node, static_cast<HSAuint32>(links.size()), links.data()) ==
          HSAKMT_STATUS_SUCCESS);
  std::map<HSAuint32, HsaIoLinkProperties> by_target;
  for (const HsaIoLinkProperties& link : links) {
    CHECK(link.NodeFrom == node);
    by_target[value(link.NodeTo)] = link;
  }
  CHECK(by_target.size() == links.size());
  return by_target;
}

}  // namespace uptempo::vgpu
