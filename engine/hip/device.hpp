// Returns the HSA agent of a HIP device. HIP numbers the devices that HIP_VISIBLE_DEVICES leaves,
// HSA those that ROCR_VISIBLE_DEVICES leaves, so the numbers differ; the place on the PCI bus and
// the UUID identify a device in both.
//
// Thread safety: any thread. Cost: for set-up.
#pragma once

#include <uptempo/runtime/agent.hpp>
#include <uptempo/runtime/runtime.hpp>

namespace uptempo::hip {

// The agent of HIP device `device`. Throws Error if HIP has no such device, or if not exactly one
// GPU agent of the Runtime has its PCI address, and of partitions of one card, its UUID. HIP before
// 6.2 does not tell apart partitions that share a UUID (AgentProperties::uuid): the Error names
// them.
Agent agent(const Runtime& runtime, int device);
// The agent of the calling thread's current HIP device (hipSetDevice).
Agent agent(const Runtime& runtime);

}  // namespace uptempo::hip
