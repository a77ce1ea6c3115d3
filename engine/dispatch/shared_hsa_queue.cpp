#include "engine/dispatch/shared_hsa_queue.hpp"

#include <fmt/format.h>
#include <hsa/hsa_ext_amd.h>

#include <algorithm>
#include <new>
#include <utility>

#include "aql/amd_abi.hpp"
#include "aql/packet.hpp"
#include "engine/program/kernel_names.hpp"
#include "engine/runtime/error.hpp"

namespace uptempo::detail {
namespace {

void on_common_queue_error(hsa_status_t status, hsa_queue_t* queue, void* shared) {
  static_cast<SharedHsaQueue*>(shared)->fail(status, stopped_with(status, queue));
}

// The private memory that the packet at the read index needs; empty if it needs none. ROCr leaves a
// packet there for which it finds no memory, and has tried to reserve it for all waves that the GPU
// runs at once, in KiB for each wave (amd_aql_queue.cpp, DynamicScratchHandler).
std::string private_memory_asked(const hsa_queue_t* queue) {
  constexpr uint64_t kLanes = 64, kUnit = 1024;
  const uint64_t index = hsa_queue_load_read_index_scacquire(queue);
  const auto& packet = static_cast<const hsa_kernel_dispatch_packet_t*>(
      queue->base_address)[index & (queue->size - 1)];
  if (aql::packet_type(__atomic_load_n(&packet.header, __ATOMIC_ACQUIRE)) !=
          aql::PacketType::kernel_dispatch ||
      packet.private_segment_size == 0)
    return {};
  const uint64_t per_wave = (packet.private_segment_size * kLanes + kUnit - 1) / kUnit * kUnit;
  const uint64_t waves = aql::wave_slots(queue);
  std::string kernel = KernelNames::of_process().find(packet.kernel_object);
  if (kernel.empty()) kernel = fmt::format("0x{:x}", packet.kernel_object);
  std::string text = fmt::format(
      ": there is not enough private memory (scratch) for packet {}, kernel '{}', which "
      "needs {} bytes per work-item: {} bytes per wave",
      index, kernel, packet.private_segment_size, per_wave);
  if (waves != 0)
    text += fmt::format(", {} bytes for the {} waves that the GPU runs at once", per_wave * waves,
                        waves);
  return text;
}

// A timeline is never freed, so this is safe after the end of its queue.
bool is_complete(const aql::HoldEnd& end) noexcept {
  Timeline& timeline = *static_cast<Timeline*>(end.owner);
  // A stream's packet is published before its epoch begins on the timeline.
  return end.value <= timeline.last_begun() && timeline.has_left_device(end.value);
}

}  // namespace

std::unique_ptr<aql::SlotHolds> make_slot_holds(const hsa_queue_t* queue) {
  const uint64_t read_index = hsa_queue_load_read_index_scacquire(queue);
  return std::make_unique<aql::SlotHolds>(queue->size, read_index, is_complete);
}

std::string stopped_with(hsa_status_t status, const hsa_queue_t* queue) noexcept {
  try {
    std::string text =
        fmt::format("the packet processor stopped the queue with {}", status_name(status));
    return status == HSA_STATUS_ERROR_OUT_OF_RESOURCES ? text + private_memory_asked(queue) : text;
  } catch (const std::bad_alloc&) {
    return {};
  }
}

SharedHsaQueue::SharedHsaQueue(const Agent& agent, uint32_t packets, RingAccessMode access)
    : queue_(agent, packets, access, on_common_queue_error, this) {
  access_reason_ = queue_.access().reason;
  ring_ = std::make_unique<aql::SharedRing>(queue_.handle(), queue_.access().access);
}

void SharedHsaQueue::join(Timeline& timeline) {
  const std::lock_guard lock(mutex_);
  timelines_.push_back(&timeline);
  if (failure_.status != HSA_STATUS_SUCCESS) timeline.fail(failure_.status, failure_.text);
}

void SharedHsaQueue::leave(Timeline& timeline) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase(timelines_, &timeline);
}

void SharedHsaQueue::fail(hsa_status_t status, std::string text) noexcept {
  const std::lock_guard lock(mutex_);
  for (Timeline* const timeline : timelines_) timeline->fail(status, text);
  if (failure_.status == HSA_STATUS_SUCCESS) failure_ = {status, std::move(text)};
}

void SharedHsaQueue::make_holds() {
  const std::lock_guard lock(mutex_);
  if (holds_) return;
  holds_ = make_slot_holds(ring_->queue());
  ring_->use_holds(*holds_);
}

}  // namespace uptempo::detail
