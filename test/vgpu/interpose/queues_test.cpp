// Queue numbers in traces, over the unmodified runtime, which creates queues of its own in between.
// Runs with a trace.
#include <uptempo/vgpu/query.h>

#include <dlfcn.h>
#include <hsa/hsa.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>

#include "test/support/catch.hpp"
#include "test/support/hsa_end.hpp"

namespace {

std::optional<uint32_t> number_of(const void* ring) {
  const auto query =
      reinterpret_cast<uptempo_vgpu_queue_t>(dlsym(RTLD_DEFAULT, "uptempo_vgpu_queue"));
  REQUIRE(query != nullptr);
  uint32_t number = 0;
  if (query(ring, &number) != 0) return std::nullopt;
  return number;
}

hsa_queue_t* new_queue() {
  hsa_agent_t gpu{0};
  hsa_iterate_agents(
      [](hsa_agent_t agent, void* out) {
        hsa_device_type_t type;
        hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type);
        if (type == HSA_DEVICE_TYPE_GPU) *static_cast<hsa_agent_t*>(out) = agent;
        return HSA_STATUS_SUCCESS;
      },
      &gpu);
  hsa_queue_t* queue = nullptr;
  REQUIRE(hsa_queue_create(gpu, 64, HSA_QUEUE_TYPE_SINGLE, nullptr, nullptr, 0, 0, &queue) ==
          HSA_STATUS_SUCCESS);
  return queue;
}

// Sends that many barrier packets and waits for the last one.
void send(hsa_queue_t* queue, uint64_t packets) {
  hsa_signal_t done;
  REQUIRE(hsa_signal_create(1, 0, nullptr, &done) == HSA_STATUS_SUCCESS);
  auto* ring = static_cast<hsa_barrier_and_packet_t*>(queue->base_address);
  for (uint64_t i = 0; i < packets; ++i) {
    for (hsa_signal_t& signal : ring[i].dep_signal) signal = {0};
    ring[i].completion_signal = i + 1 == packets ? done : hsa_signal_t{0};
    __atomic_store_n(&ring[i].header,
                     static_cast<uint16_t>(HSA_PACKET_TYPE_BARRIER_AND << HSA_PACKET_HEADER_TYPE |
                                           1 << HSA_PACKET_HEADER_BARRIER),
                     __ATOMIC_RELEASE);
  }
  hsa_queue_store_write_index_screlease(queue, packets);
  hsa_signal_store_screlease(queue->doorbell_signal, static_cast<hsa_signal_value_t>(packets) - 1);
  REQUIRE(hsa_signal_wait_scacquire(done, HSA_SIGNAL_CONDITION_EQ, 0, UINT64_MAX,
                                    HSA_WAIT_STATE_BLOCKED) == 0);
  hsa_signal_destroy(done);
}

size_t traced_barriers(uint32_t queue) {
  std::ifstream trace(std::getenv("UPTEMPO_VGPU_TRACE"));
  REQUIRE(trace);
  const std::string of_queue = "{\"queue\":" + std::to_string(queue) + ",";
  size_t found = 0;
  for (std::string line; std::getline(trace, line);)
    found += line.starts_with(of_queue) && line.find("\"barrier_and\"") != std::string::npos;
  return found;
}

}  // namespace

TEST_CASE("a live queue has the number that its packets have in the trace") {
  CHECK_FALSE(number_of(nullptr).has_value());
  REQUIRE(hsa_init() == HSA_STATUS_SUCCESS);
  hsa_queue_t* const one = new_queue();
  hsa_queue_t* const other = new_queue();
  const auto first = number_of(one->base_address), second = number_of(other->base_address);
  REQUIRE(first.has_value());
  REQUIRE(second.has_value());
  CHECK(*first < *second);
  send(one, 2);
  send(other, 5);
  CHECK(traced_barriers(*first) == 2);
  CHECK(traced_barriers(*second) == 5);
  CHECK_FALSE(number_of(static_cast<const char*>(one->base_address) + 64).has_value());

  const void* const destroyed = other->base_address;
  hsa_queue_destroy(other);
  CHECK_FALSE(number_of(destroyed).has_value());
  CHECK(number_of(one->base_address) == first);
  hsa_queue_destroy(one);
  uptempo::test::end_hsa();
}
