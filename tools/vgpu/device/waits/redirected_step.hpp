// Has the faulting thread execute its instruction on another mapping of the memory, so that the
// page that it addressed stays closed to all threads.
//
// begin_redirected_step() adds the distance of the mappings to the base register, sets the trap
// flag and blocks the thread's signals. The trap that follows the instruction ends the step: it
// restores the register, unless the instruction has loaded it, and the signals.
//
// Restriction: the program does not single-step itself (SIGTRAP).
// Thread safety: each thread has its own step. Called by clients of fault_chain.hpp.
#pragma once

#include <ucontext.h>

#include <cstdint>
#include <optional>

#include "device/waits/redirectable_access.hpp"

namespace uptempo::vgpu {

// `distance`: the address of the other mapping minus that of the program's. `note`: for the end.
// Returns false, without effect, if the thread is in a step already.
bool begin_redirected_step(const RedirectableAccess& access, uint64_t distance, bool note,
                           ucontext_t& context) noexcept;

// Call it for a SIGTRAP. Returns the note, or nothing if the thread is in no step.
std::optional<bool> end_redirected_step(ucontext_t& context) noexcept;

}  // namespace uptempo::vgpu
