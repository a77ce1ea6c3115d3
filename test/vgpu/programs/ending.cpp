// A program under test. It has a queue, a barrier packet that never completes, and a thread that
// sleeps on its signal, and ends as its argument says. An earlier packet has unnecessary fences. It
// never shuts the runtime down.
#include <hsa/hsa.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

namespace {

hsa_status_t take_gpu(hsa_agent_t agent, void* result) {
  hsa_device_type_t type;
  hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type);
  if (type != HSA_DEVICE_TYPE_GPU) return HSA_STATUS_SUCCESS;
  *static_cast<hsa_agent_t*>(result) = agent;
  return HSA_STATUS_INFO_BREAK;
}

void submit(hsa_queue_t* queue, uint64_t index, uint32_t fences, hsa_signal_t dependency,
            hsa_signal_t completion) {
  auto* packet = static_cast<hsa_barrier_and_packet_t*>(queue->base_address) + index;
  std::memset(reinterpret_cast<char*>(packet) + 4, 0, sizeof *packet - 4);
  packet->dep_signal[0] = dependency;
  packet->completion_signal = completion;
  __atomic_store_n(reinterpret_cast<uint32_t*>(packet),
                   HSA_PACKET_TYPE_BARRIER_AND | 1u << HSA_PACKET_HEADER_BARRIER | fences,
                   __ATOMIC_RELEASE);
  hsa_queue_store_write_index_relaxed(queue, index + 1);
  hsa_signal_store_screlease(queue->doorbell_signal, static_cast<hsa_signal_value_t>(index));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "";
  const pid_t child = how == "fork" ? fork() : -1;  // both continue
  hsa_agent_t gpu{};
  hsa_queue_t* queue = nullptr;
  hsa_signal_t first{};
  hsa_signal_t never{};
  hsa_signal_t done{};
  if (hsa_init() != HSA_STATUS_SUCCESS ||
      hsa_iterate_agents(take_gpu, &gpu) != HSA_STATUS_INFO_BREAK ||
      hsa_queue_create(gpu, 64, HSA_QUEUE_TYPE_SINGLE, nullptr, nullptr, UINT32_MAX, UINT32_MAX,
                       &queue) != HSA_STATUS_SUCCESS ||
      hsa_signal_create(1, 0, nullptr, &first) != HSA_STATUS_SUCCESS ||
      hsa_signal_create(1, 0, nullptr, &never) != HSA_STATUS_SUCCESS ||
      hsa_signal_create(1, 0, nullptr, &done) != HSA_STATUS_SUCCESS)
    return 1;
  constexpr uint32_t kWide = HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
                             HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE;
  submit(queue, 0, kWide, {}, first);
  hsa_signal_wait_scacquire(first, HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX, HSA_WAIT_STATE_BLOCKED);
  submit(queue, 1, 0, never, done);
  std::thread([done] {
    hsa_signal_wait_scacquire(done, HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX, HSA_WAIT_STATE_BLOCKED);
  }).detach();
  usleep(20'000);

  int child_status = 0;
  if (child > 0 && (waitpid(child, &child_status, 0) != child || child_status != 3 << 8)) return 1;
  if (how == "exit") std::exit(3);
  if (how == "_exit") _exit(3);
  if (how == "quick_exit") std::quick_exit(3);
  if (how == "abort") std::abort();
  if (how == "segfault") std::raise(SIGSEGV);
  if (how == "terminate") std::raise(SIGTERM);
  if (how == "exec") execlp("sh", "sh", "-c", "exit 3", nullptr);
  return 3;
}
