// Grants further agents access to an allocation.
//
// A GPU reaches memory of a peer, or host memory that was pinned for another GPU, only after it has
// been granted access. A kernel or copy engine that tries before faults, which ends the queues of
// that GPU. Buffers made for several agents (buffer.hpp) need no call of these functions.
//
// ROCr divides blocks of 2 MiB among smaller allocations. They share access: an agent that is
// granted access to one keeps it for all others in the block (ROCr, MemoryRegion::AllowAccess).
//
// Thread safety: any thread; one call at a time per allocation.
// Cost: allow: one system call per agent, for set-up. has_access(): a lookup in ROCr.
#pragma once

#include <span>
#include <string>

#include "engine/runtime/agent.hpp"

namespace uptempo {

// True if `agent` can be granted access to device memory of `owner`
// (hsa_amd_agent_memory_pool_get_info does not return NEVER_ALLOWED).
bool can_reach(const Agent& agent, const Agent& owner);

// Grants these agents access to `memory`: an allocation of `owner`'s device memory, or of host
// memory that was pinned for `owner`. Replaces the agents of the previous call; the owner keeps its
// access. Throws Error for memory of another GPU than `owner`, and for agents that cannot reach the
// memory, which it names; then nothing changes.
void allow_access(const Agent& owner, const void* memory, std::span<const Agent> agents);
// True if the GPU may access this memory now: memory that HSA has allocated or pinned
// (hsa_amd_pointer_info). Throws Error if ROCr does not answer.
bool has_access(hsa_agent_t agent, const void* memory);
inline bool has_access(const Agent& agent, const void* memory) {
  return has_access(agent.handle(), memory);
}
namespace detail {
// Throws Error, which names agent and owner. `asked`: what needs the access.
[[noreturn]] void refuse_access(const Agent& agent, const void* memory, hsa_agent_t owner,
                                const char* call, const std::string& asked);
}  // namespace detail
// True if the host can be granted access to device memory of `owner` (a large BAR, or an APU).
bool host_can_reach(const Agent& owner);
// Grants the host access to device memory (a large BAR, or an APU). Agents that have access keep
// it. Throws Error if the host cannot reach the memory.
void allow_host_access(const Agent& owner, const void* memory);

}  // namespace uptempo
