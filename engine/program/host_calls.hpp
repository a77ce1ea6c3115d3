// Host calls of kernels: HIP's printf, assert, malloc and free on the device.
//
// A host call passes a packet through the hostcall buffer and then sends the message
// MSG_INTERRUPT, because the host sleeps (rocm-device-libs: hostcall_impl.cl, hsaqs.cl; dm.cl gets
// the heap's memory by host calls). Code without the instruction s_sendmsg MSG_INTERRUPT calls no
// host, whatever hidden arguments the compiler has declared (drop_host_calls() in metadata.hpp).
//
// Thread safety: pure functions.
#pragma once

#include <string_view>

#include "engine/program/code_object.hpp"

namespace uptempo {

// False if no kernel of the code object can call the host. Reads all code. True does not prove a
// call: data may have the instruction's word.
bool can_call_host(const CodeObject& object);

// False if this kernel cannot: its own code neither sends the message nor calls or jumps to another
// function, which might. `kernel` is its name in the metadata.
bool can_call_host(const CodeObject& object, std::string_view kernel);

}  // namespace uptempo
