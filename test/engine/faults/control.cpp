// Shows what ROCr alone makes of a fault: makes the engine's calls through plain HSA. A call that
// fails ends the program with 1, after HSA was shut down and what it leaves was said.
#include <uptempo/kernels/fault_control.hpp>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <span>

#include <uptempo/runtime/amd_extension.hpp>
#include "test/engine/faults/subject.hpp"
#include "test/vgpu/incoherent/device.hpp"

namespace uptempo::faults {
namespace {

constexpr size_t kBlockBytes = 4 << 20;  // more than ROCr takes from a block it has

unsigned round_begun = 0;  // 0: all have ended

void end_round() {
  // Where the engine leaves HSA initialised, nothing releases what the failed round has made, so
  // its leftovers would say nothing about ROCr.
  if (round_begun == 0 || must_stay_initialised()) return;
  while (hsa_shut_down() == HSA_STATUS_SUCCESS) continue;
  for (; round_begun <= kLastRound; ++round_begun) say_device(round_begun);
}

}  // namespace

int run_control(const Plan&) {
  using namespace uptempo::vgpu::test;
  std::atexit(end_round);
  // As the second Runtime does.
  if (hsa_init() != HSA_STATUS_SUCCESS) check(hsa_init(), "hsa_init");
  if (!must_stay_initialised()) check(hsa_shut_down(), "hsa_shut_down");
  for (unsigned round = 1; round <= kLastRound; ++round) {
    round_begun = round;
    {
      TestDevice device{control_kernels::fault_control()};
      constexpr size_t kWords = 256;
      const auto words = device.allocate(Memory::host_fine, kWords);
      const auto local = device.allocate(Memory::local, kWords);
      const auto fill = device.kernel("fill");
      hsa_queue_t* other = nullptr;
      check(hsa_queue_create(device.gpu, 1024, HSA_QUEUE_TYPE_SINGLE, nullptr, nullptr, UINT32_MAX,
                             UINT32_MAX, &other),
            "hsa_queue_create");
      // At least as many as the engine's queues have: where the driver keeps what it is asked to
      // destroy, ROCr must leave as many events here.
      std::array<hsa_signal_t, 256> signals{};
      for (hsa_signal_t& signal : signals)
        check(hsa_signal_create(1, 0, nullptr, &signal), "hsa_signal_create");
      for (uint32_t value = 1; value <= 2; ++value)
        device.dispatch(fill, kWords, device.arguments().add(words.data()).add(value), {});
      device.wait();
      for (const uint32_t word : words)
        if (word != 2) say("wrong", "a kernel's stores");
      device.copy(local.data(), words.data(), words.size_bytes());
      std::array<uint32_t, kWords> host{};
      void* pinned = nullptr;
      check(hsa_amd_memory_lock(host.data(), sizeof host, &device.gpu, 1, &pinned),
            "hsa_amd_memory_lock");
      device.copy(pinned, local.data(), sizeof host);
      check(hsa_amd_memory_unlock(host.data()), "hsa_amd_memory_unlock");
      for (const uint32_t word : host)
        if (word != 2) say("wrong", "a copy");
      for (const hsa_signal_t signal : signals)
        check(hsa_signal_destroy(signal), "hsa_signal_destroy");
      check(hsa_queue_destroy(other), "hsa_queue_destroy");
      // ROCr 6.1 and newer look at all queues of the GPU when the driver refuses memory of it.
      reuse_heap();
      device.allocate<std::byte>(Memory::local, kBlockBytes);
    }
    say_device(round);
  }
  round_begun = 0;
  say("ended", "yes");
  return 0;
}

}  // namespace uptempo::faults
