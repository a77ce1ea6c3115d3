// Who may access an allocation besides the agent that it was made for. For set-up: each call is a system call for each agent.
//
// Thread safety: any thread, one at a time for one allocation. Each call replaces the agents of the one before; the owner keeps its access.
#pragma once

#include <span>

#include "engine/runtime/agent.hpp"

namespace uptempo {

// Whether `agent` can be given access to device memory of `owner` (hsa_amd_agent_memory_pool_get_info; NEVER_ALLOWED says no).
bool can_reach(const Agent& agent, const Agent& owner);

// Gives these agents access to `memory`, which is an allocation of device memory of `owner`. Throws Error that names each agent out of whose reach it is; then nothing
// is changed.
void allow_access(const Agent& owner, const void* memory, std::span<const Agent> agents);
// Gives the host access to device memory (a large BAR, or an APU). Throws Error where the host cannot reach it.
void allow_host_access(const Agent& owner, const void* memory);

}  // namespace uptempo
