#include "tools/lint/wrappers.hpp"

#include <array>
#include <atomic>
#include <ctime>
#include <mutex>
#include <optional>
#include <span>

#include "tools/lint/call_site.hpp"

namespace uptempo::lint {
namespace {

// Set before the functions are installed, never null in them.
std::atomic<Session*> current{nullptr};
Session& session() noexcept { return *current.load(std::memory_order_acquire); }

uint64_t now_ns() noexcept {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
}

void use(hsa_signal_t signal) noexcept {
  if (SignalTable::Entry* const entry = session().signals.find(signal.handle))
    SignalTable::use(*entry);
}
// Also before the signal is attached for the first time.
void use_early(hsa_signal_t signal) noexcept {
  if (signal.handle == 0) return;
  if (SignalTable::Entry* const entry = session().signals.add(signal.handle))
    SignalTable::use(*entry);
}
void use_always(hsa_signal_t signal) noexcept {
  if (signal.handle == 0) return;
  if (SignalTable::Entry* const entry = session().signals.add(signal.handle))
    SignalTable::use_always(*entry);
}
void use_dependencies(uint32_t count, const hsa_signal_t* signals) noexcept {
  for (uint32_t i = 0; i < count; ++i) use_early(signals[i]);
}

bool is_met(hsa_signal_condition_t condition, hsa_signal_value_t value,
            hsa_signal_value_t compare) noexcept {
  switch (condition) {
    case HSA_SIGNAL_CONDITION_EQ:
      return value == compare;
    case HSA_SIGNAL_CONDITION_NE:
      return value != compare;
    case HSA_SIGNAL_CONDITION_LT:
      return value < compare;
    default:
      return value >= compare;
  }
}

// A wait for a signal that packets may complete.
class Wait {
 public:
  // The caller has the right to load the signal.
  Wait(hsa_signal_t signal, hsa_signal_condition_t condition, hsa_signal_value_t compare) noexcept {
    Session& to = session();
    SignalTable::Entry* const entry = to.signals.find(signal.handle);
    if (entry == nullptr) return;
    SignalTable::use(*entry);
    awaited_ = SignalTable::awaited(*entry);
    if (!awaited_) return;
    is_met_ = is_met(condition, to.core.hsa_signal_load_relaxed_fn(signal), compare);
    start_ = now_ns();
  }
  // The condition is met. The signal may no longer exist. `value`: the one that the wait has seen.
  void end(hsa_signal_t signal, std::optional<hsa_signal_value_t> value) const noexcept {
    use(signal);  // attached while this thread waited
    if (!awaited_ || awaited_->last.queue == nullptr) return;
    const Attachment& last = awaited_->last;
    // First, because the reader looks for complete packets only after a wait.
    if (last.orders && value && awaited_->completed && *value == *awaited_->completed &&
        SignalTable::is_unchanged(*awaited_))
      last.queue->complete(last.index + 1);
    last.queue->waited(last.index, is_met_ ? std::nullopt : std::optional(now_ns() - start_));
  }

 private:
  std::optional<SignalTable::Awaited> awaited_;
  bool is_met_ = false;
  uint64_t start_ = 0;
};

// --- Queues and executables

hsa_status_t queue_create(hsa_agent_t agent, uint32_t size, hsa_queue_type32_t type,
                          void (*callback)(hsa_status_t, hsa_queue_t*, void*), void* data,
                          uint32_t private_bytes, uint32_t group_bytes, hsa_queue_t** queue) {
  const hsa_status_t status = session().core.hsa_queue_create_fn(agent, size, type, callback, data,
                                                                 private_bytes, group_bytes, queue);
  if (status == HSA_STATUS_SUCCESS) session().add_queue(agent, *queue);
  return status;
}

hsa_status_t queue_destroy(hsa_queue_t* queue) {
  if (queue != nullptr) session().remove_queue(queue);
  return session().core.hsa_queue_destroy_fn(queue);
}

// The queue of a tool that reads and rewrites packets. The program's packets are in this queue's
// ring; the tool passes its own on to another one.
hsa_status_t queue_intercept_create(hsa_agent_t agent, uint32_t size, hsa_queue_type32_t type,
                                    void (*callback)(hsa_status_t, hsa_queue_t*, void*), void* data,
                                    uint32_t private_bytes, uint32_t group_bytes,
                                    hsa_queue_t** queue) {
  const hsa_status_t status =
      session().amd<decltype(&queue_intercept_create)>(AmdFunction::queue_intercept_create)(
          agent, size, type, callback, data, private_bytes, group_bytes, queue);
  if (status == HSA_STATUS_SUCCESS) session().add_queue(agent, *queue);
  return status;
}

// hsa_amd_queue_create of AMD extension 1.26 and newer; older headers lack it. HIP creates its
// queues by it. Some of the queues may exist although the call returns an error.
hsa_status_t queues_create(hsa_agent_t agent, support::QueueDescriptor* descriptors,
                           uint32_t count) {
  const auto create = session().amd<support::QueueCreate>(AmdFunction::queue_create);
  if (descriptors == nullptr || count == 0) return create(agent, descriptors, count);
  // Another version may have another size.
  if (descriptors->version != support::QueueDescriptor::kVersion) {
    const hsa_status_t status = create(agent, descriptors, count);
    session().add_unknown_queues(count);
    return status;
  }
  const std::span all(descriptors, count);
  for (support::QueueDescriptor& each : all)
    each.queue = nullptr;  // ROCr may return before it does
  const hsa_status_t status = create(agent, descriptors, count);
  for (const support::QueueDescriptor& each : all) {
    if (each.queue == nullptr) continue;
    if (each.engine != support::QueueDescriptor::kCompute)
      session().add_queue_of_other_engine(agent, each.queue);
    else
      session().add_queue(agent, each.queue,
                          (each.flags & support::QueueDescriptor::kRingInDeviceMemory) != 0);
  }
  return status;
}

// ROCr notifies one function of its own queues, the lint's. It passes the notice on to the function
// that a later tool has registered.
struct OtherNotifier {
  std::mutex mutex;  // protects the members
  hsa_amd_runtime_queue_notifier notify = nullptr;
  void* data = nullptr;
};
OtherNotifier other_notifier;

void on_queue_of_rocr(const hsa_queue_t* queue, hsa_agent_t agent, void*) {
  session().add_queue_of_rocr(queue, agent);
  std::unique_lock lock(other_notifier.mutex);
  const auto notify = other_notifier.notify;
  void* const data = other_notifier.data;
  lock.unlock();
  if (notify != nullptr) notify(queue, agent, data);
}

hsa_status_t runtime_queue_create_register(hsa_amd_runtime_queue_notifier notify, void* data) {
  if (!session().knows_queues_of_rocr())
    return session().amd<decltype(&hsa_amd_runtime_queue_create_register)>(
        AmdFunction::runtime_queue_create_register)(notify, data);
  const std::lock_guard lock(other_notifier.mutex);
  if (other_notifier.notify != nullptr) return HSA_STATUS_ERROR;  // as ROCr
  other_notifier.notify = notify;
  other_notifier.data = data;
  return HSA_STATUS_SUCCESS;
}

// The last of several calls frees all queues and signals.
hsa_status_t shut_down() {
  Session& to = session();
  to.note_write_indices();
  const hsa_status_t status = to.core.hsa_shut_down_fn();
  uint16_t version = 0;
  if (to.core.hsa_system_get_info_fn(HSA_SYSTEM_INFO_VERSION_MAJOR, &version) ==
      HSA_STATUS_ERROR_NOT_INITIALIZED)
    to.close();
  return status;
}

hsa_status_t executable_freeze(hsa_executable_t executable, const char* options) {
  const hsa_status_t status = session().core.hsa_executable_freeze_fn(executable, options);
  if (status == HSA_STATUS_SUCCESS) session().add_kernels(executable);
  return status;
}

// --- Signals. One wrapper for each memory order of a function; `kFunction` is ROCr's.

// The value that a life ends with. The caller has the right to load the signal.
std::optional<hsa_signal_value_t> value_before(const SignalTable::Entry& entry,
                                               hsa_signal_t signal) noexcept {
  if (!SignalTable::needs_value(entry)) return std::nullopt;
  return session().core.hsa_signal_load_relaxed_fn(signal);
}

// Signals wrap around.
hsa_signal_value_t difference(hsa_signal_value_t a, hsa_signal_value_t b) noexcept {
  return static_cast<hsa_signal_value_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}

template <auto kFunction>
[[gnu::noinline]] void store_as_sample(hsa_signal_t signal, hsa_signal_value_t value,
                                       std::span<const RecordNumber> records) {
  Session& to = session();
  const uint64_t site = call_site();
  for (const RecordNumber record : records) to.ledger.add_site(record, site);
  const uint64_t start = now_ns();
  (to.core.*kFunction)(signal, value);
  to.doorbell_times.add(now_ns() - start);
}

template <auto kFunction>
void store(hsa_signal_t signal, hsa_signal_value_t value) {
  Session& to = session();
  SignalTable::Entry* const entry = to.signals.find(signal.handle);
  QueueWatch* const queue =
      entry == nullptr ? nullptr : entry->doorbell_of.load(std::memory_order_acquire);
  if (queue != nullptr) {
    const auto index = static_cast<uint64_t>(value);
    if (const auto repeat = queue->repeat(index); repeat.number != 0) [[likely]] {
      if (to.is_sample(repeat.number)) [[unlikely]]
        return store_as_sample<kFunction>(signal, value, std::span(&repeat.record, 1));
    } else if (const auto seen = queue->ring(index); seen.any) {
      if (seen.new_count != 0 && to.settings.sites)
        return store_as_sample<kFunction>(signal, value,
                                          std::span(seen.new_records).first(seen.new_count));
      if (to.is_sample(seen.number))
        return store_as_sample<kFunction>(signal, value, std::span(&seen.record, 1));
    }
  } else if (entry != nullptr) {
    to.signals.end_life(*entry, value_before(*entry, signal), value);
  }
  (to.core.*kFunction)(signal, value);
}

template <auto kFunction>
hsa_signal_value_t load(hsa_signal_t signal) {
  use(signal);
  return (session().core.*kFunction)(signal);
}

template <auto kFunction>
hsa_signal_value_t exchange(hsa_signal_t signal, hsa_signal_value_t value) {
  Session& to = session();
  if (SignalTable::Entry* const entry = to.signals.find(signal.handle)) {
    SignalTable::use(*entry);
    to.signals.end_life(*entry, value_before(*entry, signal), value);
  }
  return (to.core.*kFunction)(signal, value);
}

template <auto kFunction>
hsa_signal_value_t compare_exchange(hsa_signal_t signal, hsa_signal_value_t expected,
                                    hsa_signal_value_t value) {
  Session& to = session();
  SignalTable::Entry* const entry = to.signals.find(signal.handle);
  if (entry != nullptr) SignalTable::use(*entry);
  const hsa_signal_value_t before = (to.core.*kFunction)(signal, expected, value);
  if (entry != nullptr && before == expected)
    SignalTable::change(*entry, difference(value, before));
  return before;
}

template <auto kFunction>
void add(hsa_signal_t signal, hsa_signal_value_t value) {
  Session& to = session();
  if (SignalTable::Entry* const entry = to.signals.find(signal.handle))
    SignalTable::change(*entry, value);
  (to.core.*kFunction)(signal, value);
}

template <auto kFunction>
void subtract(hsa_signal_t signal, hsa_signal_value_t value) {
  Session& to = session();
  if (SignalTable::Entry* const entry = to.signals.find(signal.handle))
    SignalTable::change(*entry, difference(0, value));
  (to.core.*kFunction)(signal, value);
}

// Sets a value that is not known here: and, or, exclusive or.
template <auto kFunction>
void combine(hsa_signal_t signal, hsa_signal_value_t value) {
  Session& to = session();
  if (SignalTable::Entry* const entry = to.signals.find(signal.handle)) SignalTable::blur(*entry);
  (to.core.*kFunction)(signal, value);
}

template <auto kFunction>
hsa_signal_value_t wait(hsa_signal_t signal, hsa_signal_condition_t condition,
                        hsa_signal_value_t compare, uint64_t timeout, hsa_wait_state_t state) {
  const Wait wait(signal, condition, compare);
  const hsa_signal_value_t value =
      (session().core.*kFunction)(signal, condition, compare, timeout, state);
  if (is_met(condition, value, compare)) wait.end(signal, value);
  return value;
}

hsa_status_t signal_create(hsa_signal_value_t value, uint32_t count, const hsa_agent_t* consumers,
                           hsa_signal_t* signal) {
  Session& to = session();
  const hsa_status_t status = to.core.hsa_signal_create_fn(value, count, consumers, signal);
  if (status == HSA_STATUS_SUCCESS) to.signals.created(signal->handle, value);
  return status;
}

hsa_status_t signal_destroy(hsa_signal_t signal) {
  Session& to = session();
  if (SignalTable::Entry* const entry = to.signals.find(signal.handle))
    to.signals.destroy(*entry, value_before(*entry, signal));
  return to.core.hsa_signal_destroy_fn(signal);
}

// Waits for a group do not name the signals again.
hsa_status_t signal_group_create(uint32_t count, const hsa_signal_t* signals, uint32_t consumers,
                                 const hsa_agent_t* agents, hsa_signal_group_t* group) {
  for (uint32_t i = 0; i < count; ++i) use_always(signals[i]);
  return session().core.hsa_signal_group_create_fn(count, signals, consumers, agents, group);
}

// --- AMD's extensions

template <typename Function>
Function amd(AmdFunction function) noexcept {
  return session().amd<Function>(function);
}

hsa_status_t signal_async_handler(hsa_signal_t signal, hsa_signal_condition_t condition,
                                  hsa_signal_value_t value, hsa_amd_signal_handler handler,
                                  void* data) {
  use_always(signal);
  return amd<decltype(&hsa_amd_signal_async_handler)>(AmdFunction::signal_async_handler)(
      signal, condition, value, handler, data);
}

// Waits for several signals; those that do not fit are uses only.
class Waits {
 public:
  Waits(uint32_t count, const hsa_signal_t* signals, const hsa_signal_condition_t* conditions,
        const hsa_signal_value_t* values) noexcept
      : signals_(signals) {
    for (uint32_t i = 0; i < count; ++i) {
      use_early(signals[i]);
      if (i < waits_.size()) waits_[i].emplace(signals[i], conditions[i], values[i]);
    }
  }
  void end(uint32_t i, std::optional<hsa_signal_value_t> value) const noexcept {
    if (i < waits_.size() && waits_[i]) waits_[i]->end(signals_[i], value);
  }

 private:
  const hsa_signal_t* const signals_;
  std::array<std::optional<Wait>, 8> waits_;
};

uint32_t signal_wait_any(uint32_t count, hsa_signal_t* signals, hsa_signal_condition_t* conditions,
                         hsa_signal_value_t* values, uint64_t timeout, hsa_wait_state_t state,
                         hsa_signal_value_t* satisfying) {
  const Waits waits(count, signals, conditions, values);
  hsa_signal_value_t value = 0;
  const uint32_t met = amd<decltype(&hsa_amd_signal_wait_any)>(AmdFunction::signal_wait_any)(
      count, signals, conditions, values, timeout, state, &value);
  if (satisfying != nullptr) *satisfying = value;
  if (met < count) waits.end(met, value);
  return met;
}

// hsa_amd_signal_wait_all of ROCr 6.4 and newer; 5.2's headers lack it.
uint32_t signal_wait_all(uint32_t count, hsa_signal_t* signals, hsa_signal_condition_t* conditions,
                         hsa_signal_value_t* values, uint64_t timeout, hsa_wait_state_t state,
                         hsa_signal_value_t* satisfying) {
  const Waits waits(count, signals, conditions, values);
  const uint32_t result = amd<decltype(&signal_wait_all)>(AmdFunction::signal_wait_all)(
      count, signals, conditions, values, timeout, state, satisfying);
  for (uint32_t i = 0; result == 0 && i < count; ++i) waits.end(i, std::nullopt);
  return result;
}

hsa_status_t memory_async_copy(void* to, hsa_agent_t to_agent, const void* from,
                               hsa_agent_t from_agent, size_t bytes, uint32_t count,
                               const hsa_signal_t* signals, hsa_signal_t done) {
  use_dependencies(count, signals);
  return amd<decltype(&hsa_amd_memory_async_copy)>(AmdFunction::memory_async_copy)(
      to, to_agent, from, from_agent, bytes, count, signals, done);
}

// Since ROCr 5.6. The engine is an enumeration of 32 bits.
hsa_status_t memory_async_copy_on_engine(void* to, hsa_agent_t to_agent, const void* from,
                                         hsa_agent_t from_agent, size_t bytes, uint32_t count,
                                         const hsa_signal_t* signals, hsa_signal_t done,
                                         uint32_t engine, bool force) {
  use_dependencies(count, signals);
  return amd<decltype(&memory_async_copy_on_engine)>(AmdFunction::memory_async_copy_on_engine)(
      to, to_agent, from, from_agent, bytes, count, signals, done, engine, force);
}

hsa_status_t memory_async_copy_rect(const hsa_pitched_ptr_t* to, const hsa_dim3_t* to_offset,
                                    const hsa_pitched_ptr_t* from, const hsa_dim3_t* from_offset,
                                    const hsa_dim3_t* range, hsa_agent_t agent,
                                    hsa_amd_copy_direction_t direction, uint32_t count,
                                    const hsa_signal_t* signals, hsa_signal_t done) {
  use_dependencies(count, signals);
  return amd<decltype(&hsa_amd_memory_async_copy_rect)>(AmdFunction::memory_async_copy_rect)(
      to, to_offset, from, from_offset, range, agent, direction, count, signals, done);
}

hsa_status_t get_dispatch_time(hsa_agent_t agent, hsa_signal_t signal,
                               hsa_amd_profiling_dispatch_time_t* time) {
  use(signal);
  return amd<decltype(&hsa_amd_profiling_get_dispatch_time)>(AmdFunction::get_dispatch_time)(
      agent, signal, time);
}

hsa_status_t signal_value_pointer(hsa_signal_t signal, volatile hsa_signal_value_t** pointer) {
  use_always(signal);
  return amd<decltype(&hsa_amd_signal_value_pointer)>(AmdFunction::signal_value_pointer)(signal,
                                                                                         pointer);
}

hsa_status_t ipc_signal_create(hsa_signal_t signal, hsa_amd_ipc_signal_t* handle) {
  use_always(signal);
  return amd<decltype(&hsa_amd_ipc_signal_create)>(AmdFunction::ipc_signal_create)(signal, handle);
}

hsa_status_t ipc_signal_attach(const hsa_amd_ipc_signal_t* handle, hsa_signal_t* signal) {
  const hsa_status_t status =
      amd<decltype(&hsa_amd_ipc_signal_attach)>(AmdFunction::ipc_signal_attach)(handle, signal);
  if (status == HSA_STATUS_SUCCESS) use_always(*signal);
  return status;
}

hsa_status_t amd_signal_create(hsa_signal_value_t value, uint32_t count,
                               const hsa_agent_t* consumers, uint64_t attributes,
                               hsa_signal_t* signal) {
  const hsa_status_t status = amd<decltype(&hsa_amd_signal_create)>(AmdFunction::signal_create)(
      value, count, consumers, attributes, signal);
  if (status == HSA_STATUS_SUCCESS) session().signals.created(signal->handle, value);
  return status;
}

template <typename Function>
void replace(const AmdEntries& amd_entries, AmdFunction function, Function* wrapper) {
  if (void** const entry = amd_entries[function]) *entry = reinterpret_cast<void*>(wrapper);
}

}  // namespace

void install(Session& to, CoreApiTable& core, const AmdEntries& amd_entries) {
  current.store(&to, std::memory_order_release);
  core.hsa_shut_down_fn = shut_down;
  core.hsa_queue_create_fn = queue_create;
  core.hsa_queue_destroy_fn = queue_destroy;
  core.hsa_executable_freeze_fn = executable_freeze;
  core.hsa_signal_create_fn = signal_create;
  core.hsa_signal_destroy_fn = signal_destroy;
  core.hsa_signal_group_create_fn = signal_group_create;
#define UPTEMPO_REPLACE(function, wrapper) core.function = wrapper<&CoreApiTable::function>
  UPTEMPO_REPLACE(hsa_signal_store_relaxed_fn, store);
  UPTEMPO_REPLACE(hsa_signal_store_screlease_fn, store);
  UPTEMPO_REPLACE(hsa_signal_silent_store_relaxed_fn, store);
  UPTEMPO_REPLACE(hsa_signal_silent_store_screlease_fn, store);
  UPTEMPO_REPLACE(hsa_signal_load_relaxed_fn, load);
  UPTEMPO_REPLACE(hsa_signal_load_scacquire_fn, load);
  UPTEMPO_REPLACE(hsa_signal_wait_relaxed_fn, wait);
  UPTEMPO_REPLACE(hsa_signal_wait_scacquire_fn, wait);
#define UPTEMPO_REPLACE_ALL(name, wrapper)                    \
  UPTEMPO_REPLACE(hsa_signal_##name##_relaxed_fn, wrapper);   \
  UPTEMPO_REPLACE(hsa_signal_##name##_scacquire_fn, wrapper); \
  UPTEMPO_REPLACE(hsa_signal_##name##_screlease_fn, wrapper); \
  UPTEMPO_REPLACE(hsa_signal_##name##_scacq_screl_fn, wrapper)
  UPTEMPO_REPLACE_ALL(exchange, exchange);
  UPTEMPO_REPLACE_ALL(cas, compare_exchange);
  UPTEMPO_REPLACE_ALL(add, add);
  UPTEMPO_REPLACE_ALL(subtract, subtract);
  UPTEMPO_REPLACE_ALL(and, combine);
  UPTEMPO_REPLACE_ALL(or, combine);
  UPTEMPO_REPLACE_ALL(xor, combine);
#undef UPTEMPO_REPLACE_ALL
#undef UPTEMPO_REPLACE
  replace(amd_entries, AmdFunction::signal_async_handler, signal_async_handler);
  replace(amd_entries, AmdFunction::signal_wait_any, signal_wait_any);
  replace(amd_entries, AmdFunction::signal_wait_all, signal_wait_all);
  replace(amd_entries, AmdFunction::memory_async_copy, memory_async_copy);
  replace(amd_entries, AmdFunction::memory_async_copy_on_engine, memory_async_copy_on_engine);
  replace(amd_entries, AmdFunction::memory_async_copy_rect, memory_async_copy_rect);
  replace(amd_entries, AmdFunction::get_dispatch_time, get_dispatch_time);
  replace(amd_entries, AmdFunction::signal_value_pointer, signal_value_pointer);
  replace(amd_entries, AmdFunction::ipc_signal_create, ipc_signal_create);
  replace(amd_entries, AmdFunction::ipc_signal_attach, ipc_signal_attach);
  replace(amd_entries, AmdFunction::signal_create, amd_signal_create);
  replace(amd_entries, AmdFunction::queue_intercept_create, queue_intercept_create);
  replace(amd_entries, AmdFunction::queue_create, queues_create);
  replace(amd_entries, AmdFunction::runtime_queue_create_register, runtime_queue_create_register);
  {
    const std::lock_guard lock(other_notifier.mutex);
    other_notifier.notify = nullptr;
  }
  // Fails if another tool has registered before.
  if (const auto on_create = to.amd<decltype(&hsa_amd_runtime_queue_create_register)>(
          AmdFunction::runtime_queue_create_register))
    to.set_knows_queues_of_rocr(on_create(on_queue_of_rocr, nullptr) == HSA_STATUS_SUCCESS);
}

}  // namespace uptempo::lint
