// A tool for HSA_TOOLS_LIB beside the lint. It counts loads of signals that are being destroyed or
// were destroyed, and registers for ROCr's own queues. Prints a line of JSON at its end.
#include <hsa/hsa.h>
#include <hsa/hsa_api_trace.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>

namespace {

CoreApiTable core;
hsa_status_t registered = HSA_STATUS_ERROR;
std::atomic<uint64_t> queues{0}, loads{0}, loads_of_destroyed{0};

// Creations and destructions of each signal; odd: it does not exist. Signals are 64 bytes apart;
// two that share an element are rare.
std::array<std::atomic<uint32_t>, 1u << 20> lives;
std::atomic<uint32_t>& life(hsa_signal_t signal) {
  return lives[(signal.handle >> 6) % lives.size()];
}

hsa_status_t create(hsa_signal_value_t value, uint32_t count, const hsa_agent_t* consumers,
                    hsa_signal_t* signal) {
  const hsa_status_t status = core.hsa_signal_create_fn(value, count, consumers, signal);
  if (status == HSA_STATUS_SUCCESS) life(*signal) = (life(*signal) + 1) & ~1u;
  return status;
}

hsa_status_t destroy(hsa_signal_t signal) {
  life(signal) |= 1;
  return core.hsa_signal_destroy_fn(signal);
}

// A slow load now and then makes races more likely.
hsa_signal_value_t load(hsa_signal_t signal) {
  const uint32_t before = life(signal);
  if (loads++ % 16 == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
  if (life(signal) != before || before % 2 != 0) {
    ++loads_of_destroyed;
    return 0;
  }
  return core.hsa_signal_load_relaxed_fn(signal);
}

}  // namespace

extern "C" {

bool OnLoad(HsaApiTable* table, uint64_t, uint64_t, const char* const*) {
  core = *table->core_;
  table->core_->hsa_signal_create_fn = create;
  table->core_->hsa_signal_destroy_fn = destroy;
  table->core_->hsa_signal_load_relaxed_fn = load;
  const auto count = [](const hsa_queue_t*, hsa_agent_t, void* data) {
    ++*static_cast<std::atomic<uint64_t>*>(data);
  };
  registered = table->amd_ext_->hsa_amd_runtime_queue_create_register_fn(count, &queues);
  return true;
}

void OnUnload() {
  std::fprintf(stderr,
               "second tool: {\"registered\":%s,\"queues\":%lu,\"loads\":%lu,"
               "\"loads_of_destroyed\":%lu}\n",
               registered == HSA_STATUS_SUCCESS ? "true" : "false", queues.load(), loads.load(),
               loads_of_destroyed.load());
}
}
