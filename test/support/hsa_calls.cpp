#include "test/support/hsa_calls.hpp"

#include <dlfcn.h>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include <atomic>

namespace {

using uptempo::support::HsaCalls;

constinit HsaCalls made;

constexpr uint64_t HsaCalls::*kCounts[] = {
    &HsaCalls::allocations,     &HsaCalls::frees,           &HsaCalls::pins,
    &HsaCalls::signals_created, &HsaCalls::blocking_copies, &HsaCalls::started_copies};

}  // namespace

// Defines the function that replaces ROCr's `name`: it counts the call and forwards it. Relaxed:
// the counts order no other memory access.
#define UPTEMPO_COUNTED(count, name, parameters, arguments)                              \
  hsa_status_t name parameters {                                                         \
    static const auto rocr = reinterpret_cast<decltype(&name)>(dlsym(RTLD_NEXT, #name)); \
    std::atomic_ref(made.count).fetch_add(1, std::memory_order_relaxed);                 \
    return rocr arguments;                                                               \
  }

extern "C" {

UPTEMPO_COUNTED(allocations, hsa_amd_memory_pool_allocate,
                (hsa_amd_memory_pool_t pool, size_t bytes, uint32_t flags, void** memory),
                (pool, bytes, flags, memory))
UPTEMPO_COUNTED(allocations, hsa_memory_allocate,
                (hsa_region_t region, size_t bytes, void** memory), (region, bytes, memory))
UPTEMPO_COUNTED(frees, hsa_amd_memory_pool_free, (void* memory), (memory))
UPTEMPO_COUNTED(frees, hsa_memory_free, (void* memory), (memory))
UPTEMPO_COUNTED(pins, hsa_amd_memory_lock,
                (void* host, size_t bytes, hsa_agent_t* agents, int agent_count, void** memory),
                (host, bytes, agents, agent_count, memory))
UPTEMPO_COUNTED(pins, hsa_amd_memory_lock_to_pool,
                (void* host, size_t bytes, hsa_agent_t* agents, int agent_count,
                 hsa_amd_memory_pool_t pool, uint32_t flags, void** memory),
                (host, bytes, agents, agent_count, pool, flags, memory))
UPTEMPO_COUNTED(signals_created, hsa_signal_create,
                (hsa_signal_value_t value, uint32_t consumer_count, const hsa_agent_t* consumers,
                 hsa_signal_t* signal),
                (value, consumer_count, consumers, signal))
UPTEMPO_COUNTED(signals_created, hsa_amd_signal_create,
                (hsa_signal_value_t value, uint32_t consumer_count, const hsa_agent_t* consumers,
                 uint64_t attributes, hsa_signal_t* signal),
                (value, consumer_count, consumers, attributes, signal))
UPTEMPO_COUNTED(blocking_copies, hsa_memory_copy, (void* to, const void* from, size_t bytes),
                (to, from, bytes))
UPTEMPO_COUNTED(started_copies, hsa_amd_memory_async_copy,
                (void* to, hsa_agent_t to_agent, const void* from, hsa_agent_t from_agent,
                 size_t bytes, uint32_t dependency_count, const hsa_signal_t* dependencies,
                 hsa_signal_t done),
                (to, to_agent, from, from_agent, bytes, dependency_count, dependencies, done))

// ROCr 5.6 and newer have it. Older headers do not declare it, so it has another name here.
hsa_status_t counted_copy_on_engine(
    void* to, hsa_agent_t to_agent, const void* from, hsa_agent_t from_agent, size_t bytes,
    uint32_t dependency_count, const hsa_signal_t* dependencies, hsa_signal_t done, uint32_t engine,
    bool force_copy_on_sdma) __asm__("hsa_amd_memory_async_copy_on_engine");
hsa_status_t counted_copy_on_engine(void* to, hsa_agent_t to_agent, const void* from,
                                    hsa_agent_t from_agent, size_t bytes, uint32_t dependency_count,
                                    const hsa_signal_t* dependencies, hsa_signal_t done,
                                    uint32_t engine, bool force_copy_on_sdma) {
  static const auto rocr = reinterpret_cast<decltype(&counted_copy_on_engine)>(
      dlsym(RTLD_NEXT, "hsa_amd_memory_async_copy_on_engine"));
  std::atomic_ref(made.started_copies).fetch_add(1, std::memory_order_relaxed);
  return rocr(to, to_agent, from, from_agent, bytes, dependency_count, dependencies, done, engine,
              force_copy_on_sdma);
}

}  // extern "C"

namespace uptempo::support {

HsaCalls HsaCalls::now() noexcept {
  HsaCalls calls;
  for (const auto count : kCounts)
    calls.*count = std::atomic_ref(made.*count).load(std::memory_order_relaxed);
  return calls;
}

HsaCalls& HsaCalls::operator+=(const HsaCalls& other) noexcept {
  for (const auto count : kCounts) this->*count += other.*count;
  return *this;
}

HsaCalls operator-(const HsaCalls& a, const HsaCalls& b) noexcept {
  HsaCalls calls = a;
  for (const auto count : kCounts) calls.*count -= b.*count;
  return calls;
}

}  // namespace uptempo::support
