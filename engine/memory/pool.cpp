#include "engine/memory/pool.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "engine/memory/nearest_host.hpp"
#include "engine/runtime/amd_extension.hpp"
#include "engine/runtime/counters.hpp"
#include "engine/runtime/error.hpp"
#include "engine/runtime/session.hpp"

namespace uptempo {
namespace {

template <class T>
T pool_info(hsa_amd_memory_pool_t pool, hsa_amd_memory_pool_info_t attribute) {
  T value{};
  check(hsa_amd_memory_pool_get_info(pool, attribute, &value), "hsa_amd_memory_pool_get_info");
  return value;
}

std::vector<hsa_amd_memory_pool_t> pools_of(hsa_agent_t agent) {
  std::vector<hsa_amd_memory_pool_t> pools;
  check(hsa_amd_agent_iterate_memory_pools(
            agent,
            [](hsa_amd_memory_pool_t pool, void* data) {
              static_cast<std::vector<hsa_amd_memory_pool_t>*>(data)->push_back(pool);
              return HSA_STATUS_SUCCESS;
            },
            &pools),
        "hsa_amd_agent_iterate_memory_pools");
  return pools;
}

// The agents whose pools may serve `kind`, the first choice first.
std::vector<hsa_agent_t> owners_for(const Agent& gpu, MemoryKind kind) {
  if (kind == MemoryKind::device) return {gpu.handle()};
  std::vector<hsa_agent_t> owners;
  for (const HostDistance& host : hosts_by_distance(gpu)) owners.push_back(host.agent);
  return owners;
}

// Returns why the pool cannot be used; empty if it can.
std::string why_not(hsa_amd_memory_pool_t pool, MemoryKind kind, hsa_agent_t gpu) {
  const auto segment = pool_info<hsa_amd_segment_t>(pool, HSA_AMD_MEMORY_POOL_INFO_SEGMENT);
  if (segment != HSA_AMD_SEGMENT_GLOBAL) return "not of the global segment";
  const auto flags = pool_info<uint32_t>(pool, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS);
  const bool coarse = kind == MemoryKind::device || kind == MemoryKind::pinned_coarse;
  if (coarse && (flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED) == 0)
    return "not coarse-grained";
  if (!coarse && (flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED) == 0)
    return "not fine-grained";
  if (kind == MemoryKind::kernarg && (flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT) == 0)
    return "not for kernargs";
  if (!pool_info<bool>(pool, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED))
    return "allocation is not allowed";
  hsa_amd_memory_pool_access_t access{};
  check(
      hsa_amd_agent_memory_pool_get_info(gpu, pool, HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS, &access),
      "hsa_amd_agent_memory_pool_get_info");
  if (access == HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED) return "not accessible to the GPU";
  return {};
}

std::string names_of(std::span<const Agent> agents) {
  if (agents.size() == 1) return agents.front().name();
  std::string names;
  for (const Agent& agent : agents)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name_and_node(agent));
  return names;
}

// Returns the agents that can never access the pool; empty: none.
std::string out_of_reach(hsa_amd_memory_pool_t pool, std::span<const Agent> agents) {
  std::string far;
  for (const Agent& agent : agents) {
    hsa_amd_memory_pool_access_t access{};
    check(hsa_amd_agent_memory_pool_get_info(agent.handle(), pool,
                                             HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS, &access),
          "hsa_amd_agent_memory_pool_get_info", [&] { return name_and_node(agent); });
    if (access == HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED)
      far += fmt::format("{}{}", far.empty() ? "" : ", ", name_and_node(agent));
  }
  return far;
}

// Names the system's limit of mappings if the process has reached it: then neither the driver nor
// ROCr maps any more memory, however much is free.
std::string mappings_text() {
  // ROCr may have freed some of them when it gave up.
  constexpr size_t kNear = 64;
  size_t most = 0, mappings = 0;
  if (!(std::ifstream("/proc/sys/vm/max_map_count") >> most)) return {};
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) ++mappings;
  if (mappings + kNear < most) return {};
  return fmt::format(
      "; the process has {} mappings, of at most {} (vm.max_map_count): raise that limit, or make "
      "fewer and larger buffers",
      mappings, most);
}

// True if the driver says that it has less than that for the GPU, where ROCr must not be asked in
// vain. ROCr might have found the memory in a block that it keeps for small allocations, or in its
// own caches: the price of not ending with SIGSEGV.
bool must_not_ask(hsa_agent_t gpu, size_t size_bytes) {
  constexpr uint32_t kAvailable = 0xA015;  // HSA_AMD_AGENT_INFO_MEMORY_AVAIL
  uint64_t available = 0;
  return reads_destroyed_queues() &&
         hsa_agent_get_info(gpu, std::bit_cast<hsa_agent_info_t>(kAvailable), &available) ==
             HSA_STATUS_SUCCESS &&
         size_bytes > available;
}

}  // namespace

std::string_view name_of(MemoryKind kind) noexcept {
  switch (kind) {
    case MemoryKind::device:
      return "device memory";
    case MemoryKind::pinned:
      return "pinned host memory";
    case MemoryKind::pinned_coarse:
      return "coarse-grained pinned host memory";
    case MemoryKind::kernarg:
      return "kernarg memory";
  }
  return "memory";
}

MemoryPool find_pool(const Agent& gpu, MemoryKind kind) {
  std::string rejected;
  size_t number = 0;
  for (const hsa_agent_t owner : owners_for(gpu, kind)) {
    for (const hsa_amd_memory_pool_t pool : pools_of(owner)) {
      const std::string reason = why_not(pool, kind, gpu.handle());
      if (reason.empty()) {
        return {.handle = pool,
                .owner = owner,
                .kind = kind,
                .size_bytes = pool_info<size_t>(pool, HSA_AMD_MEMORY_POOL_INFO_SIZE),
                .max_allocation_bytes =
                    pool_info<size_t>(pool, HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE),
                .granule_bytes =
                    pool_info<size_t>(pool, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE),
                .alignment_bytes =
                    pool_info<size_t>(pool, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALIGNMENT)};
      }
      rejected += fmt::format("{}pool {} is {}", rejected.empty() ? "" : ", ", number++, reason);
    }
  }
  throw Error({.status = static_cast<hsa_status_t>(HSA_STATUS_ERROR_INVALID_MEMORY_POOL),
               .call = "find_pool",
               .asked = fmt::format("{} for agent {}", name_of(kind), gpu.name()),
               .found = rejected.empty() ? "no memory pools" : rejected,
               .remedy = "check the agent's pools with rocminfo"});
}

Allocation::Allocation(std::span<const Agent> gpus, MemoryKind kind, size_t size_bytes)
    : size_bytes_(size_bytes) {
  if (gpus.empty()) {
    throw Error({.status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
                 .call = "Allocation",
                 .asked = fmt::format("{} bytes of {} for no agent", size_bytes, name_of(kind)),
                 .found = "an empty list of GPUs",
                 .remedy =
                     "name at least one GPU: the owner of device memory, or one near the host "
                     "memory"});
  }
  const Agent& gpu = gpus.front();
  std::shared_ptr<Session> session = Session::current();
  const MemoryPool pool = find_pool(gpu, kind);
  const std::string asked =
      fmt::format("{} bytes of {} for agent {}", size_bytes, name_of(kind), names_of(gpus));
  if (const std::string far = out_of_reach(pool.handle, gpus); !far.empty()) {
    throw Error({.status = HSA_STATUS_ERROR_INVALID_AGENT,
                 .call = "Allocation",
                 .asked = asked,
                 .found = fmt::format("{} cannot access that memory pool", far),
                 .remedy = "leave these agents out, and copy through memory that they can access"});
  }
  if (size_bytes == 0) {
    throw Error({.status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
                 .call = "Allocation",
                 .asked = asked,
                 .found = "a size of zero",
                 .remedy = "request at least one byte"});
  }
  void* data = nullptr;
  const hsa_status_t status = kind == MemoryKind::device && must_not_ask(gpu.handle(), size_bytes)
                                  ? HSA_STATUS_ERROR_OUT_OF_RESOURCES
                                  : hsa_amd_memory_pool_allocate(pool.handle, size_bytes, 0, &data);
  if (status != HSA_STATUS_SUCCESS) {
    throw Error(
        {.status = status,
         .call = "hsa_amd_memory_pool_allocate",
         .asked = asked,
         .found = fmt::format("the pool of {} bytes, at most {} at a time, has too little memory{}",
                              pool.size_bytes, pool.max_allocation_bytes, mappings_text()),
         .remedy = "free buffers or request less"});
  }
  owned_ = Owned(
      std::move(session), Session::Kind::memory, reinterpret_cast<uint64_t>(data),
      [](uint64_t handle) noexcept { hsa_amd_memory_pool_free(reinterpret_cast<void*>(handle)); });
  gpu_ = gpu.handle();
  if (kind != MemoryKind::device || gpus.size() > 1) {
    // Replaces the set of agents; the pool's own agent keeps its access.
    std::vector<hsa_agent_t> agents;
    for (const Agent& each : gpus) agents.push_back(each.handle());
    check(hsa_amd_agents_allow_access(static_cast<uint32_t>(agents.size()), agents.data(), nullptr,
                                      data),
          "hsa_amd_agents_allow_access", asked);
  }
  detail::count(&detail::CounterBlock::memory_allocations);
  if (kind == MemoryKind::kernarg) detail::count(&detail::CounterBlock::kernarg_allocations);
}

}  // namespace uptempo
