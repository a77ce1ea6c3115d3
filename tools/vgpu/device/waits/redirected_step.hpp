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

#include "device/memory.hpp"
#include "device/waits/redirectable_access.hpp"

namespace uptempo::vgpu {

class HostPages;

// What the thread does, for the end of the step.
struct SteppedAccess {
  HostPages* pages = nullptr;
  GpuAddress signal = 0;  // the line
  bool looks = false;     // loads what completions change
  bool stores = false;
  bool releases = false;  // stores to a signal that a queue waited for at the beginning
  uint32_t awaits = 0;    // the page's count at the beginning
};

// `distance`: the address of the other mapping minus that of the program's. Returns false, without
// effect, if the thread is in a step already.
bool begin_redirected_step(const RedirectableAccess& access, uint64_t distance,
                           const SteppedAccess& stepped, ucontext_t& context) noexcept;

// Call it for a SIGTRAP. Returns nothing if the thread is in no step.
std::optional<SteppedAccess> end_redirected_step(ucontext_t& context) noexcept;

}  // namespace uptempo::vgpu
