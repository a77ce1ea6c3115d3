#include "cp/signal.hpp"

#include <atomic>

#include "device/device_counts.hpp"

namespace uptempo::vgpu {
namespace {

struct Notification {
  uint64_t mailbox;
  uint32_t event;

  explicit Notification(const amd_signal_t& signal)
      : mailbox(signal.event_mailbox_ptr), event(signal.event_id) {}

  // Counts before the store, because the program may wait for it.
  void count(const Device& device) const noexcept {
    if (device.counts == nullptr) return;
    device.counts->signal_update();
    if (mailbox != 0) device.counts->interrupt();
  }

  // ROCr gives a signal a mailbox only together with an event. Without one, its waiters poll the
  // value.
  std::optional<uint32_t> leave(AddressSpace::Reader& memory) const {
    if (mailbox == 0) return std::nullopt;
    if (std::byte* slot = memory.translate(mailbox, sizeof(uint64_t), Access::write)) {
      // release: a waiter that finds the event set must find the value changed.
      std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(slot))
          .store(event, std::memory_order_release);
    }
    return event;
  }
};

std::atomic_ref<int64_t> value_of(amd_signal_t& signal) {
  return std::atomic_ref<int64_t>(const_cast<int64_t&>(signal.value));
}

}  // namespace

amd_signal_t* find_signal(AddressSpace::Reader& memory, uint64_t handle) noexcept {
  if (handle % AMD_SIGNAL_ALIGN_BYTES != 0) return nullptr;
  return reinterpret_cast<amd_signal_t*>(
      memory.translate(handle, sizeof(amd_signal_t), Access::atomic));
}

int64_t signal_value(const amd_signal_t& signal) noexcept {
  return value_of(const_cast<amd_signal_t&>(signal)).load(std::memory_order_acquire);
}

std::optional<uint32_t> complete_signal(const Device& device, AddressSpace::Reader& memory,
                                        amd_signal_t& signal) {
  const Notification notification(signal);
  notification.count(device);
  value_of(signal).fetch_sub(1, std::memory_order_release);
  return notification.leave(memory);
}

void set_signal(Device& device, AddressSpace::Reader& memory, amd_signal_t& signal, int64_t value) {
  const Notification notification(signal);
  notification.count(device);
  value_of(signal).store(value, std::memory_order_release);
  if (const auto event = notification.leave(memory)) device.interrupts.raise(*event);
}

}  // namespace uptempo::vgpu
