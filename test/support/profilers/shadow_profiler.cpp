// A tool for HSA_TOOLS_LIB that keeps a write index of its own for each queue, as rocprofiler-sdk
// of 2026 does (ROCm/rocm-systems pull requests 5219 and 7796; behaviour only).
//
// * hsa_queue_*_write_index_* act on the tool's index. The queue's index stays where it is.
// * A store to the doorbell makes the tool take the packets up to its index, or up to the first one
//   that reads INVALID. It copies each out, sets its slot to INVALID, reports it, writes it again,
//   and then moves the queue's index and rings the doorbell for what it has written.
// * Problems: a doorbell for a slot that the tool's index does not cover, which hangs
//   rocprofiler-sdk (7796); a queue whose own index was moved past the tool.
//
// UPTEMPO_PROFILER_DORMANT: the tool replaces the functions but passes every call on, like
// rocprofiler-sdk before a context is started.
#include <hsa/amd_hsa_queue.h>
#include <hsa/hsa.h>
#include <hsa/hsa_api_trace.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <shared_mutex>
#include <vector>

#include "test/support/profilers/report.hpp"

namespace {

using uptempo::test::ProfilerReport;

struct State {
  hsa_queue_t* queue;
  std::atomic<uint64_t> index{0};  // what producers see
  std::mutex mutex;                // protects the members below, and the queue's own index
  uint64_t taken = 0;              // packets handed to the device

  std::atomic_ref<uint64_t> own_index() const {
    auto* const abi = reinterpret_cast<amd_queue_t*>(queue);
    return std::atomic_ref(const_cast<uint64_t&>(abi->write_dispatch_id));
  }
};

struct Tool {
  ProfilerReport report{"shadow"};
  CoreApiTable original{};
  bool dormant = false;
  std::shared_mutex mutex;  // protects the maps
  std::map<const hsa_queue_t*, std::shared_ptr<State>> by_queue;
  std::map<uint64_t, std::shared_ptr<State>> by_doorbell;

  std::shared_ptr<State> of(const hsa_queue_t* queue) {
    const std::shared_lock lock(mutex);
    const auto found = by_queue.find(queue);
    return found == by_queue.end() ? nullptr : found->second;
  }
  std::shared_ptr<State> of(hsa_signal_t doorbell) {
    const std::shared_lock lock(mutex);
    const auto found = by_doorbell.find(doorbell.handle);
    return found == by_doorbell.end() ? nullptr : found->second;
  }
};

// Never destroyed: threads of the process may still be in a wrapper at its end.
Tool& tool() {
  static Tool* const instance = new Tool;
  return *instance;
}

void check_own_index(const State& state, const char* when) {
  if (const uint64_t own = state.own_index().load(); own != state.taken)
    tool().report.add_problem(
        std::string("the queue's own write index was moved past the tool to ") +
        std::to_string(own) + " instead of " + std::to_string(state.taken) + ", seen " + when);
}

void on_doorbell(State& state, uint64_t value) {
  const std::lock_guard lock(state.mutex);
  check_own_index(state, "at a doorbell");
  const uint64_t end = state.index.load(std::memory_order_acquire);
  // Modular, like the packet processor's indices.
  if (static_cast<int64_t>(value - end) >= 0)
    tool().report.add_problem("the doorbell was rung for packet " + std::to_string(value) +
                              ", but the write index is " + std::to_string(end));
  using Packet = std::array<uint32_t, 16>;
  auto* const ring = static_cast<Packet*>(state.queue->base_address);
  const uint64_t mask = state.queue->size - 1;
  std::vector<Packet> packets;
  // Producers claim an index before they wait for room: beyond it, a slot still holds the packet of
  // the last lap.
  const uint64_t room_end =
      tool().original.hsa_queue_load_read_index_scacquire_fn(state.queue) + state.queue->size;
  const uint64_t last = static_cast<int64_t>(end - room_end) > 0 ? room_end : end;
  for (uint64_t at = state.taken; at != last; ++at) {
    std::atomic_ref<uint32_t> first(ring[at & mask][0]);
    const uint32_t word = first.load(std::memory_order_acquire);
    if ((word & 0xff) == HSA_PACKET_TYPE_INVALID) break;
    packets.push_back(ring[at & mask]);
    packets.back()[0] = word;
    first.store(HSA_PACKET_TYPE_INVALID, std::memory_order_release);
  }
  if (packets.empty()) return;
  for (size_t i = 0; i < packets.size(); ++i) {
    Packet& slot = ring[(state.taken + i) & mask];
    tool().report.add_packet(state.queue, packets[i].data());
    std::memcpy(&slot[1], &packets[i][1], sizeof(Packet) - sizeof(uint32_t));
    std::atomic_ref(slot[0]).store(packets[i][0], std::memory_order_release);
  }
  state.taken += packets.size();
  state.own_index().store(state.taken, std::memory_order_release);
  tool().original.hsa_signal_store_screlease_fn(state.queue->doorbell_signal,
                                                static_cast<hsa_signal_value_t>(state.taken - 1));
}

hsa_status_t queue_create(hsa_agent_t agent, uint32_t size, hsa_queue_type32_t type,
                          void (*callback)(hsa_status_t, hsa_queue_t*, void*), void* data,
                          uint32_t private_bytes, uint32_t group_bytes, hsa_queue_t** queue) {
  const hsa_status_t status = tool().original.hsa_queue_create_fn(
      agent, size, type, callback, data, private_bytes, group_bytes, queue);
  if (status != HSA_STATUS_SUCCESS || tool().dormant) return status;
  tool().report.add_queue(*queue);
  auto state = std::make_shared<State>();
  state->queue = *queue;
  state->taken = state->own_index().load();
  state->index = state->taken;
  const std::unique_lock lock(tool().mutex);
  tool().by_queue[*queue] = state;
  tool().by_doorbell[(*queue)->doorbell_signal.handle] = state;
  return status;
}

hsa_status_t queue_destroy(hsa_queue_t* queue) {
  if (const auto state = tool().of(queue)) {
    {
      const std::lock_guard lock(state->mutex);
      check_own_index(*state, "when the queue was destroyed");
    }
    const std::unique_lock lock(tool().mutex);
    tool().by_queue.erase(queue);
    tool().by_doorbell.erase(queue->doorbell_signal.handle);
  }
  return tool().original.hsa_queue_destroy_fn(queue);
}

// One wrapper for each memory order of a function: the tool's own index is always sequentially
// consistent. `kOriginal` is the member of the table that holds ROCr's function.
template <auto kOriginal>
uint64_t load_index(const hsa_queue_t* queue) {
  if (const auto state = tool().of(queue)) return state->index.load();
  return (tool().original.*kOriginal)(queue);
}
template <auto kOriginal>
void store_index(const hsa_queue_t* queue, uint64_t value) {
  if (const auto state = tool().of(queue)) {
    state->index.store(value);
  } else {
    (tool().original.*kOriginal)(queue, value);
  }
}
template <auto kOriginal>
uint64_t add_index(const hsa_queue_t* queue, uint64_t value) {
  if (const auto state = tool().of(queue)) return state->index.fetch_add(value);
  return (tool().original.*kOriginal)(queue, value);
}
template <auto kOriginal>
uint64_t cas_index(const hsa_queue_t* queue, uint64_t expected, uint64_t value) {
  if (const auto state = tool().of(queue)) {
    state->index.compare_exchange_strong(expected, value);
    return expected;
  }
  return (tool().original.*kOriginal)(queue, expected, value);
}
template <auto kOriginal>
void store_signal(hsa_signal_t signal, hsa_signal_value_t value) {
  if (const auto state = tool().of(signal)) {
    on_doorbell(*state, static_cast<uint64_t>(value));
  } else {
    (tool().original.*kOriginal)(signal, value);
  }
}

void replace(CoreApiTable& table) {
  table.hsa_queue_create_fn = queue_create;
  table.hsa_queue_destroy_fn = queue_destroy;
#define UPTEMPO_REPLACE(function, wrapper) table.function = wrapper<&CoreApiTable::function>
  UPTEMPO_REPLACE(hsa_queue_load_write_index_relaxed_fn, load_index);
  UPTEMPO_REPLACE(hsa_queue_load_write_index_scacquire_fn, load_index);
  UPTEMPO_REPLACE(hsa_queue_store_write_index_relaxed_fn, store_index);
  UPTEMPO_REPLACE(hsa_queue_store_write_index_screlease_fn, store_index);
  UPTEMPO_REPLACE(hsa_queue_add_write_index_relaxed_fn, add_index);
  UPTEMPO_REPLACE(hsa_queue_add_write_index_scacquire_fn, add_index);
  UPTEMPO_REPLACE(hsa_queue_add_write_index_screlease_fn, add_index);
  UPTEMPO_REPLACE(hsa_queue_add_write_index_scacq_screl_fn, add_index);
  UPTEMPO_REPLACE(hsa_queue_cas_write_index_relaxed_fn, cas_index);
  UPTEMPO_REPLACE(hsa_queue_cas_write_index_scacquire_fn, cas_index);
  UPTEMPO_REPLACE(hsa_queue_cas_write_index_screlease_fn, cas_index);
  UPTEMPO_REPLACE(hsa_queue_cas_write_index_scacq_screl_fn, cas_index);
  UPTEMPO_REPLACE(hsa_signal_store_relaxed_fn, store_signal);
  UPTEMPO_REPLACE(hsa_signal_store_screlease_fn, store_signal);
  UPTEMPO_REPLACE(hsa_signal_silent_store_relaxed_fn, store_signal);
  UPTEMPO_REPLACE(hsa_signal_silent_store_screlease_fn, store_signal);
#undef UPTEMPO_REPLACE
}

}  // namespace

extern "C" {

bool OnLoad(HsaApiTable* table, uint64_t, uint64_t, const char* const*) {
  tool().original = *table->core_;
  tool().dormant = std::getenv("UPTEMPO_PROFILER_DORMANT") != nullptr;
  replace(*table->core_);
  return true;
}

void OnUnload() { tool().report.write(); }

void uptempo_profiler_counts(uptempo::test::ProfilerCounts* counts) {
  *counts = tool().report.counts();
}

// A process that leaves HSA initialised does not call OnUnload.
__attribute__((destructor)) static void report_at_the_end() { tool().report.write(); }
}
