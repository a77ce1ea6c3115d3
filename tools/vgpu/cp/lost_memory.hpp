// Host memory that is registered for the GPU and that the program has since unmapped, protected or
// truncated.
//
// On hardware the driver then fails to pin the pages again, and the GPU's next access is a memory
// fault (amdgpu_amdkfd_gpuvm.c, update_invalid_user_pages). Here a device thread faults on the
// program's page. The thread cannot abandon the access, so the handler lets it succeed and reports
// it:
//
// * a missing page becomes a page of zeros;
// * a protected page loses its protection; if its file forbids that, a private copy replaces it.
//
// If the program does not handle memory faults, ROCr ends the process with the report.
//
// Thread safety: any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "device/fault.hpp"

namespace uptempo::vgpu {

// Enables the handler, a client of device/fault_chain.hpp. It wakes every doorbell watch after a
// loss.
void catch_lost_host_memory() noexcept;

// Whether take_lost_host_memory() has something to return. Async-signal-safe.
bool host_memory_was_lost(uint32_t gpu) noexcept;

// Returns the first such access by a thread of that GPU (Device::gpu) since the last call. Its
// address is the program's.
std::optional<MemoryFault> take_lost_host_memory(uint32_t gpu);

}  // namespace uptempo::vgpu
