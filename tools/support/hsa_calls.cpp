#include "tools/support/hsa_calls.hpp"

#include <dlfcn.h>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include <atomic>

namespace {

using Count = std::atomic<uint64_t>;
constinit struct {
  Count allocations = 0, frees = 0, pins = 0, signals_created = 0, blocking_copies = 0,
        started_copies = 0;
} made;

// Relaxed: the counts order no other memory access.
void count(Count& counter) noexcept { counter.fetch_add(1, std::memory_order_relaxed); }

// ROCr's function of that name.
template <class Function>
Function* next(const char* name, Function*) noexcept {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

hsa_status_t hsa_amd_memory_pool_allocate(hsa_amd_memory_pool_t pool, size_t bytes, uint32_t flags,
                                          void** memory) {
  static const auto rocr = next("hsa_amd_memory_pool_allocate", &hsa_amd_memory_pool_allocate);
  count(made.allocations);
  return rocr(pool, bytes, flags, memory);
}

hsa_status_t hsa_memory_allocate(hsa_region_t region, size_t bytes, void** memory) {
  static const auto rocr = next("hsa_memory_allocate", &hsa_memory_allocate);
  count(made.allocations);
  return rocr(region, bytes, memory);
}

hsa_status_t hsa_amd_memory_pool_free(void* memory) {
  static const auto rocr = next("hsa_amd_memory_pool_free", &hsa_amd_memory_pool_free);
  count(made.frees);
  return rocr(memory);
}

hsa_status_t hsa_memory_free(void* memory) {
  static const auto rocr = next("hsa_memory_free", &hsa_memory_free);
  count(made.frees);
  return rocr(memory);
}

hsa_status_t hsa_amd_memory_lock(void* host, size_t bytes, hsa_agent_t* agents, int agent_count,
                                 void** memory) {
  static const auto rocr = next("hsa_amd_memory_lock", &hsa_amd_memory_lock);
  count(made.pins);
  return rocr(host, bytes, agents, agent_count, memory);
}

hsa_status_t hsa_amd_memory_lock_to_pool(void* host, size_t bytes, hsa_agent_t* agents,
                                         int agent_count, hsa_amd_memory_pool_t pool,
                                         uint32_t flags, void** memory) {
  static const auto rocr = next("hsa_amd_memory_lock_to_pool", &hsa_amd_memory_lock_to_pool);
  count(made.pins);
  return rocr(host, bytes, agents, agent_count, pool, flags, memory);
}

hsa_status_t hsa_signal_create(hsa_signal_value_t value, uint32_t consumer_count,
                               const hsa_agent_t* consumers, hsa_signal_t* signal) {
  static const auto rocr = next("hsa_signal_create", &hsa_signal_create);
  count(made.signals_created);
  return rocr(value, consumer_count, consumers, signal);
}

hsa_status_t hsa_amd_signal_create(hsa_signal_value_t value, uint32_t consumer_count,
                                   const hsa_agent_t* consumers, uint64_t attributes,
                                   hsa_signal_t* signal) {
  static const auto rocr = next("hsa_amd_signal_create", &hsa_amd_signal_create);
  count(made.signals_created);
  return rocr(value, consumer_count, consumers, attributes, signal);
}

hsa_status_t hsa_memory_copy(void* to, const void* from, size_t bytes) {
  static const auto rocr = next("hsa_memory_copy", &hsa_memory_copy);
  count(made.blocking_copies);
  return rocr(to, from, bytes);
}

hsa_status_t hsa_amd_memory_async_copy(void* to, hsa_agent_t to_agent, const void* from,
                                       hsa_agent_t from_agent, size_t bytes,
                                       uint32_t dependency_count, const hsa_signal_t* dependencies,
                                       hsa_signal_t done) {
  static const auto rocr = next("hsa_amd_memory_async_copy", &hsa_amd_memory_async_copy);
  count(made.started_copies);
  return rocr(to, to_agent, from, from_agent, bytes, dependency_count, dependencies, done);
}

}  // extern "C"

namespace uptempo::support {

HsaCalls HsaCalls::now() noexcept {
  return {.allocations = made.allocations.load(std::memory_order_relaxed),
          .frees = made.frees.load(std::memory_order_relaxed),
          .pins = made.pins.load(std::memory_order_relaxed),
          .signals_created = made.signals_created.load(std::memory_order_relaxed),
          .blocking_copies = made.blocking_copies.load(std::memory_order_relaxed),
          .started_copies = made.started_copies.load(std::memory_order_relaxed)};
}

HsaCalls& HsaCalls::operator+=(const HsaCalls& other) noexcept {
  allocations += other.allocations;
  frees += other.frees;
  pins += other.pins;
  signals_created += other.signals_created;
  blocking_copies += other.blocking_copies;
  started_copies += other.started_copies;
  return *this;
}

HsaCalls operator-(const HsaCalls& a, const HsaCalls& b) noexcept {
  return {.allocations = a.allocations - b.allocations,
          .frees = a.frees - b.frees,
          .pins = a.pins - b.pins,
          .signals_created = a.signals_created - b.signals_created,
          .blocking_copies = a.blocking_copies - b.blocking_copies,
          .started_copies = a.started_copies - b.started_copies};
}

}  // namespace uptempo::support
