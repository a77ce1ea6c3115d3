// The features of a driver of each age, through raw requests and ROCT. Runs once with each profile:
// the expectations follow Linux's list of KFD versions (include/uapi/linux/kfd_ioctl.h).
#include <linux/kfd_ioctl.h>
#include <unistd.h>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <utility>
#include <vector>

#include "hsakmt_fixture.hpp"
#include "test/support/catch.hpp"

namespace uptempo::vgpu {
namespace {

uint32_t expected_minor() {
  const char* const version = std::getenv("UPTEMPO_VGPU_KFD");  // "1.8" to "1.18"
  return version == nullptr ? 18 : static_cast<uint32_t>(std::atoi(version + 2));
}

uint32_t gpu_id() {
  std::ifstream file("/sys/class/kfd/kfd/topology/nodes/1/gpu_id");
  uint32_t id = 0;
  REQUIRE(file >> id);
  return id;
}

// ROCT, open. Thunk asks for the available memory, which a driver before 1.9 cannot tell.
struct OpenThunk {
  OpenThunk() {
    REQUIRE(hsaKmtOpenKFD() == HSAKMT_STATUS_SUCCESS);
    HsaSystemProperties system{};
    REQUIRE(hsaKmtAcquireSystemProperties(&system) == HSAKMT_STATUS_SUCCESS);
  }
  ~OpenThunk() {
    CHECK(hsaKmtReleaseSystemProperties() == HSAKMT_STATUS_SUCCESS);
    CHECK(hsaKmtCloseKFD() == HSAKMT_STATUS_SUCCESS);
  }
  OpenThunk(const OpenThunk&) = delete;
  OpenThunk& operator=(const OpenThunk&) = delete;
};

template <typename Args>
unsigned long request_of(unsigned number) {
  return _IOC(_IOC_READ | _IOC_WRITE, 'K', number, sizeof(Args));
}

struct RuntimeEnable {
  uint64_t r_debug = 0;
  uint32_t mode_mask = 1;
  uint32_t capabilities_mask = 0;
};
int enable_runtime(bool enable) {
  RuntimeEnable args;
  args.mode_mask = enable;
  return kfd_request(request_of<RuntimeEnable>(0x25), &args);
}

TEST_CASE("the driver has the version of its profile", "[profile]") {
  kfd_ioctl_get_version_args version{};
  REQUIRE(kfd_request(AMDKFD_IOC_GET_VERSION, &version) == 0);
  CHECK(version.major_version == 1);
  CHECK(version.minor_version == expected_minor());
}

TEST_CASE("available memory can be asked for from 1.9 on", "[profile]") {
  struct {
    uint64_t available = 0;
    uint32_t gpu_id = 0;
    uint32_t pad = 0;
  } args;
  args.gpu_id = gpu_id();
  const int result = kfd_request(request_of<decltype(args)>(0x23), &args);
  CHECK(result == (expected_minor() >= 9 ? 0 : -EINVAL));
  CHECK((args.available > 0) == (result == 0));
}

TEST_CASE("buffers can be exported as DMA-buf from 1.12 on", "[profile]") {
  const OpenThunk thunk;
  kfd_ioctl_alloc_memory_of_gpu_args buffer{};
  buffer.va_addr = 0x7000'0000'0000;
  buffer.size = 4096;
  buffer.gpu_id = gpu_id();
  buffer.flags = KFD_IOC_ALLOC_MEM_FLAGS_VRAM;
  REQUIRE(kfd_request(AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &buffer) == 0);
  struct {
    uint64_t handle = 0;
    uint32_t flags = 0;
    uint32_t descriptor = 0;
  } args;
  args.handle = buffer.handle;
  const int result = kfd_request(request_of<decltype(args)>(0x24), &args);
  CHECK(result == (expected_minor() >= 12 ? 0 : -EINVAL));
  if (result == 0) CHECK(close(static_cast<int>(args.descriptor)) == 0);
  kfd_ioctl_free_memory_of_gpu_args memory{};
  memory.handle = buffer.handle;
  CHECK(kfd_request(AMDKFD_IOC_FREE_MEMORY_OF_GPU, &memory) == 0);
}

TEST_CASE("the runtime can be enabled once, from 1.13 on", "[profile]") {
  if (expected_minor() < 13) {
    CHECK(enable_runtime(true) == -EINVAL);
    CHECK(enable_runtime(false) == -EINVAL);
    return;
  }
  CHECK(enable_runtime(true) == 0);
  CHECK(enable_runtime(true) == -EBUSY);
  CHECK(enable_runtime(false) == 0);
  CHECK(enable_runtime(false) == -EPERM);
}

TEST_CASE("the topology has the debugger's bits exactly where the runtime can be enabled",
          "[profile]") {
  const OpenThunk thunk;
  const HsaNodeProperties node = properties_of(kGpuNode);
  const uint32_t capability = value(node.Capability.Value);
  constexpr uint32_t kTrapDebugger = 0x8000, kFirmware = 0x20000000;  // kfd_topology.h
  CHECK((capability & (kTrapDebugger | kFirmware)) ==
        (expected_minor() >= 13 ? kTrapDebugger | kFirmware : 0));
}

TEST_CASE("waits compare event ages from 1.14 on", "[profile]") {
  struct Data {
    uint64_t last_event_age, unused[3];
    uint64_t extension;
    uint32_t event_id, pad;
  };
  static_assert(sizeof(Data) == sizeof(kfd_event_data));
  kfd_ioctl_create_event_args create{};
  create.event_type = KFD_IOC_EVENT_SIGNAL;
  create.auto_reset = 1;
  REQUIRE(kfd_request(AMDKFD_IOC_CREATE_EVENT, &create) == 0);
  kfd_ioctl_set_event_args set{.event_id = create.event_id, .pad = 0};
  REQUIRE(kfd_request(AMDKFD_IOC_SET_EVENT, &set) == 0);
  const auto wait = [&](uint64_t last_age) {
    Data data{.last_event_age = last_age,
              .unused = {},
              .extension = 0,
              .event_id = create.event_id,
              .pad = 0};
    kfd_ioctl_wait_events_args args{};
    args.events_ptr = reinterpret_cast<uint64_t>(&data);
    args.num_events = 1;
    args.timeout = 0;
    REQUIRE(kfd_request(AMDKFD_IOC_WAIT_EVENTS, &args) == 0);
    return std::pair(args.wait_result, data.last_event_age);
  };
  using Outcome = std::pair<uint32_t, uint64_t>;
  CHECK(wait(0) == Outcome(KFD_IOC_WAIT_RESULT_COMPLETE, 0));  // takes the set state
  if (expected_minor() >= 14) {
    CHECK(wait(1) == Outcome(KFD_IOC_WAIT_RESULT_COMPLETE, 2));
    CHECK(wait(2) == Outcome(KFD_IOC_WAIT_RESULT_TIMEOUT, 2));
  } else {
    CHECK(wait(1) == Outcome(KFD_IOC_WAIT_RESULT_TIMEOUT, 1));
  }
  kfd_ioctl_destroy_event_args destroy{.event_id = create.event_id, .pad = 0};
  CHECK(kfd_request(AMDKFD_IOC_DESTROY_EVENT, &destroy) == 0);
}

// CREATE_QUEUE's block as 1.17 has it. Older headers end at ctl_stack_size.
struct CreateQueue {
  uint64_t ring_base_address, write_pointer_address, read_pointer_address, doorbell_offset;
  uint32_t ring_size, gpu_id, queue_type, queue_percentage, queue_priority, queue_id;
  uint64_t eop_buffer_address, eop_buffer_size, ctx_save_restore_address;
  uint32_t ctx_save_restore_size, ctl_stack_size, sdma_engine_id, pad;
};
static_assert(sizeof(CreateQueue) == 96);

TEST_CASE("an SDMA queue on an engine of its own can be created from 1.17 on", "[profile]") {
  const OpenThunk thunk;
  const HsaNodeProperties node = properties_of(kGpuNode);
  const uint32_t engines = value(node.NumSdmaEngines),
                 xgmi_engines = value(node.NumSdmaXgmiEngines);
  void* memory = nullptr;
  HsaMemFlags flags = host_memory();
  REQUIRE(hsaKmtAllocMemory(kCpuNode, 2 * kPage, flags, &memory) == HSAKMT_STATUS_SUCCESS);
  HSAuint64 alternate = 0;
  REQUIRE(hsaKmtMapMemoryToGPU(memory, 2 * kPage, &alternate) == HSAKMT_STATUS_SUCCESS);
  std::vector<uint32_t> queues;
  const auto create = [&](uint32_t engine) {
    const auto ring = reinterpret_cast<uint64_t>(memory);
    CreateQueue args{};
    args.ring_base_address = ring;
    args.write_pointer_address = ring + kPage;
    args.read_pointer_address = ring + kPage + 64;
    args.ring_size = kPage;
    args.gpu_id = gpu_id();
    args.queue_type = 4;  // KFD_IOC_QUEUE_TYPE_SDMA_BY_ENG_ID
    args.queue_percentage = 100;
    args.sdma_engine_id = engine;
    const int result = kfd_request(request_of<CreateQueue>(0x02), &args);
    if (result == 0) queues.push_back(args.queue_id);
    return result;
  };
  if (expected_minor() < 17) {
    CHECK(create(0) == -EINVAL);
  } else {
    CHECK(create(engines + xgmi_engines) == -EINVAL);
    // One engine's queues run out, the other's do not.
    for (uint32_t i = 0; i < value(node.NumSdmaQueuesPerEngine); ++i) CHECK(create(1) == 0);
    CHECK(create(1) == -ENOMEM);
    CHECK(create(0) == 0);
    if (xgmi_engines > 0) CHECK(create(engines) == 0);
  }
  for (const uint32_t id : queues) {
    kfd_ioctl_destroy_queue_args destroy{.queue_id = id, .pad = 0};
    CHECK(kfd_request(AMDKFD_IOC_DESTROY_QUEUE, &destroy) == 0);
  }
  CHECK(hsaKmtUnmapMemoryToGPU(memory) == HSAKMT_STATUS_SUCCESS);
  CHECK(hsaKmtFreeMemory(memory, 2 * kPage) == HSAKMT_STATUS_SUCCESS);
}

}  // namespace
}  // namespace uptempo::vgpu
