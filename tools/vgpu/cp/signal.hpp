// HSA signals as the packet processor uses them: a value, and for interrupt signals a mailbox and an event behind it.
//
// Layout: amd_hsa_signal.h. A signal handle is the GPU address of an amd_signal_t, 64-byte aligned.
//
// Lifetime. The program may destroy a signal as soon as it has seen its value change, so everything else that is needed of the signal is read before
// the value is written. All functions belong inside the Reader's enter()/leave() section.
#pragma once

#include <hsa/amd_hsa_signal.h>

#include <cstdint>
#include <optional>

#include "device/device.hpp"

namespace uptempo::vgpu {

// The signal behind a handle, or nullptr when the handle is misaligned or not mapped for the GPU.
amd_signal_t* find_signal(AddressSpace::Reader& memory, uint64_t handle) noexcept;

// acquire: what was written before the value became this is visible to whoever acts on it.
int64_t signal_value(const amd_signal_t& signal) noexcept;

// One packet less: value - 1 with release, then the mailbox. The event that is to be raised after it; nothing when the signal has none.
[[nodiscard]] std::optional<uint32_t> complete_signal(const Device& device, AddressSpace::Reader& memory,
                                                           amd_signal_t& signal);

// Sets the value with release, then mailbox and event: how a queue reports an error through queue_inactive_signal.
void set_signal(Device& device, AddressSpace::Reader& memory, amd_signal_t& signal, int64_t value);

}  // namespace uptempo::vgpu
