// Memory pools, and the CPU agents that own those of host memory, by their distance from a GPU.
// Private.
//
// The distance is that of the links that HSA reports for the CPU agent's memory
// (HSA_AMD_AGENT_MEMORY_POOL_INFO_LINK_INFO): the sum of their NUMA distances. It is 0 if both
// agents are one node, and unknown, hence last, if there is no link. The first of equally distant
// agents in HSA's order counts as nearest, as in CLR. HSA_AMD_AGENT_INFO_NEAREST_CPU does not
// decide: ROCr takes an agent without a link for one at distance 0 (amd_gpu_agent.cpp,
// GetNearestCpuAgent, at 6.1.2).
//
// A CPU agent without memory comes after all others. ROCr gives it pools of size 0, in which
// allocation is allowed: the limit of an allocation of host memory is the sum of all nodes' memory
// (amd_memory_region.cpp, MemoryRegion::Allocate).
//
// Not placed: signals. hsa_amd_signal_create takes no agent or pool for the memory; `consumers`
// only decides whether the signal has an event. ROCr allocates all signals from the kernarg pool of
// the first CPU agent (runtime.cpp, RegisterAgent, and signal.cpp, SharedSignalPool_t::alloc, at
// 5.2.3, 6.1.2 and in August 2025). Memory pinned for a copy (CopyLimits) stays in the pages
// where the program has it.
//
// Thread safety: any thread. All functions throw Error if HSA does not answer.
// Cost: a few queries without system calls, per CPU agent. For set-up.
#pragma once

#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <uptempo/runtime/agent.hpp>

namespace uptempo::detail {

// False if the agent can never be granted access to the pool.
bool can_access(hsa_agent_t agent, hsa_amd_memory_pool_t pool);

struct HostDistance {
  hsa_agent_t agent{};
  uint32_t node = 0;                   // driver's node number
  std::optional<uint32_t> distance{};  // NUMA distance from the GPU; none: no link
  std::string link = "no link";        // "PCIe", "XGMI"
  bool has_memory = true;              // false: all of its pools have size 0
};

// Returns all CPU agents, the nearest first, and those without memory last.
std::vector<HostDistance> hosts_by_distance(const Agent& gpu);
void sort_by_distance(std::vector<HostDistance>& hosts);

// Describes the CPU agent that owns a pool, and why it was chosen:
// "node 1, the nearest of 2 CPU agents: NUMA distance 20 (PCIe); node 0: 52 (PCIe)".
std::string host_placement(const Agent& gpu, hsa_agent_t owner);
std::string host_placement(const std::vector<HostDistance>& sorted, size_t chosen);

// Returns where ROCr puts signals, with the distance from the GPU. Creates a signal.
std::string signal_placement(const Agent& gpu);

}  // namespace uptempo::detail
