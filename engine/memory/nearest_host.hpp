// The CPU agent that is nearest to a GPU. Its pools hold what the host and the GPU share: kernargs,
// staging and pinned buffers (find_pool in pool.hpp).
//
// The distance is that of the links that HSA reports for the CPU agent's memory
// (HSA_AMD_AGENT_MEMORY_POOL_INFO_LINK_INFO): the sum of their NUMA distances. It is 0 if both
// agents are one node, and unknown, hence last, if there is no link. Of equally distant agents, the
// one of HSA_AMD_AGENT_INFO_NEAREST_CPU (ROCr 6.0 and newer) counts as nearest, else the first in
// HSA's order. NEAREST_CPU alone does not decide: ROCr takes an agent without a link for one at
// distance 0 (amd_gpu_agent.cpp, GetNearestCpuAgent, at 6.1.2).
//
// A CPU agent without memory comes after all others. ROCr gives it pools of size 0, in which
// allocation is allowed: the limit of an allocation of host memory is the sum of all nodes' memory
// (amd_memory_region.cpp, MemoryRegion::Allocate).
//
// Not placed: signals. hsa_amd_signal_create takes no agent or pool for the memory; `consumers`
// only decides whether the signal has an event. ROCr allocates all signals from the kernarg pool of
// the first CPU agent (runtime.cpp, RegisterAgent, and signal.cpp, SharedSignalPool_t::alloc, at
// 5.2.3, 6.1.2 and in August 2025). signal_placement() reports where they are.
// Memory pinned for a copy (PageablePath) stays in the pages where the program has it.
//
// Thread safety: every function may be called from any thread.
// Cost: a few queries without system calls, per CPU agent. For set-up.
#pragma once

#include <hsa/hsa.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/runtime/agent.hpp"

namespace uptempo {

struct HostDistance {
  hsa_agent_t agent{};
  uint32_t node = 0;                   // driver's node number
  std::optional<uint32_t> distance{};  // NUMA distance from the GPU; none: no link
  std::string link{};                  // "PCIe", "XGMI"; "no link"
  bool has_memory = true;              // false: all of its pools have size 0
};

// Returns all CPU agents, the nearest first, and those without memory last. Throws Error.
std::vector<HostDistance> hosts_by_distance(const Agent& gpu);

struct NearestHost {
  hsa_agent_t agent{};
  uint32_t node = 0;
  // "node 1, the nearest of 2 CPU agents: NUMA distance 20 (PCIe); node 0: 52 (PCIe)"
  std::string reason;
};

// Returns the first of hosts_by_distance(). Throws Error if HSA has no CPU agent.
NearestHost nearest_host(const Agent& gpu);

// Describes the CPU agent that owns a pool (MemoryPool::owner), as NearestHost::reason does. Throws
// Error.
std::string host_placement(const Agent& gpu, hsa_agent_t owner);

// Returns where ROCr puts signals, with the distance from the GPU. Creates a signal and asks
// hsa_amd_pointer_info. Throws Error.
std::string signal_placement(const Agent& gpu);

namespace detail {

// The order and reason, from distances in HSA's order. `named`: the node of
// HSA_AMD_AGENT_INFO_NEAREST_CPU, if ROCr has it. `chosen`: place of the agent that is used.
void sort_by_distance(std::vector<HostDistance>& hosts, std::optional<uint32_t> named);
std::string reason_for(const std::vector<HostDistance>& sorted, std::optional<uint32_t> named,
                       size_t chosen = 0);

}  // namespace detail
}  // namespace uptempo
