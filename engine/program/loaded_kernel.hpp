// Reads what a code object says of its kernels, and the properties of those that an executable
// holds. Private: Program loads its own executables, uptempo::hip finds those of HIP.
//
// Host calls of kernels are HIP's printf, assert, malloc and free on the device. A host call passes
// a packet through the hostcall buffer and then sends the message MSG_INTERRUPT, because the host
// sleeps (rocm-device-libs: hostcall_impl.cl, hsaqs.cl; dm.cl gets the heap's memory by host
// calls). Code without the instruction s_sendmsg MSG_INTERRUPT calls no host, whatever hidden
// arguments the compiler has declared (drop_host_calls() in metadata.hpp).
//
// Thread safety: pure functions.
#pragma once

#include <hsa/hsa.h>

#include <cstdint>
#include <string_view>

#include <uptempo/program/code_object.hpp>
#include <uptempo/program/kernel_start.hpp>
#include <uptempo/program/metadata.hpp>
#include <uptempo/program/program.hpp>

namespace uptempo {

// False if no kernel of the code object can call the host. Reads all code. True does not prove a
// call: data may have the instruction's word.
bool can_call_host(const CodeObject& object);
// False if this kernel cannot: its own code neither sends the message nor calls or jumps to another
// function, which might. `kernel` is its name in the metadata.
bool can_call_host(const CodeObject& object, std::string_view kernel);

// Returns the metadata of all kernels. A kernel that cannot call the host has no host-call
// arguments there. Reads all code. Throws Error.
ProgramMetadata program_metadata(const CodeObject& object);

// Reads the kernel's descriptor; `origin` stays empty. Throws Error if the code object has no such
// symbol, or if the descriptor or the kernel's code is not where it must be.
KernelStart kernel_start(const CodeObject& object, const KernelMetadata& kernel);

// A kernel's place and sizes, as the loaded code has them.
struct KernelPlace {
  uint64_t object = 0;  // address of the descriptor on the device
  bool reads_packet = true;
  bool dynamic_stack = false;
  uint32_t group_segment_size = 0;
  uint32_t private_segment_size = 0;
};

// Returns the properties of a kernel, but not the identity of its code. Throws Error as
// read_kernel().
KernelInfo info_of(const Agent& agent, const KernelMetadata& kernel, bool has_printf,
                   const KernelPlace& place, PrivateBytes stack, std::string_view call);

// Returns the properties of one of `program`'s kernels, loaded in this executable. Throws Error,
// with `call` as the failed call, for hidden arguments that are not supported, and for a dynamic
// stack without a size that the kernel and the hardware can have.
KernelInfo read_kernel(const Agent& agent, hsa_executable_t executable, const CodeObject& object,
                       const CodeIdentity& identity, const ProgramMetadata& program,
                       const KernelMetadata& kernel, PrivateBytes stack, std::string_view call);

}  // namespace uptempo
