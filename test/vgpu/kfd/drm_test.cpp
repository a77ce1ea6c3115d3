#include <amdgpu.h>
#include <amdgpu_drm.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <xf86drm.h>
#include <cerrno>
#include <string>

#include "hsakmt_fixture.hpp"
#include "test/support/catch.hpp"

namespace uptempo::vgpu {
namespace {

struct RenderNode {
  int descriptor = open("/dev/dri/renderD128", O_RDWR | O_CLOEXEC);
  RenderNode() { REQUIRE(descriptor >= 0); }
  ~RenderNode() { close(descriptor); }
};

TEST_CASE("libdrm finds the driver amdgpu on a render node", "[drm]") {
  const RenderNode node;
  CHECK(drmGetNodeTypeFromFd(node.descriptor) == DRM_NODE_RENDER);
  drmVersionPtr version = drmGetVersion(node.descriptor);
  REQUIRE(version != nullptr);
  CHECK(std::string(version->name) == "amdgpu");
  CHECK(version->version_major == 3);
  CHECK(version->version_minor == 48);
  drmFreeVersion(version);
}

TEST_CASE("libdrm_amdgpu accepts the device and names it", "[drm]") {
  const RenderNode node;
  uint32_t major = 0;
  uint32_t minor = 0;
  amdgpu_device_handle device = nullptr;
  REQUIRE(amdgpu_device_initialize(node.descriptor, &major, &minor, &device) == 0);
  CHECK(std::string(amdgpu_get_marketing_name(device)) == expected_device().marketing_name);
  amdgpu_gpu_info info{};
  REQUIRE(amdgpu_query_gpu_info(device, &info) == 0);
  CHECK(info.asic_id == expected_device().device_id);
  // Linux counts those of one XCD (adev->gfx.config.max_shader_engines).
  CHECK(info.num_shader_engines == expected_device().shader_engines / expected_device().xcds);
  CHECK(info.cu_active_number == expected_device().compute_units);
  CHECK(info.vram_bit_width == expected_device().memory_width_bits);
  CHECK(info.max_engine_clk == expected_device().engine_clock_mhz * 1000);
  amdgpu_device_deinitialize(device);
}

TEST_CASE("heap sizes are the device's, and usage follows allocations", "[drm]") {
  const Thunk thunk;
  const RenderNode node;
  uint32_t major = 0;
  uint32_t minor = 0;
  amdgpu_device_handle device = nullptr;
  REQUIRE(amdgpu_device_initialize(node.descriptor, &major, &minor, &device) == 0);
  amdgpu_heap_info heap{};
  REQUIRE(amdgpu_query_heap_info(device, AMDGPU_GEM_DOMAIN_VRAM, 0, &heap) == 0);
  CHECK(heap.heap_size == expected_device().vram_bytes);
  const uint64_t before = heap.heap_usage;
  void* memory = nullptr;
  REQUIRE(hsaKmtAllocMemory(kGpuNode, 16 * kPage, vram(false), &memory) == HSAKMT_STATUS_SUCCESS);
  REQUIRE(amdgpu_query_heap_info(device, AMDGPU_GEM_DOMAIN_VRAM, 0, &heap) == 0);
  CHECK(heap.heap_usage == before + 16 * kPage);
  REQUIRE(hsaKmtFreeMemory(memory, 16 * kPage) == HSAKMT_STATUS_SUCCESS);
  uint64_t ticks = 0;
  CHECK(amdgpu_query_info(device, AMDGPU_INFO_TIMESTAMP, sizeof ticks, &ticks) == 0);
  CHECK(ticks != 0);
  amdgpu_device_deinitialize(device);
}

TEST_CASE("queries and requests that are not emulated return EINVAL", "[drm]") {
  const RenderNode node;
  drm_amdgpu_info query{};
  query.query = 0x7777;
  CHECK(ioctl(node.descriptor, DRM_IOCTL_AMDGPU_INFO, &query) == -1);
  CHECK(errno == EINVAL);
  drm_amdgpu_gem_create create{};
  CHECK(ioctl(node.descriptor, DRM_IOCTL_AMDGPU_GEM_CREATE, &create) == -1);
  CHECK(errno == EINVAL);
}

}  // namespace
}  // namespace uptempo::vgpu
