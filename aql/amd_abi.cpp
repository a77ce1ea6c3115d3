#include <uptempo/aql/amd_abi.hpp>

#include <hsa/amd_hsa_queue.h>
#include <hsa/hsa_ext_amd.h>

#include <bit>
#include <cstddef>
#include <stdexcept>
#include <string>

namespace uptempo::aql {

using detail::abi;
using detail::signal_kind;
using detail::SignalKind;

namespace {

// ABI facts from ROCr's amd_hsa_queue.h and amd_hsa_signal.h. The kernel driver and the firmware
// rely on the same layout.
static_assert(sizeof(amd_queue_t) == 256 && alignof(amd_queue_t) == 64);
static_assert(offsetof(amd_queue_t, hsa_queue) == 0);
static_assert(offsetof(amd_queue_t, write_dispatch_id) == 0x38);
static_assert(offsetof(amd_queue_t, read_dispatch_id) == 0x80);
static_assert(offsetof(amd_queue_t, read_dispatch_id_field_base_byte_offset) == 0x88);
static_assert(sizeof(amd_signal_t) == 64 && alignof(amd_signal_t) == 64);
static_assert(offsetof(amd_signal_t, kind) == 0);
static_assert(offsetof(amd_signal_t, value) == 8);
static_assert(offsetof(amd_signal_t, hardware_doorbell_ptr) == 8);
static_assert(offsetof(amd_signal_t, event_mailbox_ptr) == 16);
static_assert(offsetof(amd_signal_t, event_id) == 24);
static_assert(offsetof(amd_signal_t, start_ts) == 32);
static_assert(offsetof(amd_signal_t, end_ts) == 40);
static_assert(static_cast<int>(SignalKind::user) == AMD_SIGNAL_KIND_USER);
static_assert(static_cast<int>(SignalKind::doorbell) == AMD_SIGNAL_KIND_DOORBELL);
static_assert(static_cast<int>(SignalKind::legacy_doorbell) == AMD_SIGNAL_KIND_LEGACY_DOORBELL);

// Removes volatile, for std::atomic_ref.
uint64_t* plain(volatile uint64_t* field) noexcept { return const_cast<uint64_t*>(field); }

}  // namespace

QueueView view(hsa_queue_t* queue, RingAccess access) noexcept {
  QueueView out{.queue = queue};
  if (access == RingAccess::hsa_calls) return out;
  auto* const abi_queue = reinterpret_cast<amd_queue_t*>(queue);
  // ROCr stores this offset when it creates a queue (amd_aql_queue.cpp:164). Its intercepting
  // proxies copy it with the other fields.
  if (abi_queue->read_dispatch_id_field_base_byte_offset ==
      offsetof(amd_queue_t, read_dispatch_id)) {
    out.read_index = plain(&abi_queue->read_dispatch_id);
    out.write_index = plain(&abi_queue->write_dispatch_id);
  }
  if (signal_kind(queue->doorbell_signal) == SignalKind::doorbell) {
    out.doorbell = plain(abi(queue->doorbell_signal)->hardware_doorbell_ptr);
  }
  return out;
}

void require_ring(const hsa_queue_t* queue) {
  if (queue == nullptr)
    throw std::invalid_argument(
        "AQL queue: the pointer is null; pass a queue made by hsa_queue_create");
  if (!std::has_single_bit(queue->size)) {
    throw std::invalid_argument("AQL queue: the ring has " + std::to_string(queue->size) +
                                " packets, which is not a power of two");
  }
  if (queue->base_address == nullptr || reinterpret_cast<uintptr_t>(queue->base_address) % 64 != 0)
    throw std::invalid_argument("AQL queue: the ring's address is null or not 64-byte aligned");
}

bool is_ring_in_device_memory(const hsa_queue_t* queue) noexcept {
  hsa_amd_pointer_info_t info{};
  info.size = sizeof info;
  if (hsa_amd_pointer_info(queue->base_address, &info, nullptr, nullptr, nullptr) !=
          HSA_STATUS_SUCCESS ||
      info.type == HSA_EXT_POINTER_TYPE_UNKNOWN)
    return false;
  hsa_device_type_t owner{};
  return hsa_agent_get_info(info.agentOwner, HSA_AGENT_INFO_DEVICE, &owner) == HSA_STATUS_SUCCESS &&
         owner == HSA_DEVICE_TYPE_GPU;
}

QueueApertures apertures(hsa_queue_t* queue) noexcept {
  const auto* const abi_queue = reinterpret_cast<const amd_queue_t*>(queue);
  if (abi_queue->read_dispatch_id_field_base_byte_offset != offsetof(amd_queue_t, read_dispatch_id))
    return {};
  return {.private_segment_high = abi_queue->private_segment_aperture_base_hi,
          .group_segment_high = abi_queue->group_segment_aperture_base_hi};
}

uint64_t wave_slots(const hsa_queue_t* queue) noexcept {
  const auto* const abi_queue = reinterpret_cast<const amd_queue_t*>(queue);
  if (abi_queue->read_dispatch_id_field_base_byte_offset != offsetof(amd_queue_t, read_dispatch_id))
    return 0;
  return (uint64_t{abi_queue->max_cu_id} + 1) * (uint64_t{abi_queue->max_wave_id} + 1);
}

bool has_interrupt(hsa_signal_t signal) noexcept {
  return signal_kind(signal) == SignalKind::user && abi(signal)->event_mailbox_ptr != 0;
}

SignalTimes signal_times(hsa_signal_t signal) noexcept {
  if (signal_kind(signal) != SignalKind::user) return {};
  return {.start_ticks = abi(signal)->start_ts, .end_ticks = abi(signal)->end_ts};
}

}  // namespace uptempo::aql
