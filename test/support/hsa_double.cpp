#include "test/support/hsa_double.hpp"

#include <hsa/amd_hsa_queue.h>
#include <hsa/amd_hsa_signal.h>
#include <hsa/hsa_ext_amd.h>

namespace uptempo::test {

HsaCalls& hsa_calls() noexcept {
  static HsaCalls calls;
  return calls;
}

void HsaCalls::reset() {
  signal_store = signal_load = load_read_index = write_index = queue_destroy = 0;
  is_device_memory = nullptr;
  on_store = nullptr;
  on_load = nullptr;
  on_load_read_index = nullptr;
}

namespace {

constexpr hsa_agent_t kHost{1}, kGpu{2};

std::atomic_ref<int64_t> value(hsa_signal_t signal) {
  return std::atomic_ref(
      const_cast<int64_t&>(reinterpret_cast<amd_signal_t*>(signal.handle)->value));
}

std::atomic_ref<uint64_t> read_index(const hsa_queue_t* queue) {
  auto* abi = reinterpret_cast<amd_queue_t*>(const_cast<hsa_queue_t*>(queue));
  return std::atomic_ref(const_cast<uint64_t&>(abi->read_dispatch_id));
}

std::atomic_ref<uint64_t> write_index(const hsa_queue_t* queue) {
  auto* abi = reinterpret_cast<amd_queue_t*>(const_cast<hsa_queue_t*>(queue));
  return std::atomic_ref(const_cast<uint64_t&>(abi->write_dispatch_id));
}

}  // namespace
}  // namespace uptempo::test

using uptempo::test::hsa_calls;
using uptempo::test::kGpu;
using uptempo::test::kHost;

extern "C" {

void hsa_signal_store_screlease(hsa_signal_t signal, hsa_signal_value_t value) {
  ++hsa_calls().signal_store;
  if (hsa_calls().on_store) hsa_calls().on_store(signal, value);
  uptempo::test::value(signal).store(value, std::memory_order_release);
}

hsa_signal_value_t hsa_signal_load_scacquire(hsa_signal_t signal) {
  ++hsa_calls().signal_load;
  if (hsa_calls().on_load) hsa_calls().on_load(signal);
  return uptempo::test::value(signal).load(std::memory_order_acquire);
}

hsa_signal_value_t hsa_signal_load_relaxed(hsa_signal_t signal) {
  ++hsa_calls().signal_load;
  if (hsa_calls().on_load) hsa_calls().on_load(signal);
  return uptempo::test::value(signal).load(std::memory_order_relaxed);
}

void hsa_signal_silent_store_relaxed(hsa_signal_t signal, hsa_signal_value_t value) {
  ++hsa_calls().signal_store;
  uptempo::test::value(signal).store(value, std::memory_order_relaxed);
}

uint64_t hsa_queue_load_read_index_scacquire(const hsa_queue_t* queue) {
  ++hsa_calls().load_read_index;
  if (hsa_calls().on_load_read_index) hsa_calls().on_load_read_index();
  return uptempo::test::read_index(queue).load(std::memory_order_acquire);
}

uint64_t hsa_queue_load_write_index_scacquire(const hsa_queue_t* queue) {
  ++hsa_calls().write_index;
  return uptempo::test::write_index(queue).load(std::memory_order_acquire);
}

void hsa_queue_store_write_index_screlease(const hsa_queue_t* queue, uint64_t value) {
  ++hsa_calls().write_index;
  uptempo::test::write_index(queue).store(value, std::memory_order_release);
}

uint64_t hsa_queue_cas_write_index_scacq_screl(const hsa_queue_t* queue, uint64_t expected,
                                               uint64_t value) {
  ++hsa_calls().write_index;
  uptempo::test::write_index(queue).compare_exchange_strong(expected, value,
                                                            std::memory_order_acq_rel);
  return expected;
}

hsa_status_t hsa_amd_pointer_info(const void* address, hsa_amd_pointer_info_t* info,
                                  void* (*)(size_t), uint32_t*, hsa_agent_t**) {
  const bool is_known = hsa_calls().is_device_memory != nullptr;
  info->type = is_known ? HSA_EXT_POINTER_TYPE_HSA : HSA_EXT_POINTER_TYPE_UNKNOWN;
  info->agentOwner = is_known && hsa_calls().is_device_memory(address) ? kGpu : kHost;
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_agent_get_info(hsa_agent_t agent, hsa_agent_info_t attribute, void* value) {
  if (attribute != HSA_AGENT_INFO_DEVICE) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  *static_cast<hsa_device_type_t*>(value) =
      agent.handle == kGpu.handle ? HSA_DEVICE_TYPE_GPU : HSA_DEVICE_TYPE_CPU;
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_queue_destroy(hsa_queue_t*) {
  ++hsa_calls().queue_destroy;
  return HSA_STATUS_SUCCESS;
}

}  // extern "C"
