// HostStacks::capture() for a handler that is entered again and again from the same place, as that
// of doorbells is.
//
// A stack whose return addresses are all where they were, with the same Python calls, is the same
// stack, so that it need not be unwound again. The places are those of the last stack with this
// instruction, stack pointer, thread and Python calls.
//
// Thread safety: any thread; async-signal-safe like capture().
// Cost: about 0.1 us, and that of python_calls(), for a stack that is known, otherwise twice that
// of capture().
#pragma once

#include <cstdint>

#include "device/host/host_stacks.hpp"

namespace uptempo::vgpu {

// `instruction`, `stack_pointer`: of the interrupted code, on the calling thread.
HostStackId capture_interrupted(HostStacks& stacks, const void* instruction,
                                const void* stack_pointer) noexcept;

// How often this process has not unwound.
uint64_t remembered_stacks() noexcept;

}  // namespace uptempo::vgpu
