#include "cp/aql_queue.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "cp/packet/packet_fences.hpp"
#include "cp/packet/pm4.hpp"
#include "cp/queue_exception.hpp"
#include "cp/signal.hpp"
#include "device/clock.hpp"
#include "device/device_counts.hpp"
#include "gfx9/wave_sync.hpp"

namespace uptempo::vgpu {
namespace {

static_assert(
    offsetof(amd_queue_t, read_dispatch_id) == 0x80 &&
        offsetof(amd_queue_t, write_dispatch_id) == 0x38,
    "KFD passes the addresses of these two fields; amd_queue_t's address follows from them");

// --grouped-read-index
constexpr uint64_t kSlotsOfGroup = 8;

template <typename T>
T load_acquire(T* word) noexcept {
  return std::atomic_ref<T>(*word).load(std::memory_order_acquire);
}

// Whether the end of a dispatch has no effect but on its packet's slot and signal. Then a worker
// may start the next one by itself.
bool ends_without_effects(const Device& device) {
  const Options& options = device.options;
  return device.injector == nullptr && device.caches == nullptr && !is_observed(device) &&
         device.lazy_bar == nullptr && !options.delay && !options.null_kernels &&
         !options.early_read_index && !options.deterministic && !device.trace.enabled();
}

}  // namespace

AqlQueue::AqlQueue(QueueContext& context, uint32_t ordinal, const ComputeQueueConfig& config,
                   bool runtime_owned)
    : Queue(context, ordinal, fences::Checker::QueueKind::compute),
      config_(config),
      wave_sync_(std::make_shared<gfx9::WaveSync>()),
      runtime_owned_(runtime_owned),
      packets_(config.ring_bytes / kAqlPacketBytes),
      chains_(context.scheduler.has_helpers() && ends_without_effects(context.device)),
      is_eager_(context.device.options.eager_packets && !runtime_owned),
      frees_in_groups_(context.device.options.grouped_read_index && !runtime_owned),
      races_(context.device, ordinal) {
  suspended_ = config.percentage == 0 || packets_ == 0;
  const DeviceDescription& device = *context.device.options.device;
  share_.units = ComputeUnitSet::all(device);
  share_.priority = pipe_priority(config.priority);
  share_.first_xcd = ordinal % device.xcds;
}

bool AqlQueue::update(GpuAddress ring, uint64_t ring_bytes, uint32_t percentage,
                      uint32_t priority) {
  const bool suspend = percentage == 0 || ring_bytes == 0;
  if (!suspend && (ring != config_.ring || ring_bytes != config_.ring_bytes)) return false;
  config_.priority = priority;
  context_.scheduler.set_priority(share_, pipe_priority(priority));
  context_.scheduler.set_suspended(share_, suspend);
  // ROCr suspends a queue for which it has not found the memory.
  if (suspend && !suspended_ && scratch_requested_)
    note(packet_name(next_, HSA_PACKET_TYPE_KERNEL_DISPATCH),
         "the queue is suspended while it waits for scratch: " + scratch_request_);
  suspended_ = suspend;
  return true;
}

void AqlQueue::set_compute_units(const ComputeUnitSet& units) {
  context_.scheduler.set_units(share_, units);
}

bool AqlQueue::advance() {
  if (stopped_ || suspended_) {
    if (stopped_) abandon();
    return wait_for(Waiting::nothing);
  }
  if (!attach()) return false;
  look_at_doorbell();
  bool progressed = reap();
  for (unsigned taken = 0; taken < kPacketsPerTurn && !stopped_ && launch_next(); ++taken)
    progressed = true;
  publish_read_index();
  return progressed;
}

bool AqlQueue::abandon() {
  stopped_ = true;
  bool all_finished = true;
  for (InFlight& packet : in_flight_) {
    if (packet.dispatch == nullptr) continue;
    context_.scheduler.abandon(*packet.dispatch);
    context_.scheduler.drop_abandoned();
    if (packet.dispatch->finished()) {
      packet.dispatch.reset();
    } else {
      all_finished = false;
    }
  }
  return all_finished;
}

bool AqlQueue::executing() const noexcept {
  if (running_ == 0) return false;
  return std::any_of(in_flight_.begin(), in_flight_.end(), [](const InFlight& packet) {
    return packet.dispatch != nullptr && !packet.dispatch->finished();
  });
}

bool AqlQueue::at_rest() const noexcept {
  return stopped_ || suspended_ ||
         (running_ == 0 && !late_completion_ && waiting_ != Waiting::workers &&
          waiting_ != Waiting::delay &&
          // a thread of the runtime answers
          !scratch_requested_ && !scratch_reclaim_sent_);
}

// The program may unmap memory between sections, so each section translates the queue's addresses
// again.
bool AqlQueue::attach() {
  const uint64_t section = context_.memory.section();
  if (attached_in_ == section) return true;
  const GpuAddress queue = config_.read_index - offsetof(amd_queue_t, read_dispatch_id);
  const auto find = [this](GpuAddress address, size_t size_bytes) -> std::byte* {
    std::byte* bytes = context_.memory.translate(address, size_bytes, Access::write);
    if (bytes == nullptr) {
      MemoryFault fault;
      fault.address = address;
      fault.access = Access::write;
      fault.present = context_.memory.find(address) != nullptr;
      fault.where = "the queue's own ring or indices";
      stop_with_fault(next_, HSA_PACKET_TYPE_INVALID, std::move(fault));
    }
    return bytes;
  };
  ring_ = find(config_.ring, config_.ring_bytes);
  if (ring_ == nullptr) return false;
  amd_queue_ = reinterpret_cast<amd_queue_t*>(find(queue, sizeof(amd_queue_t)));
  if (amd_queue_ == nullptr) return false;
  read_index_ = const_cast<uint64_t*>(&amd_queue_->read_dispatch_id);
  write_index_ = reinterpret_cast<uint64_t*>(find(config_.write_index, sizeof(uint64_t)));
  if (write_index_ == nullptr) return false;
  attached_in_ = section;
  return true;
}

void AqlQueue::look_at_doorbell() {
  if (config_.doorbell == nullptr) return;
  const uint64_t value = load_acquire(config_.doorbell);
  if (value == doorbell_seen_) return;
  if (delays_ != nullptr && !delays_->doorbell_over(value)) [[unlikely]]
    return;
  doorbell_seen_ = value;
  found_doorbell(value);
  written_ = load_acquire(write_index_);
  admitted_ = std::max({admitted_, value + 1, written_});
}

bool AqlQueue::reap() {
  if (running_ == 0) return false;
  bool progressed = false;
  for (uint64_t index = oldest_; index < next_ && !stopped_; ++index) {
    InFlight& packet = in_flight(index);
    if (packet.dispatch == nullptr || !packet.dispatch->finished()) continue;
    // A dispatch that was chained may be seen to finish before those that it waited for, which
    // finished earlier. Its completion frees their slots, too.
    if (packet.begun.header.barrier() && index != oldest_) break;
    if (delays_ != nullptr && is_late(packet, index)) [[unlikely]]
      continue;
    progressed = true;
    const std::unique_ptr<Dispatch> dispatch = std::move(packet.dispatch);
    packet.checked.reset();
    if (packet.races) races_.end(*packet.races);
    packet.races.reset();
    if (const auto& fault = dispatch->fault()) {
      if (fault->memory) {
        stop_with_fault(index, HSA_PACKET_TYPE_KERNEL_DISPATCH, *fault->memory);
      } else {
        stop(index, HSA_PACKET_TYPE_KERNEL_DISPATCH, fault->error, fault->message);
      }
      return true;
    }
    packet.complete = true;
    --running_;
    const Begun begun = packet.begun;
    const auto section = fences_.section();
    if (packet.watched) fences_.end(*packet.watched, begun.header, index, begun.completion_signal);
    packet.watched.reset();
    carry_out_release(context_.device, begun.header);
    retire();
    signal_completion(index, begun, &dispatch->state().packet, &dispatch->state().name);
  }
  return progressed;
}

bool AqlQueue::launch_next() {
  if (scratch_once_used_ && !scratch_is_reclaimed()) return false;
  const bool is_rung = next_ < admitted_;
  if (!is_rung && !is_eager_) return wait_for(Waiting::doorbell);
  // Loads the index only when needed, because the producer stores to that line for every packet.
  if (is_rung && next_ >= written_) written_ = load_acquire(write_index_);
  if (is_rung && next_ >= written_ && !is_eager_) return wait_for(Waiting::memory);
  if (next_ - oldest_ >= kMaxInFlight || next_ - retired_ >= packets_ ||
      !context_.scheduler.has_room())
    return wait_for(Waiting::workers);
  const std::byte* packet = slot(next_);
  // acquire: the producer stores the header last, so a valid header means that the other 60 bytes
  // are complete.
  const AqlHeader header{static_cast<uint16_t>(
      std::atomic_ref<uint32_t>(*reinterpret_cast<uint32_t*>(const_cast<std::byte*>(packet)))
          .load(std::memory_order_acquire))};
  if (header.type() == HSA_PACKET_TYPE_INVALID)
    return wait_for(is_rung ? Waiting::memory : Waiting::doorbell);
  // The write index may admit a packet before its doorbell is seen.
  if (checks_publishers() && static_cast<int64_t>(next_ - doorbell_seen_) > 0) note_doorbells();
  if (blocked_on_earlier()) {
    const bool waits = header.barrier() || chain_waits();
    if (waits && !chain_next(packet, header)) return wait_for(Waiting::workers);
    if (waits) return true;
  }
  if (delays_ != nullptr) [[unlikely]]
    if (const std::optional<bool> held = hold_back()) return *held;
  if (context_.device.injector != nullptr) [[unlikely]]
    if (const std::optional<bool> injected = inject(header)) return *injected;
  return launch(packet, header);
}

bool AqlQueue::launch(const std::byte* packet, AqlHeader header) {
  begin_packet(packet);
  if (const auto error = check_header(header)) {
    stop(next_, header.type(), error->error, error->reason);
    return false;
  }
  if (context_.device.options.verbose) [[unlikely]]
    note_ignored_field(packet, header);
  switch (header.type()) {
    case HSA_PACKET_TYPE_KERNEL_DISPATCH:
      return launch_dispatch(packet, header);
    case HSA_PACKET_TYPE_BARRIER_AND:
    case HSA_PACKET_TYPE_BARRIER_OR:
      return launch_barrier(packet, header);
    case HSA_PACKET_TYPE_VENDOR_SPECIFIC:
      return launch_vendor(packet, header);
    case HSA_PACKET_TYPE_AGENT_DISPATCH:
      stop(next_, header.type(), QueueError::packet_format,
           "agent dispatches are for the host's queues; a GPU's command processor cannot run them");
      return false;
    default:
      stop(next_, header.type(), QueueError::packet_format,
           "packet type " + std::to_string(header.type()) + " does not exist");
      return false;
  }
}

bool AqlQueue::has_property(amd_queue_properties_t property) const noexcept {
  // acquire: ROCr clears USE_SCRATCH_ONCE after it has replaced the scratch.
  return (load_acquire(&amd_queue_->queue_properties) &
          static_cast<amd_queue_properties32_t>(property)) != 0;
}

void AqlQueue::begin_packet(const std::byte* packet) {
  if (start_ticks_ != 0) return;
  const bool tracing = context_.device.trace.enabled();
  // Two clock reads cost as much as the rest of an empty packet, so they are made only when needed:
  // times go into the completion signal, which is the last field of every packet.
  uint64_t signal = 0;
  std::memcpy(&signal, packet + kAqlPacketBytes - sizeof signal, sizeof signal);
  if (tracing || (signal != 0 && has_property(AMD_QUEUE_PROPERTIES_ENABLE_PROFILING))) {
    start_ticks_ = gpu_clock_ticks();
    start_ns_ = tracing ? host_clock_ns() : 0;
  }
}

bool AqlQueue::launch_vendor(const std::byte* bytes, AqlHeader header) {
  const auto format = static_cast<uint32_t>(bytes[2]);
  switch (format) {
    case kVendorFormatPm4Ib:
      return launch_pm4(bytes, header);
    case kVendorFormatBarrierValue:
      return launch_barrier_value(bytes, header);
    default:
      stop(next_, header.type(), QueueError::invalid_vendor_packet,
           "vendor format " + std::to_string(format) +
               " is not supported; 1 (PM4 indirect buffer) and 2 (barrier-value) are");
      return false;
  }
}

bool AqlQueue::launch_barrier(const std::byte* bytes, AqlHeader header) {
  hsa_barrier_and_packet_t packet;
  std::memcpy(&packet, bytes, sizeof packet);
  fences_.look_at_dependencies();
  const bool is_and = header.type() == HSA_PACKET_TYPE_BARRIER_AND;
  bool all = true;
  bool any = false;
  for (const hsa_signal_t& signal : packet.dep_signal) {
    // A null handle is a satisfied dependency of an AND and an unsatisfied one of an OR (hsa.h,
    // dep_signal).
    if (signal.handle == 0) continue;
    const auto holds = dependency_holds(signal, HSA_SIGNAL_CONDITION_EQ, 0, -1);
    if (!holds) return false;
    all = all && *holds;
    any = any || *holds;
  }
  if (!(is_and ? all : any)) return wait_for(Waiting::memory);
  return complete_in_place(header, packet.completion_signal, nullptr, nullptr);
}

bool AqlQueue::launch_barrier_value(const std::byte* bytes, AqlHeader header) {
  hsa_amd_barrier_value_packet_t packet;
  std::memcpy(&packet, bytes, sizeof packet);
  if (const auto error = check_barrier_value(packet)) {
    stop(next_, header.type(), error->error, error->reason);
    return false;
  }
  fences_.look_at_dependencies();
  if (packet.signal.handle != 0) {
    const auto holds = dependency_holds(packet.signal, packet.cond, packet.value, packet.mask);
    if (!holds) return false;
    if (!*holds) return wait_for(Waiting::memory);
  }
  return complete_in_place(header, packet.completion_signal, nullptr, nullptr);
}

bool AqlQueue::launch_pm4(const std::byte* bytes, AqlHeader header) {
  Pm4IbPacket packet;
  std::memcpy(&packet, bytes, sizeof packet);
  const Pm4Result result = execute_pm4(context_.memory, packet);
  if (result.error) {
    stop(next_, header.type(), result.error->error, result.error->reason);
    return false;
  }
  if (context_.device.caches != nullptr) context_.device.caches->carry_out(result.caches);
  fences_.carry_out(result.caches);
  if (result.invalidates_code) {
    context_.kernels.forget_code();
    context_.code.invalidate();
  }
  return complete_in_place(header, packet.completion_signal, nullptr, nullptr);
}

// Returns nullopt and stops the queue if the handle does not refer to a signal.
std::optional<bool> AqlQueue::dependency_holds(hsa_signal_t handle,
                                               hsa_signal_condition32_t condition, int64_t value,
                                               int64_t mask) {
  const amd_signal_t* signal = find_signal(context_.memory, handle.handle);
  if (signal == nullptr) {
    MemoryFault fault;
    fault.address = handle.handle;
    fault.present = context_.memory.find(handle.handle) != nullptr;
    fault.where = "a dependency signal of packet " + std::to_string(next_) + " of queue " +
                  std::to_string(ordinal_);
    stop_with_fault(next_, HSA_PACKET_TYPE_BARRIER_AND, std::move(fault));
    return std::nullopt;
  }
  const int64_t found = signal_value(*signal);
  const bool holds = condition_holds(condition, found & mask, value);
  if (holds) {
    fences_.satisfied(handle, found);
  } else {
    fences_.unsatisfied(handle.handle);
  }
  return holds;
}

// For a packet that completes when it is launched.
bool AqlQueue::complete_in_place(AqlHeader header, hsa_signal_t signal,
                                 const hsa_kernel_dispatch_packet_t* dispatch,
                                 const std::string* kernel) {
  if (delays_ != nullptr && completes_late(header, signal, dispatch, kernel)) [[unlikely]]
    return false;
  const uint64_t index = next_++;
  const Begun packet{header, signal, std::exchange(start_ticks_, 0), start_ns_};
  const auto section = fences_.section();
  fences_.complete(header, index, signal);
  if (oldest_ == index) {  // nothing is in flight, so no entry is needed
    ++oldest_;
  } else {
    InFlight& entry = in_flight(index);
    entry.complete = true;
    entry.retire_early = false;
    entry.dispatch.reset();
  }
  carry_out_acquire(context_.device, header, index == stale_);
  carry_out_release(context_.device, header);
  retire();
  return signal_completion(index, packet, dispatch, kernel);
}

// Returns false and stops the queue if the signal cannot be written.
bool AqlQueue::signal_completion(uint64_t index, const Begun& packet,
                                 const hsa_kernel_dispatch_packet_t* dispatch,
                                 const std::string* kernel) {
  const bool tracing = context_.device.trace.enabled();
  if (tracing) trace_packet(index, packet, host_clock_ns(), dispatch, kernel);
  if (DeviceCounts* const counts = context_.device.counts)
    counts->packet(dispatch != nullptr, packet.header.bits);
  if (packet.completion_signal.handle == 0) return true;
  publish_read_index();
  amd_signal_t* signal = find_signal(context_.memory, packet.completion_signal.handle);
  if (signal == nullptr) {
    MemoryFault fault;
    fault.address = packet.completion_signal.handle;
    fault.access = Access::atomic;
    fault.present = context_.memory.find(fault.address) != nullptr;
    fault.where = "the completion signal of packet " + std::to_string(index) + " of queue " +
                  std::to_string(ordinal_);
    stop_with_fault(index, packet.header.type(), std::move(fault));
    return false;
  }
  if (signal->kind != AMD_SIGNAL_KIND_USER) {
    stop(index, packet.header.type(), QueueError::packet_format,
         "the completion signal is of kind " + std::to_string(signal->kind) +
             "; only signals of kind 1 (user) can complete a packet");
    return false;
  }
  if (packet.start_ticks > kUntimed && has_property(AMD_QUEUE_PROPERTIES_ENABLE_PROFILING)) {
    signal->start_ts = packet.start_ticks;
    signal->end_ts = gpu_clock_ticks();
  }
  announcing();
  if (const auto event = complete_signal(context_.device, context_.memory, *signal))
    raise(*event, index);
  return true;
}

void AqlQueue::retire() {
  while (retired_ < next_) {
    if (retired_ >= oldest_) {
      const InFlight& packet = in_flight(retired_);
      if (!packet.complete && !packet.retire_early) break;
    }
    // relaxed: the release store of the read index below orders this before a producer's reuse of
    // the slot.
    std::atomic_ref<uint16_t>(*reinterpret_cast<uint16_t*>(slot(retired_)))
        .store(HSA_PACKET_TYPE_INVALID, std::memory_order_relaxed);
    ++retired_;
  }
  while (oldest_ < next_ && in_flight(oldest_).complete) ++oldest_;
}

void AqlQueue::publish_read_index() noexcept {
  // Not below the exact index that a queue stores when it stops or asks for scratch.
  store_read_index(frees_in_groups_
                       ? std::max(read_index_published_, retired_ - retired_ % kSlotsOfGroup)
                       : retired_);
}

void AqlQueue::store_read_index(uint64_t index) noexcept {
  if (read_index_published_ == index) return;
  read_index_published_ = index;
  // release: a producer that sees the index sees INVALID headers in the released slots.
  std::atomic_ref<uint64_t>(*read_index_).store(index, std::memory_order_release);
}

void AqlQueue::stop(uint64_t index, uint32_t type, QueueError error, const std::string& reason) {
  halt(index, type, reason);
  send_inactive(static_cast<uint64_t>(error));
  // relaxed: a flag on its own
  if (context_.device.reports_exceptions.load(std::memory_order_relaxed))
    report_exception(context_.device, context_.memory, config_.context_save_area, error);
}

void AqlQueue::stop_with_fault(uint64_t index, uint32_t type, MemoryFault fault) {
  halt(index, type, "GPU memory fault in " + fault.where);
  store_read_index(retired_);  // a report of the fault names the packets that are not complete
  context_.device.interrupts.memory_fault(fault);
}

void AqlQueue::halt(uint64_t index, uint32_t type, const std::string& reason) {
  report(packet_name(index, type), reason);
  stopped_ = true;
  wait_for(Waiting::nothing);
  abandon();
}

void AqlQueue::send_inactive(uint64_t value) {
  if (value == 0 || amd_queue_ == nullptr || amd_queue_->queue_inactive_signal.handle == 0) return;
  store_read_index(retired_);  // ROCr's handler reads the packet at the read index
  if (amd_signal_t* signal = find_signal(context_.memory, amd_queue_->queue_inactive_signal.handle))
    set_signal(context_.device, context_.memory, *signal, static_cast<int64_t>(value));
}

}  // namespace uptempo::vgpu
