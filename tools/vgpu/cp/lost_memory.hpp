// Host memory that is registered for the GPU and that the program has unmapped, protected or truncated since.
//
// On hardware the driver then fails to get the pages again, and the GPU's next access is a memory fault (amdgpu_amdkfd_gpuvm.c,
// update_invalid_user_pages). Here a device thread faults on the program's page. The access cannot be taken back, so it is let through and
// reported: a page that is gone becomes a page of zeros, and a protected one loses its protection (where its file forbids that, a
// private copy takes its place). Without a program that handles memory faults, ROCr ends the process with the report.
//
// Thread safety: any thread.
#pragma once

#include <optional>

#include "device/fault.hpp"

namespace uptempo::vgpu {

// From now on. A client of device/fault_chain.hpp; wakes every doorbell watch when something was lost.
void catch_lost_host_memory() noexcept;

// Whether there is something to take. Async-signal-safe.
bool host_memory_was_lost() noexcept;

// The first such access since the last call, its address the program's.
std::optional<MemoryFault> take_lost_host_memory();

}  // namespace uptempo::vgpu
