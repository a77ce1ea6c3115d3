// The state of a compute queue, for reports.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "cp/aql_queue.hpp"
#include "cp/signal.hpp"

namespace uptempo::vgpu {
namespace {

// acquire: the producer stores the header last.
AqlHeader published_header(const std::byte* slot) noexcept {
  return {static_cast<uint16_t>(
      std::atomic_ref<uint32_t>(*reinterpret_cast<uint32_t*>(const_cast<std::byte*>(slot)))
          .load(std::memory_order_acquire))};
}

template <typename Packet>
Packet packet_at(const std::byte* bytes) noexcept {
  Packet packet;
  std::memcpy(&packet, bytes, sizeof packet);
  return packet;
}

// All packet types have it in the last eight bytes.
hsa_signal_t completion_of(const std::byte* bytes) noexcept {
  static_assert(offsetof(hsa_kernel_dispatch_packet_t, completion_signal) == 56 &&
                offsetof(hsa_barrier_and_packet_t, completion_signal) == 56 &&
                offsetof(hsa_barrier_or_packet_t, completion_signal) == 56 &&
                offsetof(hsa_amd_barrier_value_packet_t, completion_signal) == 56 &&
                offsetof(Pm4IbPacket, completion_signal) == 56);
  return packet_at<hsa_signal_t>(bytes + 56);
}

bool is_barrier_value(AqlHeader header, const std::byte* bytes) noexcept {
  return header.type() == HSA_PACKET_TYPE_VENDOR_SPECIFIC &&
         static_cast<uint32_t>(bytes[2]) == kVendorFormatBarrierValue;
}

}  // namespace

void AqlQueue::describe(QueueSnapshot& snapshot) const {
  const DeviceDescription& device = *context_.device.options.device;
  snapshot.runtime_owned = runtime_owned_;
  snapshot.stopped = stopped_;
  snapshot.suspended = suspended_;
  snapshot.ring = packets_;
  snapshot.ring_address = config_.ring;
  snapshot.read = retired_;
  snapshot.next = next_;
  snapshot.priority = config_.priority;
  snapshot.compute_units = share_.units.size();
  snapshot.all_compute_units = device.compute_units;
  if (config_.doorbell != nullptr)
    snapshot.doorbell =
        std::atomic_ref<uint64_t>(*config_.doorbell).load(std::memory_order_acquire);
  snapshot.write = next_;
  // Unlike attach(), finds the addresses without stopping the queue if one is no longer mapped.
  auto* const write_index = reinterpret_cast<uint64_t*>(
      context_.memory.translate(config_.write_index, sizeof(uint64_t), Access::read));
  const std::byte* const ring =
      config_.ring_bytes == 0
          ? nullptr
          : context_.memory.translate(config_.ring, config_.ring_bytes, Access::read);
  if (write_index != nullptr)
    snapshot.write = std::atomic_ref<uint64_t>(*write_index).load(std::memory_order_acquire);
  for (uint64_t index = oldest_; index < next_; ++index) {
    const InFlight& packet = in_flight_[index % kMaxInFlight];
    if (packet.complete || packet.dispatch == nullptr) continue;
    const gfx9::DispatchState& state = packet.dispatch->state();
    hsa_kernel_dispatch_packet_t bytes = state.packet;
    bytes.header = packet.begun.header.bits;  // the slot's may be released (early_read_index)
    snapshot.running.push_back(packet_snapshot(index, reinterpret_cast<const std::byte*>(&bytes),
                                               packet.begun.completion_signal));
    DispatchSnapshot& dispatch = snapshot.running.back().dispatch.emplace();
    dispatch.kernel = state.name;
    dispatch.entry = state.kernel.entry;
    dispatch.target = state.kernel.target;
    dispatch.opened = packet.dispatch->opened();
    const auto groups = state.workgroups();
    dispatch.workgroups = uint64_t{groups[0]} * groups[1] * groups[2];
    if (packet.begun.completion_signal.handle != 0)
      snapshot.completers.push_back({.signal = packet.begun.completion_signal.handle,
                                     .index = index,
                                     .launched = true,
                                     .type = HSA_PACKET_TYPE_KERNEL_DISPATCH,
                                     .kernel_object = state.packet.kernel_object});
  }
  if (stopped_ || suspended_ || ring == nullptr || next_ >= snapshot.write) return;
  describe_completers(snapshot, ring);
  describe_front(snapshot, ring);
}

void AqlQueue::describe_front(QueueSnapshot& snapshot, const std::byte* ring) const {
  const std::byte* const bytes = ring + (next_ & (packets_ - 1)) * kAqlPacketBytes;
  const AqlHeader header = published_header(bytes);
  if (header.type() == HSA_PACKET_TYPE_INVALID) {
    const bool beyond_ring = snapshot.write - retired_ > packets_ && next_ - retired_ >= packets_;
    snapshot.front = beyond_ring ? Front::room : Front::unpublished;
    // A slot that is reserved ahead of its doorbell is not late yet.
    if (!beyond_ring && next_ >= admitted_) snapshot.front = Front::doorbell;
    return;
  }
  snapshot.packet = packet_snapshot(next_, bytes, completion_of(bytes));
  if (next_ >= admitted_ && !is_eager_) {
    snapshot.front = Front::doorbell;
    return;
  }
  if (running_ != 0 && (header.barrier() || chain_waits())) {
    snapshot.front = Front::earlier;
    return;
  }
  if (waiting_ == Waiting::workers) {
    snapshot.front = Front::room;
    return;
  }
  if (waiting_ == Waiting::delay || injected_until_ns_ != 0) {
    snapshot.front = Front::delay;
    return;
  }
  const auto depends_on = [&](hsa_signal_t signal, hsa_signal_condition32_t condition,
                              int64_t reference, int64_t mask) {
    if (signal.handle == 0) return;
    const SignalSnapshot found = signal_snapshot(signal.handle);
    if (found.value && condition_holds(condition, *found.value & mask, reference)) return;
    snapshot.dependencies.push_back(
        {.signal = found, .condition = condition, .reference = reference, .mask = mask});
  };
  if (header.type() == HSA_PACKET_TYPE_BARRIER_AND || header.type() == HSA_PACKET_TYPE_BARRIER_OR) {
    snapshot.any_dependency = header.type() == HSA_PACKET_TYPE_BARRIER_OR;
    for (const hsa_signal_t& signal : packet_at<hsa_barrier_and_packet_t>(bytes).dep_signal)
      depends_on(signal, HSA_SIGNAL_CONDITION_EQ, 0, -1);
    snapshot.front = Front::dependencies;
  } else if (is_barrier_value(header, bytes)) {
    const auto packet = packet_at<hsa_amd_barrier_value_packet_t>(bytes);
    depends_on(packet.signal, packet.cond, packet.value, packet.mask);
    snapshot.front = Front::dependencies;
  } else if (scratch_requested_ || scratch_reclaim_sent_) {
    snapshot.front = Front::scratch;
  }
  // Otherwise the dependencies were met, or the packet became visible, just now.
  if (snapshot.front == Front::dependencies && snapshot.dependencies.empty() &&
      !snapshot.any_dependency)
    snapshot.front = Front::nothing;
}

void AqlQueue::describe_completers(QueueSnapshot& snapshot, const std::byte* ring) const {
  // A producer may reserve beyond the ring before it waits for room.
  const uint64_t end = std::min(snapshot.write, retired_ + packets_);
  for (uint64_t index = next_; index < end; ++index) {
    const std::byte* const bytes = ring + (index & (packets_ - 1)) * kAqlPacketBytes;
    const AqlHeader header = published_header(bytes);
    if (header.type() == HSA_PACKET_TYPE_INVALID) continue;
    const uint64_t signal = completion_of(bytes).handle;
    if (signal == 0) continue;
    Completer completer{.signal = signal, .index = index, .type = header.type()};
    if (header.type() == HSA_PACKET_TYPE_KERNEL_DISPATCH)
      completer.kernel_object = packet_at<hsa_kernel_dispatch_packet_t>(bytes).kernel_object;
    snapshot.completers.push_back(completer);
  }
}

void AqlQueue::describe_waves(QueueSnapshot& snapshot, Scheduler::Residents& residents) const {
  for (PacketSnapshot& packet : snapshot.running) {
    const Dispatch* const dispatch = in_flight_[packet.index % kMaxInFlight].dispatch.get();
    if (!packet.dispatch || dispatch == nullptr) continue;
    packet.dispatch->not_started = context_.scheduler.unclaimed(*dispatch);
    for (const auto& claimed : residents.claimed)
      if (claimed.dispatch == dispatch) packet.dispatch->not_started += claimed.workgroups;
    for (auto& resident : residents.workgroups)
      if (resident.dispatch == dispatch)
        packet.dispatch->resident.push_back(std::move(resident.workgroup));
    const DeviceDescription& device = *context_.device.options.device;
    const WorkgroupNeeds needs = dispatch->state().needs();
    packet.dispatch->units = share_.units.size();
    packet.dispatch->per_unit = occupancy(device, needs).workgroups();
    packet.dispatch->limits = limits_text(device, needs);
    packet.dispatch->has_room = context_.scheduler.fits(share_.units, needs);
  }
}

PacketSnapshot AqlQueue::packet_snapshot(uint64_t index, const std::byte* bytes,
                                         hsa_signal_t completion) const {
  PacketSnapshot packet{.index = index, .bytes = {}, .completion = {}, .dispatch = {}};
  std::memcpy(packet.bytes.data(), bytes, kAqlPacketBytes);
  if (completion.handle != 0) packet.completion = signal_snapshot(completion.handle);
  return packet;
}

SignalSnapshot AqlQueue::signal_snapshot(uint64_t handle) const {
  const amd_signal_t* const signal = find_signal(context_.memory, handle);
  if (signal == nullptr) return {.handle = handle, .value = std::nullopt};
  return {.handle = handle, .value = signal_value(*signal)};
}

}  // namespace uptempo::vgpu
