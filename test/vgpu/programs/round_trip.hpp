// A queue on the virtual GPU, for programs under test.
#pragma once

#include <hsa/hsa.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <thread>

namespace uptempo::vgpu::test {

inline hsa_status_t take_gpu(hsa_agent_t agent, void* result) {
  hsa_device_type_t type;
  hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type);
  if (type != HSA_DEVICE_TYPE_GPU) return HSA_STATUS_SUCCESS;
  *static_cast<hsa_agent_t*>(result) = agent;
  return HSA_STATUS_INFO_BREAK;
}

// Returns a queue on a device that sleeps, or null.
inline hsa_queue_t* queue_on_sleeping_device() {
  hsa_agent_t gpu{};
  hsa_queue_t* queue = nullptr;
  if (hsa_init() != HSA_STATUS_SUCCESS ||
      hsa_iterate_agents(take_gpu, &gpu) != HSA_STATUS_INFO_BREAK ||
      hsa_queue_create(gpu, 64, HSA_QUEUE_TYPE_SINGLE, nullptr, nullptr, UINT32_MAX, UINT32_MAX,
                       &queue) != HSA_STATUS_SUCCESS)
    return nullptr;
  std::this_thread::sleep_for(std::chrono::milliseconds(30));  // lets the device fall asleep
  return queue;
}

// Sends a barrier packet and waits for it.
inline bool round_trip(hsa_queue_t* queue) {
  hsa_signal_t done{};
  hsa_signal_create(1, 0, nullptr, &done);
  const uint64_t index = hsa_queue_add_write_index_screlease(queue, 1);
  auto* packet = static_cast<hsa_barrier_and_packet_t*>(queue->base_address) + index % queue->size;
  std::memset(reinterpret_cast<char*>(packet) + 4, 0, sizeof *packet - 4);
  packet->completion_signal = done;
  __atomic_store_n(reinterpret_cast<uint32_t*>(packet),
                   HSA_PACKET_TYPE_BARRIER_AND | 1u << HSA_PACKET_HEADER_BARRIER, __ATOMIC_RELEASE);
  hsa_signal_store_screlease(queue->doorbell_signal, static_cast<hsa_signal_value_t>(index));
  return hsa_signal_wait_scacquire(done, HSA_SIGNAL_CONDITION_EQ, 0, UINT64_MAX,
                                   HSA_WAIT_STATE_BLOCKED) == 0;
}

}  // namespace uptempo::vgpu::test
