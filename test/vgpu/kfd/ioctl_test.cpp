#include <fcntl.h>
#include <libdrm/amdgpu_drm.h>
#include <linux/kfd_ioctl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "hsakmt_fixture.hpp"
#include "kfd/events.hpp"
#include "test/support/catch.hpp"

namespace uptempo::vgpu {
namespace {

struct Descriptor {
  int number = -1;
  explicit Descriptor(const char* path) : number(open(path, O_RDWR | O_CLOEXEC)) {
    REQUIRE(number >= 0);
  }
  ~Descriptor() { close(number); }
};

TEST_CASE("a number unknown to KFD returns EINVAL", "[ioctl]") {
  std::array<uint64_t, 16> block{};
  for (const unsigned number : {0x00u, 0x30u, 0x7fu, 0x85u, 0xffu}) {
    CAPTURE(number);
    CHECK(kfd_request(_IOC(_IOC_READ | _IOC_WRITE, 'K', number, sizeof block), block.data()) ==
          -EINVAL);
  }
}

TEST_CASE("requests for features that the device lacks are refused", "[ioctl]") {
  kfd_ioctl_svm_args svm{};
  CHECK(kfd_request(AMDKFD_IOC_SVM, &svm) == -EPERM);
  kfd_ioctl_smi_events_args smi{};
  CHECK(kfd_request(AMDKFD_IOC_SMI_EVENTS, &smi) == -EINVAL);
  kfd_ioctl_get_dmabuf_info_args dmabuf{};
  CHECK(kfd_request(AMDKFD_IOC_GET_DMABUF_INFO, &dmabuf) == -EINVAL);
  kfd_ioctl_set_xnack_mode_args xnack{};
  xnack.xnack_enabled = 1;
  CHECK(kfd_request(AMDKFD_IOC_SET_XNACK_MODE, &xnack) == -EPERM);
  xnack.xnack_enabled = -1;
  CHECK(kfd_request(AMDKFD_IOC_SET_XNACK_MODE, &xnack) == 0);
  CHECK(xnack.xnack_enabled == 0);
}

TEST_CASE("KFD refuses another driver's request", "[ioctl]") {
  const Descriptor kfd("/dev/kfd");
  int value = 0;
  errno = 0;
  CHECK(ioctl(kfd.number, TIOCGPGRP, &value) == -1);
  CHECK(errno == ENOTTY);
}

TEST_CASE("a null argument returns EFAULT", "[ioctl]") {
  CHECK(kfd_request(AMDKFD_IOC_GET_VERSION, nullptr) == -EFAULT);
}

TEST_CASE("a pointer that the program may not use returns EFAULT, as an argument and inside one",
          "[ioctl]") {
  void* const page = mmap(nullptr, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const auto bad = reinterpret_cast<uintptr_t>(page);
  CHECK(kfd_request(AMDKFD_IOC_GET_VERSION, page) == -EFAULT);
  CHECK(kfd_request(AMDKFD_IOC_CREATE_QUEUE, page) == -EFAULT);
  kfd_ioctl_wait_events_args wait{};
  wait.events_ptr = bad;
  wait.num_events = 1;
  CHECK(kfd_request(AMDKFD_IOC_WAIT_EVENTS, &wait) == -EFAULT);
  kfd_ioctl_get_process_apertures_new_args apertures{};
  kfd_process_device_apertures gpu{};
  apertures.num_of_nodes = 1;
  apertures.kfd_process_device_apertures_ptr = reinterpret_cast<uintptr_t>(&gpu);
  REQUIRE(kfd_request(AMDKFD_IOC_GET_PROCESS_APERTURES_NEW, &apertures) == 0);
  apertures.kfd_process_device_apertures_ptr = bad;
  CHECK(kfd_request(AMDKFD_IOC_GET_PROCESS_APERTURES_NEW, &apertures) == -EFAULT);
  kfd_ioctl_get_tile_config_args tiles{};
  tiles.gpu_id = gpu.gpu_id;
  tiles.num_tile_configs = 1;
  tiles.tile_config_ptr = bad;
  CHECK(kfd_request(AMDKFD_IOC_GET_TILE_CONFIG, &tiles) == -EFAULT);
  kfd_ioctl_map_memory_to_gpu_args map{};
  map.n_devices = 1;
  map.device_ids_array_ptr = bad;
  CHECK(kfd_request(AMDKFD_IOC_MAP_MEMORY_TO_GPU, &map) == -EFAULT);
  kfd_ioctl_set_cu_mask_args mask{};
  mask.num_cu_mask = 32;
  mask.cu_mask_ptr = bad;
  CHECK(kfd_request(AMDKFD_IOC_SET_CU_MASK, &mask) == -EFAULT);

  const Descriptor render("/dev/dri/renderD128");
  drm_amdgpu_info info{};
  info.query = AMDGPU_INFO_ACCEL_WORKING;
  info.return_size = sizeof(uint32_t);
  info.return_pointer = bad;
  CHECK(ioctl(render.number, DRM_IOCTL_AMDGPU_INFO, &info) == -1);
  CHECK(errno == EFAULT);
  CHECK(ioctl(render.number, DRM_IOCTL_AMDGPU_INFO, page) == -1);
  CHECK(errno == EFAULT);
  munmap(page, kPage);
}

TEST_CASE("a caller with a shorter struct receives the fields that fit", "[ioctl]") {
  struct {
    uint32_t major = 0;
    uint32_t sentinel = 0x5a5a5a5a;
  } version;
  CHECK(kfd_request(_IOC(_IOC_READ, 'K', 0x01, sizeof version.major), &version) == 0);
  CHECK(version.major == 1);
  CHECK(version.sentinel == 0x5a5a5a5a);
}

TEST_CASE("duplicates of the descriptor refer to the device too", "[ioctl]") {
  const Descriptor kfd("/dev/kfd");
  const int duplicate = dup(kfd.number);
  kfd_ioctl_get_version_args version{};
  CHECK(ioctl(duplicate, AMDKFD_IOC_GET_VERSION, &version) == 0);
  CHECK(version.major_version == 1);
  close(duplicate);
}

TEST_CASE("close-on-exec is as requested", "[ioctl]") {
  const int kept = open("/dev/kfd", O_RDWR);
  const int closed = open("/dev/kfd", O_RDWR | O_CLOEXEC);
  CHECK((fcntl(kept, F_GETFD) & FD_CLOEXEC) == 0);
  CHECK((fcntl(closed, F_GETFD) & FD_CLOEXEC) != 0);
  close(kept);
  close(closed);
}

TEST_CASE("a request without room returns the number of apertures", "[ioctl]") {
  kfd_ioctl_get_process_apertures_new_args count{};
  REQUIRE(kfd_request(AMDKFD_IOC_GET_PROCESS_APERTURES_NEW, &count) == 0);
  CHECK(count.num_of_nodes == 1);
  kfd_process_device_apertures gpu{};
  count.kfd_process_device_apertures_ptr = reinterpret_cast<uintptr_t>(&gpu);
  REQUIRE(kfd_request(AMDKFD_IOC_GET_PROCESS_APERTURES_NEW, &count) == 0);
  CHECK(gpu.gpu_id != 0);
  CHECK(gpu.gpuvm_limit == (uint64_t{1} << 47) - 1);
  CHECK(gpu.lds_base < gpu.lds_limit);
  CHECK(gpu.scratch_base > gpu.lds_limit);
  kfd_ioctl_get_process_apertures_args old{};
  REQUIRE(kfd_request(AMDKFD_IOC_GET_PROCESS_APERTURES, &old) == 0);
  CHECK(old.num_of_nodes == 1);
  CHECK(std::memcmp(&old.process_apertures[0], &gpu, sizeof gpu) == 0);
}

TEST_CASE("tile configuration fills the given room with zeros", "[ioctl]") {
  kfd_process_device_apertures gpu{};
  kfd_ioctl_get_process_apertures_new_args apertures{};
  apertures.kfd_process_device_apertures_ptr = reinterpret_cast<uintptr_t>(&gpu);
  apertures.num_of_nodes = 1;
  REQUIRE(kfd_request(AMDKFD_IOC_GET_PROCESS_APERTURES_NEW, &apertures) == 0);
  std::array<uint32_t, 9> tiles;
  tiles.fill(0xcccccccc);
  kfd_ioctl_get_tile_config_args config{};
  config.gpu_id = gpu.gpu_id;
  config.tile_config_ptr = reinterpret_cast<uintptr_t>(tiles.data());
  config.num_tile_configs = 8;
  REQUIRE(kfd_request(AMDKFD_IOC_GET_TILE_CONFIG, &config) == 0);
  CHECK(config.gb_addr_config == 0x2a110002);
  CHECK(config.num_tile_configs == 8);
  CHECK(tiles[7] == 0);
  CHECK(tiles[8] == 0xcccccccc);
}

TEST_CASE("the wait request passes event ages in and out", "[ioctl]") {
  kfd_ioctl_create_event_args create{};
  create.auto_reset = 1;
  REQUIRE(kfd_request(AMDKFD_IOC_CREATE_EVENT, &create) == 0);
  CHECK(create.event_page_offset != 0);
  kfd_ioctl_set_event_args set{};
  set.event_id = create.event_id;
  REQUIRE(kfd_request(AMDKFD_IOC_SET_EVENT, &set) == 0);
  kfd::EventData data{};
  data.event_id = create.event_id;
  data.signal_event_data.last_event_age = 1;
  kfd_ioctl_wait_events_args wait{};
  wait.events_ptr = reinterpret_cast<uintptr_t>(&data);
  wait.num_events = 1;
  REQUIRE(kfd_request(AMDKFD_IOC_WAIT_EVENTS, &wait) == 0);
  CHECK(wait.wait_result == KFD_IOC_WAIT_RESULT_COMPLETE);
  CHECK(data.signal_event_data.last_event_age == 2);
  kfd_ioctl_destroy_event_args destroy{};
  destroy.event_id = create.event_id;
  CHECK(kfd_request(AMDKFD_IOC_DESTROY_EVENT, &destroy) == 0);
  CHECK(kfd_request(AMDKFD_IOC_WAIT_EVENTS, &wait) == -EINVAL);
}

TEST_CASE("a wait for more events than the limit returns ENOMEM", "[ioctl]") {
  kfd::EventData data{};
  kfd_ioctl_wait_events_args wait{};
  wait.events_ptr = reinterpret_cast<uintptr_t>(&data);
  wait.num_events = 0x7fffffff;
  CHECK(kfd_request(AMDKFD_IOC_WAIT_EVENTS, &wait) == -ENOMEM);
}

// A sanitizer's allocator ends the program if an allocation fails.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("a request without memory left returns ENOMEM, not an exception", "[ioctl]") {
  constexpr unsigned kMost = 1u << 20;
  const Descriptor kfd("/dev/kfd");
  std::vector<uint32_t> created;
  created.reserve(kMost);
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_AS, &before) == 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_AS, &none) == 0);
  int error = 0;
  while (error == 0 && created.size() < kMost) {
    kfd_ioctl_create_event_args create{};
    create.event_type = KFD_IOC_EVENT_HW_EXCEPTION;
    if (ioctl(kfd.number, AMDKFD_IOC_CREATE_EVENT, &create) == 0)
      created.push_back(create.event_id);
    else
      error = errno;
  }
  REQUIRE(setrlimit(RLIMIT_AS, &before) == 0);
  CHECK(error == ENOMEM);
  int destroyed = 0;
  for (const uint32_t id : created) {
    kfd_ioctl_destroy_event_args destroy{};
    destroy.event_id = id;
    destroyed |= ioctl(kfd.number, AMDKFD_IOC_DESTROY_EVENT, &destroy);
  }
  CHECK(destroyed == 0);
}
#endif

}  // namespace
}  // namespace uptempo::vgpu
