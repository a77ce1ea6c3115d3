// The name of a kernel object, found without calling the runtime.
//
// GPU memory contains the name (code_image.hpp): it is the dynamic symbol whose value is the
// object's offset. A call into ROCr could deadlock, because a thread that waits for this device may
// hold the loader lock.
#pragma once

#include <string>

#include "device/memory.hpp"

namespace uptempo::vgpu {

// Returns a name like "bitonic_sort.kd", or the address as "0x7f..." if no symbol is found. Control
// characters become spaces, since names are printed. Call it between enter() and leave(). Cost:
// some microseconds; keep the result.
std::string kernel_name(AddressSpace::Reader& memory, GpuAddress kernel_object);

}  // namespace uptempo::vgpu
