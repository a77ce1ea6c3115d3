// Where the program published a packet: the call, and the stream that HIP was called with.
//
// Thread safety: the state is the calling thread's own. calling_stream() is async-signal-safe.
#pragma once

#include <cstdint>

#include "device/host/host_stacks.hpp"

namespace uptempo::vgpu {

// A hipStream_t as the program passes it, or one of these. HIP has no stream at address 1
// (hipStreamLegacy) or 2 (hipStreamPerThread).
enum class HipStream : uint64_t { unknown = 0, null = 1, per_thread = 2 };

struct Publisher {
  HostStackId stack = 0;                  // the host's call that rang for the packet
  HipStream stream = HipStream::unknown;  // unknown: not published in a call of HIP that names one
};

// The calling thread begins a call of HIP that names this stream. Returns false if it is in such a
// call already: HIP calls itself, and the program's call counts.
bool begin_hip_call(HipStream stream) noexcept;
// Ends the call for which begin_hip_call() returned true.
void end_hip_call() noexcept;
HipStream calling_stream() noexcept;

}  // namespace uptempo::vgpu
