// Grants further agents access to an allocation.
//
// Thread safety: any thread; one call at a time per allocation.
// Cost: one system call per agent. For set-up.
#pragma once

#include <span>

#include "engine/runtime/agent.hpp"

namespace uptempo {

// True if `agent` can be granted access to device memory of `owner`
// (hsa_amd_agent_memory_pool_get_info does not return NEVER_ALLOWED).
bool can_reach(const Agent& agent, const Agent& owner);

// Grants these agents access to `memory`, an allocation of `owner`'s device memory. Replaces the
// agents of the previous call; the owner keeps its access. Throws Error, which names each agent
// that cannot reach the memory; then nothing changes.
void allow_access(const Agent& owner, const void* memory, std::span<const Agent> agents);
// True if the host can be granted access to device memory of `owner` (a large BAR, or an APU).
bool host_can_reach(const Agent& owner);
// Grants the host access to device memory (a large BAR, or an APU), replacing the agents of the
// previous call. Throws Error if the host cannot reach it.
void allow_host_access(const Agent& owner, const void* memory);

}  // namespace uptempo
