// Checks of HIP streams before they meet queues. Private to engine/hip.
//
// Thread safety: any thread. Cost: a few calls of HIP that only read.
#pragma once

#include <uptempo/hip/api/hip_api.hpp>
#include <uptempo/runtime/agent.hpp>

namespace uptempo::hip {

struct StreamFacts {
  int device = 0;
  bool follows_others = false;  // a blocking stream, which HIP orders after the legacy default one
};

// Throws Error if the stream is being captured, has been destroyed, or is not of the HIP device
// with this agent.
StreamFacts check_stream(hipStream_t stream, const Agent& agent);

// The same without an agent.
StreamFacts check_stream(hipStream_t stream);

// The HIP device with this agent. Throws Error if there is none.
int device_of(const Agent& agent);

// True if all work of the stream is complete. False for a blocking stream: HIP may answer for it
// without the default stream's work, which the stream's next command follows.
bool is_idle(hipStream_t stream, const StreamFacts& facts);

// True if the event has completed or was never recorded. Throws Error for an event that HIP
// refuses, such as one that was recorded in a captured stream.
bool is_complete(hipEvent_t event);

// Forgets hipErrorNotReady, an answer, as HIP's last error.
void forget_not_ready();

}  // namespace uptempo::hip
