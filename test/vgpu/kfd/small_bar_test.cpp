// A machine whose BAR is smaller than VRAM, as ROCT sees it. Linux reports one private
// heap and no link from the host to the GPU, and refuses memory that the host could reach.
#include <amdgpu.h>
#include <amdgpu_drm.h>
#include <fcntl.h>
#include <unistd.h>
#include <fstream>

#include "hsakmt_fixture.hpp"
#include "test/support/catch.hpp"

namespace uptempo::vgpu {
namespace {

TEST_CASE("device memory is one private heap", "[small-bar]") {
  const Thunk thunk;
  HsaMemoryProperties bank{};
  REQUIRE(hsaKmtGetNodeMemoryProperties(kGpuNode, 1, &bank) == HSAKMT_STATUS_SUCCESS);
  CHECK(bank.HeapType == HSA_HEAPTYPE_FRAME_BUFFER_PRIVATE);
  CHECK(value(bank.SizeInBytes) > 0);
}

TEST_CASE("a link leads from the GPU to the host, and none back", "[small-bar]") {
  const Thunk thunk;
  CHECK(value(properties_of(kGpuNode).NumIOLinks) == 1);
  CHECK(value(properties_of(kCpuNode).NumIOLinks) == 0);
}

TEST_CASE("memory that the host could reach is refused", "[small-bar]") {
  const Thunk thunk;
  for (const bool host_access : {false, true}) {
    CAPTURE(host_access);
    void* memory = nullptr;
    const HSAKMT_STATUS status = hsaKmtAllocMemory(kGpuNode, kPage, vram(host_access), &memory);
    CHECK((status == HSAKMT_STATUS_SUCCESS) == !host_access);
    if (memory != nullptr) CHECK(hsaKmtFreeMemory(memory, kPage) == HSAKMT_STATUS_SUCCESS);
  }
}

TEST_CASE("the DRM node and the PCI device show 256 MiB of device memory", "[small-bar]") {
  const int descriptor = open("/dev/dri/renderD128", O_RDWR | O_CLOEXEC);
  REQUIRE(descriptor >= 0);
  uint32_t major = 0, minor = 0;
  amdgpu_device_handle device = nullptr;
  REQUIRE(amdgpu_device_initialize(descriptor, &major, &minor, &device) == 0);
  constexpr uint64_t kVisible = uint64_t{256} << 20;
  amdgpu_heap_info heap{};
  REQUIRE(amdgpu_query_heap_info(device, AMDGPU_GEM_DOMAIN_VRAM,
                                 AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED, &heap) == 0);
  CHECK(heap.heap_size == kVisible);
  REQUIRE(amdgpu_query_heap_info(device, AMDGPU_GEM_DOMAIN_VRAM, 0, &heap) == 0);
  CHECK(heap.heap_size == expected_device().vram_bytes);
  amdgpu_device_deinitialize(device);
  close(descriptor);
  std::ifstream resources("/sys/bus/pci/devices/0000:03:00.0/resource");
  uint64_t first = 0, last = 0;
  resources >> std::hex >> first >> last;
  CHECK(last - first + 1 == kVisible);
}

}  // namespace
}  // namespace uptempo::vgpu
