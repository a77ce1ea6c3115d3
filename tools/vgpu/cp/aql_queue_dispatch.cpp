// Kernel dispatch packets: their checks, their scratch, and how they are launched.
#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "cp/aql_queue.hpp"
#include "cp/packet/packet_fences.hpp"
#include "cp/signal.hpp"
#include "device/bar/lazy_bar.hpp"
#include "device/demangled.hpp"

namespace uptempo::vgpu {
namespace {

// Checks the packet against what its kernel needs.
std::optional<PacketError> kernel_refuses(const hsa_kernel_dispatch_packet_t& packet,
                                          const gfx9::Kernel& kernel,
                                          const DeviceDescription& device) {
  if (packet.group_segment_size < kernel.group_segment_bytes)
    return PacketError{QueueError::group_memory, "group segment of " +
                                                     std::to_string(packet.group_segment_size) +
                                                     " bytes; the kernel needs " +
                                                     std::to_string(kernel.group_segment_bytes)};
  if (packet.private_segment_size < kernel.private_segment_bytes)
    return PacketError{QueueError::packet_format, "private segment of " +
                                                      std::to_string(packet.private_segment_size) +
                                                      " bytes a work-item; the kernel needs " +
                                                      std::to_string(kernel.private_segment_bytes)};
  const auto kernarg = reinterpret_cast<GpuAddress>(packet.kernarg_address);
  if (kernel.kernarg_bytes != 0 && kernarg % 16 != 0)
    return PacketError{QueueError::packet_format, "the kernarg address " + std::to_string(kernarg) +
                                                      " is not 16-byte aligned"};
  if (const WorkgroupNeeds needs = gfx9::needs_of(kernel, packet); !fits_on_unit(device, needs))
    return PacketError{QueueError::too_many_registers,
                       "a compute unit has no room for a workgroup of " +
                           std::to_string(needs.waves) + " waves (" + limits_text(device, needs) +
                           ")"};
  return std::nullopt;
}

// Waves take whole KiB (COMPUTE_TMPRING_SIZE).
std::string scratch_text(const hsa_kernel_dispatch_packet_t& packet, const std::string& kernel,
                         const DeviceDescription& device) {
  constexpr uint64_t kLanes = 64, kUnit = 1024;
  const uint64_t per_wave = (packet.private_segment_size * kLanes + kUnit - 1) / kUnit * kUnit;
  const uint64_t waves =
      uint64_t{device.compute_units} * device.simds_per_compute_unit * device.max_waves_per_simd;
  return "kernel " + kernel + " needs " + std::to_string(packet.private_segment_size) +
         " bytes of private memory per work-item, " + std::to_string(per_wave) + " per wave, and " +
         std::to_string(per_wave * waves) + " for the " + std::to_string(waves) +
         " waves that the GPU runs at once";
}

}  // namespace

bool AqlQueue::launch_dispatch(const std::byte* bytes, AqlHeader header) {
  hsa_kernel_dispatch_packet_t packet;
  std::memcpy(&packet, bytes, sizeof packet);
  packet = as_firmware_reads(packet);
  const Options& options = context_.device.options;
  if (const auto error = check_dispatch(packet, *options.device)) {
    stop(next_, header.type(), error->error, error->reason);
    return false;
  }
  const LoadedKernel& loaded = context_.kernels.find(context_.memory, packet.kernel_object);
  if (const auto* rejected = std::get_if<gfx9::Kernel::Rejected>(&loaded.kernel)) {
    stop(next_, header.type(), rejected->error,
         "kernel " + shown_kernel(loaded.name) + ": " + rejected->reason);
    return false;
  }
  const gfx9::Kernel& kernel = std::get<gfx9::Kernel>(loaded.kernel);
  if (const auto error = kernel_refuses(packet, kernel, *options.device)) {
    stop(next_, header.type(), error->error,
         "kernel " + shown_kernel(loaded.name) + ": " + error->reason);
    return false;
  }
  if (kernel.kernarg_bytes != 0) {
    const auto kernarg = reinterpret_cast<GpuAddress>(packet.kernarg_address);
    if (context_.device.lazy_bar != nullptr) [[unlikely]]
      if (const Mapping* const mapping = context_.memory.find(kernarg))
        context_.device.lazy_bar->note_arguments(mapping->at(kernarg));
  }
  if (options.null_kernels && !loaded.runtime_blit)
    return complete_in_place(header, packet.completion_signal, &packet, &loaded.name);

  if (packet.private_segment_size != 0 && !scratch_is_ready(packet, loaded.name)) return false;

  std::unique_ptr<gfx9::DispatchState> state = make_state(packet, loaded);
  if (state == nullptr) return false;
  InFlight& entry = begin_flight(header, packet);
  entry.retire_early = options.early_read_index && !runtime_owned_ && !loaded.runtime_blit &&
                       (context_.random() >> 16) % 2 == 0;
  const DeviceDescription& device = *context_.device.options.device;
  const bool all_units = share_.units.size() == device.compute_units;
  const Publisher published = fences_.publisher_of(next_);
  entry.watched = fences_.launch(header, next_, *state,
                                 {.count = all_units ? device.xcds : 1, .first = share_.first_xcd},
                                 loaded.runtime_blit, published);
  entry.checked = memory_watch_.launch(next_, *state, loaded, published);
  entry.races = races_.launch(*state, next_, loaded.runtime_blit, published);
  entry.dispatch = std::make_unique<Dispatch>(std::move(state), scratch_slots_, share_);
  carry_out_acquire(context_.device, header, next_ == stale_);
  ++next_;
  scratch_once_used_ =
      packet.private_segment_size != 0 && has_property(AMD_QUEUE_PROPERTIES_USE_SCRATCH_ONCE);
  context_.scheduler.launch(*entry.dispatch);
  if (entry.retire_early) retire();
  return true;
}

// Returns the entry of packet next_, which counts as running from now on.
AqlQueue::InFlight& AqlQueue::begin_flight(AqlHeader header,
                                           const hsa_kernel_dispatch_packet_t& packet) {
  InFlight& entry = in_flight(next_);
  entry.begun = {header, packet.completion_signal, std::exchange(start_ticks_, 0), start_ns_};
  entry.complete = false;
  entry.retire_early = false;
  entry.late_until_ns.reset();
  ++running_;
  return entry;
}

// Whether the packet launched last waits for earlier ones. No packet passes it.
bool AqlQueue::chain_waits() const noexcept {
  const InFlight& last = in_flight_[(next_ - 1) % kMaxInFlight];
  return last.dispatch != nullptr && !last.dispatch->opened();
}

// Launches a dispatch with a barrier bit before the earlier ones have ended: the worker that ends
// the last of them starts it, without this thread. The packet is one whose launch this thread could
// only wait for: it needs nothing from the end of the others, and nothing is wrong with it. Returns
// false if it must wait, be it to be refused.
bool AqlQueue::chain_next(const std::byte* bytes, AqlHeader header) {
  if (!chains_ || !header.barrier() || header.type() != HSA_PACKET_TYPE_KERNEL_DISPATCH ||
      check_header(header))
    return false;
  // Those that it waits for: the last one alone, if that waits itself.
  std::array<Dispatch*, kMaxInFlight> earlier;
  size_t count = 0;
  for (uint64_t index = chain_waits() ? next_ - 1 : oldest_; index < next_; ++index) {
    const InFlight& running = in_flight(index);
    if (running.dispatch == nullptr) continue;
    // A packet's signal is decremented before a later one with a barrier bit starts.
    if (running.begun.completion_signal.handle != 0) return false;
    earlier[count++] = running.dispatch.get();
  }
  if (count == 0) return false;
  hsa_kernel_dispatch_packet_t packet;
  std::memcpy(&packet, bytes, sizeof packet);
  packet = as_firmware_reads(packet);
  // This thread notes the start of a packet whose times are wanted.
  if (packet.completion_signal.handle != 0 && has_property(AMD_QUEUE_PROPERTIES_ENABLE_PROFILING))
    return false;
  if (check_dispatch(packet, *context_.device.options.device) || packet.private_segment_size != 0)
    return false;
  const LoadedKernel* const loaded = context_.kernels.find_known(packet.kernel_object);
  if (loaded == nullptr) return false;
  const auto* const kernel = std::get_if<gfx9::Kernel>(&loaded->kernel);
  if (kernel == nullptr || kernel->preload_dwords != 0 ||
      kernel_refuses(packet, *kernel, *context_.device.options.device))
    return false;
  std::unique_ptr<gfx9::DispatchState> state = make_state(packet, *loaded);
  if (state == nullptr) return false;
  if (context_.device.options.verbose) [[unlikely]]
    note_ignored_field(bytes, header);
  InFlight& entry = begin_flight(header, packet);
  entry.dispatch = std::make_unique<Dispatch>(std::move(state), scratch_slots_, share_);
  ++next_;
  context_.scheduler.launch_after(*entry.dispatch, std::span(earlier).first(count));
  return true;
}

std::unique_ptr<gfx9::DispatchState> AqlQueue::make_state(
    const hsa_kernel_dispatch_packet_t& packet, const LoadedKernel& loaded) {
  auto state = std::make_unique<gfx9::DispatchState>();
  state->kernel = std::get<gfx9::Kernel>(loaded.kernel);
  state->packet = packet;
  state->packet_address = config_.ring + (next_ & (packets_ - 1)) * kAqlPacketBytes;
  state->queue_address = config_.read_index - offsetof(amd_queue_t, read_dispatch_id);
  state->dispatch_id = next_;
  state->hardware_queue = ordinal_ % kHardwareQueues;
  state->wave_sync = wave_sync_;
  state->name = loaded.name;
  if (!state->preload_kernargs(context_.memory)) {
    stop(next_, HSA_PACKET_TYPE_KERNEL_DISPATCH, QueueError::packet_format,
         "kernel " + shown_kernel(loaded.name) + " preloads " +
             std::to_string(state->kernel.preload_dwords * sizeof(uint32_t)) +
             " bytes of its arguments, which are not mapped on the device");
    return nullptr;
  }
  if (packet.private_segment_size != 0) {
    // COMPUTE_TMPRING_SIZE: WAVES in bits 0..11, WAVESIZE in bits 12..24, in KiB.
    const uint32_t ring = amd_queue_->compute_tmpring_size;
    state->scratch_waves = ring & 0xfff;
    state->scratch_bytes_per_wave = (ring >> 12 & 0x1fff) * 1024;
    state->scratch_base = amd_queue_->scratch_backing_memory_location;
    // ROCr 7 does not set scratch_backing_memory_byte_size.
    state->scratch_bytes = uint64_t{state->scratch_waves} * state->scratch_bytes_per_wave;
    std::copy_n(amd_queue_->scratch_resource_descriptor, 4, state->scratch_descriptor.begin());
    const uint32_t waves = state->waves_per_workgroup();
    if (waves > state->scratch_waves) {
      stop(next_, HSA_PACKET_TYPE_KERNEL_DISPATCH, QueueError::workgroup_too_large,
           "kernel " + shown_kernel(loaded.name) + ": a workgroup of " + std::to_string(waves) +
               " waves; the queue's scratch has slots for " + std::to_string(state->scratch_waves));
      return nullptr;
    }
  }
  return state;
}

// Handshake for private segments larger than the queue's scratch. ROCr reads the packet at the read
// index, frees the old backing and allocates a new one, so nothing of this queue may run meanwhile
// (amd_aql_queue.cpp, DynamicScratchHandler).
bool AqlQueue::scratch_is_ready(const hsa_kernel_dispatch_packet_t& packet,
                                const std::string& kernel) {
  if (scratch_requested_) {
    const amd_signal_t* signal =
        find_signal(context_.memory, amd_queue_->queue_inactive_signal.handle);
    if (signal != nullptr && signal_value(*signal) != 0) return wait_for(Waiting::memory);
    scratch_requested_ = false;
  }
  if (packet.private_segment_size <= amd_queue_->scratch_wave64_lane_byte_size) {
    scratch_requests_ = 0;
    return true;
  }
  if (blocked_on_earlier()) return wait_for(Waiting::workers);
  if (++scratch_requests_ > 3) {
    stop(next_, HSA_PACKET_TYPE_KERNEL_DISPATCH, QueueError::packet_format,
         scratch_request_ + "; the runtime was asked three times and gave " +
             std::to_string(amd_queue_->scratch_wave64_lane_byte_size) + " bytes per work-item");
    return false;
  }
  scratch_request_ = scratch_text(packet, kernel, *context_.device.options.device);
  scratch_requested_ = true;
  send_inactive(static_cast<uint64_t>(QueueError::scratch_needed));
  return wait_for(Waiting::memory);
}

// After a dispatch with scratch that ROCr allocated for it alone, asks ROCr to reclaim the scratch
// before launching anything else, since other queues may wait for that memory.
bool AqlQueue::scratch_is_reclaimed() {
  constexpr uint64_t kReclaim = 0x200;
  if (blocked_on_earlier()) return wait_for(Waiting::workers);
  if (!scratch_reclaim_sent_) {
    scratch_reclaim_sent_ = true;
    send_inactive(kReclaim);
  }
  if (has_property(AMD_QUEUE_PROPERTIES_USE_SCRATCH_ONCE)) return wait_for(Waiting::memory);
  scratch_once_used_ = false;
  scratch_reclaim_sent_ = false;
  return true;
}

}  // namespace uptempo::vgpu
