// The agent of a HIP device without a Runtime. Private to engine/hip. Thread safety: any thread.
#pragma once

#include <uptempo/runtime/agent.hpp>

namespace uptempo::hip {

// Returns the agent of a HIP device. HIP has initialised HSA and never ends it, so the agent is
// found once. Throws Error.
const Agent& agent_of(int device);

// The agent of the calling thread's current HIP device.
const Agent& current_agent();

}  // namespace uptempo::hip
