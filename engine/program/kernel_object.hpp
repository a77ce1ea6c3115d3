// Kernels that the caller has loaded by other means than Program: by hsa_executable_*, by another
// library, or by a loader of its own.
//
//   hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, &object);
//   const ProgramMetadata metadata = read_metadata(note);  // or a KernelMetadata that you fill
//   const auto info = kernel_info(gpu, {.address = object}, metadata.kernel("scale"));
//   auto scale = Kernel<float*, uint32_t>::of(info);       // argument types are checked here
//
// Filled by hand, KernelMetadata needs the name, the size of the kernarg block, the two segment
// sizes, and kind, offset and size of each argument, explicit ones in ascending order of their
// offsets. The compiler's hidden arguments are arguments, too: a kernel reads zero for those that
// the struct leaves out.
//
// Checked: offsets, sizes and overlaps of the arguments; that the kernel needs no service of the
// host; that ROCr knows memory at the address. For code that ROCr has loaded, also that it is
// loaded for this agent, and that the kernel descriptor has the sizes of the metadata. Not
// checked: that the arguments are those of this kernel.
//
// Host calls: only the code shows that a kernel with a buffer for host calls makes none, which
// Program finds out. Here such a kernel is refused. drop_host_calls() takes it on the caller's
// word.
//
// Lifetime: the code must stay loaded until the dispatches have completed. KernelObject::owner is
// kept with the last Kernel.
// Thread safety: any thread, but not while another thread unloads the code.
// Cost: for set-up; it asks ROCr's loader for all loaded segments.
// Sources: LLVM AMDGPU User Guide, "Kernel Descriptor"; hsa_ven_amd_loader.h.
#pragma once

#include <cstdint>
#include <memory>

#include <uptempo/program/metadata.hpp>
#include <uptempo/program/program.hpp>
#include <uptempo/runtime/agent.hpp>

namespace uptempo {

struct KernelObject {
  // The kernel descriptor's address on the device (HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT).
  uint64_t address = 0;
  PrivateBytes stack{};                 // for a kernel with a dynamic stack
  std::shared_ptr<const void> owner{};  // what keeps the code loaded; null: the caller does
};

// Returns the properties of the kernel, for Kernel::of(). Throws Error: argument for an address or
// agent that is not the kernel's, program for metadata that cannot be right or that need a service
// of the host.
std::shared_ptr<const KernelInfo> kernel_info(const Agent& agent, const KernelObject& object,
                                              const KernelMetadata& metadata);

}  // namespace uptempo
