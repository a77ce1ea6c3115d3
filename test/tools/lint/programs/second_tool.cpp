// A tool for HSA_TOOLS_LIB beside the lint. It counts loads of signals that are being destroyed or
// were destroyed, and registers for ROCr's own queues. Prints a line of JSON at its end.
#include <hsa/hsa.h>
#include <hsa/hsa_api_trace.h>

#include <array>
#include <atomic>
#include <cstdio>

namespace {

CoreApiTable core;
hsa_status_t registered = HSA_STATUS_ERROR;
std::atomic<uint64_t> queues{0}, loads{0}, loads_of_destroyed{0};

// Signals are 64 bytes apart; two that share an element are created rarely.
std::array<std::atomic<bool>, 1u << 20> is_destroyed;
std::atomic<bool>& state(hsa_signal_t signal) {
  return is_destroyed[(signal.handle >> 6) % is_destroyed.size()];
}

hsa_status_t create(hsa_signal_value_t value, uint32_t count, const hsa_agent_t* consumers,
                    hsa_signal_t* signal) {
  const hsa_status_t status = core.hsa_signal_create_fn(value, count, consumers, signal);
  if (status == HSA_STATUS_SUCCESS) state(*signal) = false;
  return status;
}

hsa_status_t destroy(hsa_signal_t signal) {
  state(signal) = true;
  return core.hsa_signal_destroy_fn(signal);
}

hsa_signal_value_t load(hsa_signal_t signal) {
  ++loads;
  if (state(signal)) ++loads_of_destroyed;
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
