// The counters that a program reads about its packets, over the unmodified runtime. Also runs with
// --incoherent, where cache lines count.
#include <uptempo/vgpu/query.h>

#include <dlfcn.h>
#include <hsa/hsa.h>

#include <cstdlib>

#include "test/support/catch.hpp"
#include "test/support/hsa_end.hpp"

namespace {

uptempo_vgpu_device_counts now() {
  const auto query =
      reinterpret_cast<uptempo_vgpu_device_t>(dlsym(RTLD_DEFAULT, "uptempo_vgpu_device"));
  REQUIRE(query != nullptr);
  uptempo_vgpu_device_counts counts;
  REQUIRE(query(&counts) == 0);
  return counts;
}

hsa_agent_t gpu() {
  hsa_agent_t found{0};
  hsa_iterate_agents(
      [](hsa_agent_t agent, void* out) {
        hsa_device_type_t type;
        hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type);
        if (type == HSA_DEVICE_TYPE_GPU) *static_cast<hsa_agent_t*>(out) = agent;
        return HSA_STATUS_SUCCESS;
      },
      &found);
  REQUIRE(found.handle != 0);
  return found;
}

uint16_t barrier_header(bool barrier, hsa_fence_scope_t acquire, hsa_fence_scope_t release) {
  return static_cast<uint16_t>(HSA_PACKET_TYPE_BARRIER_AND << HSA_PACKET_HEADER_TYPE |
                               (barrier ? 1 : 0) << HSA_PACKET_HEADER_BARRIER |
                               acquire << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
                               release << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE);
}

}  // namespace

TEST_CASE("the difference of two counts is what the program sent in between") {
  REQUIRE(hsa_init() == HSA_STATUS_SUCCESS);
  hsa_queue_t* queue = nullptr;
  REQUIRE(hsa_queue_create(gpu(), 64, HSA_QUEUE_TYPE_SINGLE, nullptr, nullptr, 0, 0, &queue) ==
          HSA_STATUS_SUCCESS);
  hsa_signal_t done;
  REQUIRE(hsa_signal_create(1, 0, nullptr, &done) == HSA_STATUS_SUCCESS);
  const uint16_t headers[] = {barrier_header(true, HSA_FENCE_SCOPE_SYSTEM, HSA_FENCE_SCOPE_NONE),
                              barrier_header(false, HSA_FENCE_SCOPE_AGENT, HSA_FENCE_SCOPE_AGENT),
                              barrier_header(true, HSA_FENCE_SCOPE_NONE, HSA_FENCE_SCOPE_SYSTEM)};

  const uptempo_vgpu_device_counts before = now();
  auto* ring = static_cast<hsa_barrier_and_packet_t*>(queue->base_address);
  for (size_t i = 0; i < 3; ++i) {
    ring[i].dep_signal[0] = ring[i].dep_signal[1] = ring[i].dep_signal[2] = ring[i].dep_signal[3] =
        ring[i].dep_signal[4] = hsa_signal_t{0};
    ring[i].completion_signal = i == 2 ? done : hsa_signal_t{0};
    __atomic_store_n(&ring[i].header, headers[i], __ATOMIC_RELEASE);
  }
  hsa_queue_store_write_index_screlease(queue, 3);
  hsa_signal_store_screlease(queue->doorbell_signal, 2);
  REQUIRE(hsa_signal_wait_scacquire(done, HSA_SIGNAL_CONDITION_EQ, 0, UINT64_MAX,
                                    HSA_WAIT_STATE_BLOCKED) == 0);
  const uptempo_vgpu_device_counts after = now();

  CHECK(after.packets - before.packets == 3);
  CHECK(after.barrier_bits - before.barrier_bits == 2);
  CHECK(after.agent_acquires - before.agent_acquires == 1);
  CHECK(after.system_acquires - before.system_acquires == 1);
  CHECK(after.agent_releases - before.agent_releases == 1);
  CHECK(after.system_releases - before.system_releases == 1);
  CHECK(after.doorbells - before.doorbells == 1);
  CHECK(after.signal_updates - before.signal_updates == 1);
  CHECK(after.interrupts - before.interrupts == 1);  // signals of hsa_signal_create() have an event
  // Lines count only where the device keeps caches.
  CHECK(after.lines_counted == (std::getenv("UPTEMPO_VGPU_INCOHERENT") != nullptr ? 1 : 0));

  hsa_signal_destroy(done);
  hsa_queue_destroy(queue);
  uptempo::test::end_hsa();
}
