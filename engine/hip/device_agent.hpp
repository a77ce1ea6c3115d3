// The agent of a HIP device without a Runtime. Private to engine/hip. Thread safety: any thread.
#pragma once

#include "engine/runtime/agent.hpp"

namespace uptempo::hip {

// Returns the agent of the calling thread's current HIP device. HIP has initialised HSA. Throws
// Error.
Agent current_agent();

}  // namespace uptempo::hip
