#include <uptempo/memory/pool.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include <uptempo/memory/buffer.hpp>
#include <uptempo/runtime/error.hpp>
#include <uptempo/runtime/signal.hpp>

namespace uptempo {
namespace {

using detail::HostDistance;

template <class T>
T pool_info(hsa_amd_memory_pool_t pool, hsa_amd_memory_pool_info_t attribute) {
  T value{};
  check(hsa_amd_memory_pool_get_info(pool, attribute, &value), "hsa_amd_memory_pool_get_info");
  return value;
}

void get(hsa_agent_t agent, hsa_amd_memory_pool_t pool, hsa_amd_agent_memory_pool_info_t attribute,
         void* value) {
  check(hsa_amd_agent_memory_pool_get_info(agent, pool, attribute, value),
        "hsa_amd_agent_memory_pool_get_info", [&] { return name_and_node(agent); });
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

uint32_t node_of(hsa_agent_t agent) {
  uint32_t node = 0;
  check(hsa_agent_get_info(agent, HSA_AGENT_INFO_NODE, &node), "hsa_agent_get_info",
        "HSA_AGENT_INFO_NODE");
  return node;
}

const char* name_of(hsa_amd_link_info_type_t type) {
  switch (type) {
    case HSA_AMD_LINK_INFO_TYPE_HYPERTRANSPORT:
      return "HyperTransport";
    case HSA_AMD_LINK_INFO_TYPE_QPI:
      return "QPI";
    case HSA_AMD_LINK_INFO_TYPE_PCIE:
      return "PCIe";
    case HSA_AMD_LINK_INFO_TYPE_XGMI:
      return "XGMI";
    default:
      return "link of another type";
  }
}

void measure(HostDistance& host, const Agent& gpu) {
  std::optional<hsa_amd_memory_pool_t> usable;
  host.has_memory = false;
  for (const hsa_amd_memory_pool_t pool : pools_of(host.agent)) {
    if (pool_info<size_t>(pool, HSA_AMD_MEMORY_POOL_INFO_SIZE) != 0) host.has_memory = true;
    if (!usable && detail::can_access(gpu.handle(), pool)) usable = pool;
  }
  if (host.node == gpu.properties().node) {
    host.distance = 0;
    host.link = "the same node";
    return;
  }
  uint32_t hops = 0;
  if (usable) get(gpu.handle(), *usable, HSA_AMD_AGENT_MEMORY_POOL_INFO_NUM_LINK_HOPS, &hops);
  if (hops == 0) return;
  std::vector<hsa_amd_memory_pool_link_info_t> links(hops);
  get(gpu.handle(), *usable, HSA_AMD_AGENT_MEMORY_POOL_INFO_LINK_INFO, links.data());
  host.distance = 0;
  for (const hsa_amd_memory_pool_link_info_t& link : links) *host.distance += link.numa_distance;
  host.link = name_of(links.front().link_type);
}

std::string distance_text(const HostDistance& host) {
  return fmt::format("{}{}",
                     host.distance ? fmt::format("{} ({})", *host.distance, host.link) : host.link,
                     host.has_memory ? "" : ", no memory");
}

// The agents whose pools may serve `kind`, the first choice first.
std::vector<hsa_agent_t> owners_for(const Agent& gpu, MemoryKind kind) {
  if (kind == MemoryKind::device) return {gpu.handle()};
  std::vector<hsa_agent_t> owners;
  for (const HostDistance& host : detail::hosts_by_distance(gpu)) owners.push_back(host.agent);
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
  return detail::can_access(gpu, pool) ? "" : "not accessible to the GPU";
}

}  // namespace

bool detail::can_access(hsa_agent_t agent, hsa_amd_memory_pool_t pool) {
  hsa_amd_memory_pool_access_t access{};
  get(agent, pool, HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS, &access);
  return access != HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED;
}

MemoryPool find_pool(const Agent& gpu, MemoryKind kind) {
  std::string rejected;
  size_t number = 0;
  for (const hsa_agent_t owner : owners_for(gpu, kind)) {
    for (const hsa_amd_memory_pool_t pool : pools_of(owner)) {
      const std::string reason = why_not(pool, kind, gpu.handle());
      if (reason.empty())
        return {.handle = pool,
                .owner = owner,
                .size_bytes = pool_info<size_t>(pool, HSA_AMD_MEMORY_POOL_INFO_SIZE),
                .max_allocation_bytes =
                    pool_info<size_t>(pool, HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE)};
      rejected += fmt::format("{}pool {} is {}", rejected.empty() ? "" : ", ", number++, reason);
    }
  }
  throw Error({.code = ErrorCode::unavailable,
               .status = static_cast<hsa_status_t>(HSA_STATUS_ERROR_INVALID_MEMORY_POOL),
               .call = "find_pool",
               .asked = fmt::format("{} for agent {}", name_of(kind), gpu.name()),
               .found = rejected.empty() ? "no memory pools" : rejected,
               .remedy = "check the agent's pools with rocminfo"});
}

void detail::sort_by_distance(std::vector<HostDistance>& hosts) {
  std::ranges::stable_sort(hosts, {}, [](const HostDistance& host) {
    return std::tuple(!host.has_memory, !host.distance, host.distance.value_or(0));
  });
}

std::vector<HostDistance> detail::hosts_by_distance(const Agent& gpu) {
  std::vector<HostDistance> hosts;
  check(hsa_iterate_agents(
            [](hsa_agent_t agent, void* data) {
              hsa_device_type_t type{};
              const hsa_status_t status = hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type);
              if (status == HSA_STATUS_SUCCESS && type == HSA_DEVICE_TYPE_CPU)
                static_cast<std::vector<HostDistance>*>(data)->push_back({.agent = agent});
              return status;
            },
            &hosts),
        "hsa_iterate_agents");
  for (HostDistance& host : hosts) {
    host.node = node_of(host.agent);
    measure(host, gpu);
  }
  sort_by_distance(hosts);
  return hosts;
}

std::string detail::host_placement(const std::vector<HostDistance>& sorted, size_t chosen) {
  const HostDistance& used = sorted[chosen];
  if (sorted.size() == 1)
    return fmt::format("node {}, the only CPU agent{}", used.node,
                       used.has_memory ? "" : ", no memory");
  std::string text =
      fmt::format("node {}, the nearest of {} CPU agents{}: NUMA distance {}", used.node,
                  sorted.size(), chosen == 0 ? "" : " with such a pool", distance_text(used));
  for (const HostDistance& host : sorted)
    if (&host != &used) text += fmt::format("; node {}: {}", host.node, distance_text(host));
  return text;
}

std::string detail::host_placement(const Agent& gpu, hsa_agent_t owner) {
  const std::vector<HostDistance> hosts = hosts_by_distance(gpu);
  for (size_t i = 0; i < hosts.size(); ++i)
    if (hosts[i].agent.handle == owner.handle) return host_placement(hosts, i);
  return fmt::format("node {}", node_of(owner));
}

std::string detail::signal_placement(const Agent& gpu) {
  const Signal signal(SignalKind::event_less);
  hsa_amd_pointer_info_t info{};
  info.size = sizeof info;
  check(hsa_amd_pointer_info(reinterpret_cast<void*>(signal.handle().handle), &info, nullptr,
                             nullptr, nullptr),
        "hsa_amd_pointer_info", "the memory of a signal");
  std::string where = "in memory of an unknown agent";
  for (const HostDistance& host : hosts_by_distance(gpu))
    if (host.agent.handle == info.agentOwner.handle)
      where = fmt::format("at node {}, NUMA distance {}", host.node, distance_text(host));
  return where + "; hsa_amd_signal_create offers no choice";
}

}  // namespace uptempo
