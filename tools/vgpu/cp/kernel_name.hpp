// The name behind a kernel object, found without asking the runtime.
//
// ROCr loads a code object's segments as they are, and the linker places the ELF header, .dynsym and .dynstr in the first of them, ahead of the kernel
// descriptors. So the name is in GPU memory: the nearest ELF header below the kernel object, then the dynamic symbol whose value is the object's
// offset. No call into ROCr, whose loader lock may be held by a thread that waits for this very device.
#pragma once

#include <string>

#include "device/memory.hpp"

namespace uptempo::vgpu {

// "bitonic_sort.kd", or the address as "0x7f..." where no symbol is found. Control characters become spaces: names are printed. Call between enter() and leave(). Costs some microseconds: keep the answer.
std::string kernel_name(AddressSpace::Reader& memory, GpuAddress kernel_object);

}  // namespace uptempo::vgpu
