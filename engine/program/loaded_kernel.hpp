// Reads the properties of kernels whose code object an executable holds. Private: Program loads its
// own executables, uptempo::hip finds those of HIP.
//
// Thread safety: pure functions.
#pragma once

#include <hsa/hsa.h>

#include <string_view>

#include "engine/program/code_object.hpp"
#include "engine/program/metadata.hpp"
#include "engine/program/program.hpp"

namespace uptempo {

// Returns the metadata of all kernels. A kernel that cannot call the host has no host-call
// arguments there (host_calls.hpp). Reads all code. Throws Error.
ProgramMetadata program_metadata(const CodeObject& object);

// Returns the properties of one of `program`'s kernels, loaded in this executable. Throws Error,
// with `call` as the failed call, for hidden arguments that are not supported, and for a dynamic
// stack without a size that the kernel and the hardware can have.
KernelInfo read_kernel(const Agent& agent, hsa_executable_t executable, const CodeObject& object,
                       const CodeIdentity& identity, const ProgramMetadata& program,
                       const KernelMetadata& kernel, PrivateBytes stack, std::string_view call);

}  // namespace uptempo
