// Errors of a queue over the unmodified runtime, which expects them in queue_inactive_signal or as
// exceptions, by what the driver has. Runs once with each kind of driver. The expected statuses are
// those of hsa.h and of hsa_queue_create's callback.
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include <atomic>
#include <cstring>
#include <functional>

#include "test/support/catch.hpp"
#include "test/support/eventually.hpp"
#include "test/support/hsa_end.hpp"

namespace {

using uptempo::test::eventually;

struct Runtime {
  Runtime() {
    REQUIRE(hsa_init() == HSA_STATUS_SUCCESS);
    hsa_iterate_agents(
        [](hsa_agent_t agent, void* out) {
          hsa_device_type_t type{};
          hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type);
          if (type == HSA_DEVICE_TYPE_GPU) *static_cast<hsa_agent_t*>(out) = agent;
          return HSA_STATUS_SUCCESS;
        },
        &gpu);
    REQUIRE(gpu.handle != 0);
  }
  ~Runtime() { CHECK(uptempo::test::end_hsa() == HSA_STATUS_SUCCESS); }
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  hsa_agent_t gpu{};
};

struct Errors {
  std::atomic<int> calls{0};
  std::atomic<hsa_status_t> status{HSA_STATUS_SUCCESS};
};

// Submits the dispatch and returns the status that the queue's callback receives.
hsa_status_t status_of(const Runtime& runtime, hsa_kernel_dispatch_packet_t packet) {
  Errors errors;
  hsa_queue_t* queue = nullptr;
  const auto callback = [](hsa_status_t status, hsa_queue_t*, void* data) {
    static_cast<Errors*>(data)->status = status;
    ++static_cast<Errors*>(data)->calls;
  };
  REQUIRE(hsa_queue_create(runtime.gpu, 64, HSA_QUEUE_TYPE_SINGLE, callback, &errors, 0, 0,
                           &queue) == HSA_STATUS_SUCCESS);
  auto* const slot = static_cast<hsa_kernel_dispatch_packet_t*>(queue->base_address);
  const uint16_t header = packet.header;
  std::memcpy(reinterpret_cast<char*>(slot) + 2, reinterpret_cast<const char*>(&packet) + 2,
              sizeof packet - 2);
  __atomic_store_n(&slot->header, header, __ATOMIC_RELEASE);
  hsa_queue_store_write_index_screlease(queue, 1);
  hsa_signal_store_screlease(queue->doorbell_signal, 0);
  CHECK(eventually([&] { return errors.calls > 0; }));
  CHECK(hsa_queue_destroy(queue) == HSA_STATUS_SUCCESS);
  CHECK(errors.calls == 1);
  return errors.status;
}

hsa_kernel_dispatch_packet_t dispatch() {
  hsa_kernel_dispatch_packet_t packet{};
  packet.header = HSA_PACKET_TYPE_KERNEL_DISPATCH << HSA_PACKET_HEADER_TYPE;
  packet.setup = 1;
  packet.workgroup_size_x = packet.workgroup_size_y = packet.workgroup_size_z = 1;
  packet.grid_size_x = packet.grid_size_y = packet.grid_size_z = 1;
  return packet;
}

}  // namespace

TEST_CASE("a queue's callback receives the status of a refused packet, once") {
  const Runtime runtime;
  auto packet = dispatch();
  packet.setup = 0;
  CHECK(status_of(runtime, packet) == HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS);
  packet = dispatch();
  packet.group_segment_size = 1u << 20;
  CHECK(status_of(runtime, packet) == HSA_STATUS_ERROR_INVALID_ALLOCATION);
  packet = dispatch();  // no kernel object
  CHECK(status_of(runtime, packet) == HSA_STATUS_ERROR_INVALID_CODE_OBJECT);
  packet = dispatch();
  packet.setup = 2;
  packet.grid_size_x = packet.workgroup_size_x = 64;
  packet.grid_size_y = packet.workgroup_size_y = 17;
  CHECK(status_of(runtime, packet) == HSA_STATUS_ERROR_INVALID_ARGUMENT);
  packet = dispatch();
  packet.header |= 3 << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE;
  CHECK(status_of(runtime, packet) == HSA_STATUS_ERROR_INVALID_PACKET_FORMAT);
}

TEST_CASE("a queue's callback receives its status after the runtime was started again",
          "[.restart]") {
  for (int i = 0; i < 3; ++i) {
    const Runtime runtime;
    CHECK(status_of(runtime, dispatch()) == HSA_STATUS_ERROR_INVALID_CODE_OBJECT);
  }
}
