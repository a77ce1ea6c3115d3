// HSA signals as the packet processor uses them: a value and, for interrupt signals, a mailbox and
// an event.
//
// Layout: amd_hsa_signal.h. A signal handle is the GPU address of an amd_signal_t, 64-byte aligned.
//
// Lifetime: the program may destroy a signal as soon as it has seen the value change. Therefore all
// other fields are read before the value is written. Call all functions inside the Reader's
// enter()/leave() section.
#pragma once

#include <hsa/amd_hsa_signal.h>

#include <cstdint>
#include <optional>

#include "device/device.hpp"

namespace uptempo::vgpu {

// Returns the signal of a handle, or nullptr if the handle is misaligned or not mapped for the GPU.
amd_signal_t* find_signal(AddressSpace::Reader& memory, uint64_t handle) noexcept;

// acquire: writes before the value changed are visible to a caller that acts on it.
int64_t signal_value(const amd_signal_t& signal) noexcept;

// Stores value - 1 with release, then the mailbox. Returns the event to raise afterwards, or
// nullopt if the signal has none.
[[nodiscard]] std::optional<uint32_t> complete_signal(const Device& device,
                                                      AddressSpace::Reader& memory,
                                                      amd_signal_t& signal);

// Stores the value with release, then mailbox and event. A queue reports errors this way through
// queue_inactive_signal.
void set_signal(Device& device, AddressSpace::Reader& memory, amd_signal_t& signal, int64_t value);

}  // namespace uptempo::vgpu
