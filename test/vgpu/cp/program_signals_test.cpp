// A program with its own SIGSEGV handling, under the launcher: the sleeping device still wakes, and
// the program's handler still receives the program's faults.
#include <hsa/hsa.h>
#include <pthread.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include "test/support/catch.hpp"
#include "test/support/eventually.hpp"
#include "test/support/hsa_end.hpp"
#include "test/support/threads.hpp"

namespace {

using namespace std::chrono_literals;

std::atomic<unsigned> faults{0};
std::atomic<void*> guarded{nullptr};

void program_handler(int, siginfo_t*, void*) {
  ++faults;
  mprotect(guarded.load(), 4096, PROT_READ | PROT_WRITE);
}

hsa_agent_t find_gpu() {
  hsa_agent_t gpu{};
  hsa_iterate_agents(
      [](hsa_agent_t agent, void* data) {
        hsa_device_type_t type{};
        hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type);
        if (type != HSA_DEVICE_TYPE_GPU) return HSA_STATUS_SUCCESS;
        *static_cast<hsa_agent_t*>(data) = agent;
        return HSA_STATUS_INFO_BREAK;
      },
      &gpu);
  return gpu;
}

// Sends one barrier packet and waits for it.
bool round_trip(hsa_queue_t* queue, hsa_signal_t signal) {
  hsa_signal_store_relaxed(signal, 1);
  const uint64_t index = hsa_queue_add_write_index_scacq_screl(queue, 1);
  auto* packet = static_cast<hsa_barrier_and_packet_t*>(queue->base_address) + index % queue->size;
  std::memset(reinterpret_cast<std::byte*>(packet) + 4, 0, sizeof *packet - 4);
  packet->completion_signal = signal;
  const uint32_t header = HSA_PACKET_TYPE_BARRIER_AND | 1u << HSA_PACKET_HEADER_BARRIER;
  std::atomic_ref<uint32_t>(*reinterpret_cast<uint32_t*>(packet))
      .store(header, std::memory_order_release);
  hsa_signal_store_screlease(queue->doorbell_signal, static_cast<hsa_signal_value_t>(index));
  return uptempo::test::eventually([&] { return hsa_signal_load_scacquire(signal) == 0; });
}

}  // namespace

TEST_CASE(
    "doorbells get through a program's SIGSEGV handler and through a thread that blocks every "
    "signal") {
  REQUIRE(hsa_init() == HSA_STATUS_SUCCESS);
  hsa_queue_t* queue = nullptr;
  hsa_signal_t signal{};
  REQUIRE(hsa_queue_create(find_gpu(), 64, HSA_QUEUE_TYPE_MULTI, nullptr, nullptr, ~0u, ~0u,
                           &queue) == HSA_STATUS_SUCCESS);
  REQUIRE(hsa_signal_create(1, 0, nullptr, &signal) == HSA_STATUS_SUCCESS);
  REQUIRE(round_trip(queue, signal));

  // Asleep, it has protected its doorbell page.
  REQUIRE(uptempo::test::eventually([] { return uptempo::test::sleep_all("vgpu-cp"); }));
  struct sigaction action {};
  struct sigaction before {};
  struct sigaction now {};
  action.sa_sigaction = program_handler;
  action.sa_flags = SA_SIGINFO;
  REQUIRE(sigaction(SIGSEGV, &action, &before) == 0);
  CHECK(round_trip(queue, signal));

  std::atomic<unsigned> lost{0};
  bool segv_blocked = true;
  std::thread([&] {
    sigset_t all;
    sigset_t mask;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    segv_blocked = sigismember(&mask, SIGSEGV) == 1;
    for (int round = 0; round < 10; ++round) {
      std::this_thread::sleep_for(3ms);
      if (!round_trip(queue, signal)) ++lost;
    }
  }).join();
  CHECK(lost == 0);
  CHECK_FALSE(segv_blocked);

  CHECK(faults == 0);
  guarded = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *static_cast<volatile char*>(guarded.load()) = 1;
  CHECK(faults == 1);
  CHECK(sigaction(SIGSEGV, &before, &now) == 0);
  CHECK(now.sa_sigaction == program_handler);

  CHECK(hsa_signal_destroy(signal) == HSA_STATUS_SUCCESS);
  CHECK(hsa_queue_destroy(queue) == HSA_STATUS_SUCCESS);
  CHECK(uptempo::test::end_hsa() == HSA_STATUS_SUCCESS);
}
