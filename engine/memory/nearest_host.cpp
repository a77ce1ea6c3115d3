#include "engine/memory/nearest_host.hpp"

#include <fmt/format.h>
#include <hsa/hsa_ext_amd.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "engine/runtime/error.hpp"
#include "engine/runtime/signal.hpp"

namespace uptempo {
namespace {

// HSA_AMD_AGENT_INFO_NEAREST_CPU, which older hsa_ext_amd.h lacks. Older ROCr refuses the number.
constexpr uint32_t kNearestCpu = 0xA113;

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

std::vector<hsa_agent_t> cpu_agents() {
  std::vector<hsa_agent_t> agents;
  check(hsa_iterate_agents(
            [](hsa_agent_t agent, void* data) {
              hsa_device_type_t type{};
              const hsa_status_t status = hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type);
              if (status != HSA_STATUS_SUCCESS) return status;
              if (type == HSA_DEVICE_TYPE_CPU)
                static_cast<std::vector<hsa_agent_t>*>(data)->push_back(agent);
              return HSA_STATUS_SUCCESS;
            },
            &agents),
        "hsa_iterate_agents");
  return agents;
}

uint32_t node_of(hsa_agent_t agent) {
  uint32_t node = 0;
  check(hsa_agent_get_info(agent, HSA_AGENT_INFO_NODE, &node), "hsa_agent_get_info",
        "HSA_AGENT_INFO_NODE");
  return node;
}

struct PoolSearch {
  hsa_agent_t gpu;
  // the first pool that the GPU may use, or else the first; null handle: the agent has none
  hsa_amd_memory_pool_t found{0};
  bool is_usable = false;
  bool has_memory = false;  // one of the agent's pools has
};

PoolSearch search_pools(hsa_agent_t cpu, hsa_agent_t gpu) {
  PoolSearch search{.gpu = gpu};
  check(hsa_amd_agent_iterate_memory_pools(
            cpu,
            [](hsa_amd_memory_pool_t pool, void* data) {
              auto& so_far = *static_cast<PoolSearch*>(data);
              hsa_amd_memory_pool_access_t access{};
              hsa_status_t status = hsa_amd_agent_memory_pool_get_info(
                  so_far.gpu, pool, HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS, &access);
              if (status != HSA_STATUS_SUCCESS) return status;
              size_t size_bytes = 0;
              status =
                  hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_SIZE, &size_bytes);
              if (status != HSA_STATUS_SUCCESS) return status;
              so_far.has_memory = so_far.has_memory || size_bytes != 0;
              const bool is_usable = access != HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED;
              if (so_far.found.handle == 0 || (is_usable && !so_far.is_usable)) {
                so_far.found = pool;
                so_far.is_usable = is_usable;
              }
              return HSA_STATUS_SUCCESS;
            },
            &search),
        "hsa_amd_agent_iterate_memory_pools");
  return search;
}

void measure(HostDistance& host, const Agent& gpu) {
  const PoolSearch pools = search_pools(host.agent, gpu.handle());
  host.has_memory = pools.has_memory;
  host.link = "no link";
  if (host.node == gpu.properties().node) {
    host.distance = 0;
    host.link = "the same node";
    return;
  }
  const hsa_amd_memory_pool_t pool = pools.found;
  if (pool.handle == 0) return;
  uint32_t hops = 0;
  check(hsa_amd_agent_memory_pool_get_info(gpu.handle(), pool,
                                           HSA_AMD_AGENT_MEMORY_POOL_INFO_NUM_LINK_HOPS, &hops),
        "hsa_amd_agent_memory_pool_get_info", "the number of links");
  if (hops == 0) return;
  std::vector<hsa_amd_memory_pool_link_info_t> links(hops);
  check(hsa_amd_agent_memory_pool_get_info(gpu.handle(), pool,
                                           HSA_AMD_AGENT_MEMORY_POOL_INFO_LINK_INFO, links.data()),
        "hsa_amd_agent_memory_pool_get_info", "the links");
  uint32_t sum = 0;
  for (const hsa_amd_memory_pool_link_info_t& link : links) sum += link.numa_distance;
  host.distance = sum;
  host.link = name_of(links.front().link_type);
}

std::optional<uint32_t> node_that_rocr_names(const Agent& gpu,
                                             const std::vector<HostDistance>& hosts) {
  hsa_agent_t named{};
  if (hsa_agent_get_info(gpu.handle(), std::bit_cast<hsa_agent_info_t>(kNearestCpu), &named) !=
      HSA_STATUS_SUCCESS)
    return {};
  for (const HostDistance& host : hosts)
    if (host.agent.handle == named.handle) return host.node;
  return {};
}

std::vector<HostDistance> measured_hosts(const Agent& gpu) {
  std::vector<HostDistance> hosts;
  for (const hsa_agent_t agent : cpu_agents()) {
    hosts.push_back({.agent = agent, .node = node_of(agent)});
    measure(hosts.back(), gpu);
  }
  return hosts;
}

std::string distance_text(const HostDistance& host) {
  return fmt::format("{}{}",
                     host.distance ? fmt::format("{} ({})", *host.distance, host.link) : host.link,
                     host.has_memory ? "" : ", no memory");
}

}  // namespace

void detail::sort_by_distance(std::vector<HostDistance>& hosts, std::optional<uint32_t> named) {
  const auto rank = [&](const HostDistance& host) {
    // Farther than every distance if unknown. Halves leave room for ROCr's choice among equals.
    const uint64_t distance =
        host.distance ? *host.distance : uint64_t{std::numeric_limits<uint32_t>::max()} + 1;
    return std::pair(!host.has_memory, distance * 2 + (named == host.node ? 0 : 1));
  };
  std::ranges::stable_sort(hosts, {}, rank);
}

std::string detail::reason_for(const std::vector<HostDistance>& sorted,
                               std::optional<uint32_t> named, size_t chosen) {
  const HostDistance& used = sorted[chosen];
  if (sorted.size() == 1)
    return fmt::format("node {}, the only CPU agent{}", used.node,
                       used.has_memory ? "" : ", no memory");
  std::string text =
      fmt::format("node {}, the nearest of {} CPU agents{}: NUMA distance {}", used.node,
                  sorted.size(), chosen == 0 ? "" : " with such a pool", distance_text(used));
  for (const HostDistance& host : sorted)
    if (&host != &used) text += fmt::format("; node {}: {}", host.node, distance_text(host));
  if (!named) return text;
  if (*named == used.node) return text + "; ROCr names the same";
  const auto other = std::ranges::find(sorted, *named, &HostDistance::node);
  const bool is_farther = static_cast<size_t>(other - sorted.begin()) > chosen && other->has_memory;
  return text +
         fmt::format("; ROCr names node {}{}", *named, is_farther ? ", which is farther" : "");
}

std::vector<HostDistance> hosts_by_distance(const Agent& gpu) {
  std::vector<HostDistance> hosts = measured_hosts(gpu);
  detail::sort_by_distance(hosts, node_that_rocr_names(gpu, hosts));
  return hosts;
}

NearestHost nearest_host(const Agent& gpu) {
  const std::vector<HostDistance> hosts = hosts_by_distance(gpu);
  if (hosts.empty()) {
    throw Error({.status = HSA_STATUS_ERROR_INVALID_AGENT,
                 .call = "nearest_host",
                 .asked = fmt::format("the CPU agent nearest to {}", gpu.name()),
                 .found = "no CPU agent",
                 .remedy = "check the driver's topology with rocminfo"});
  }
  return {.agent = hosts.front().agent,
          .node = hosts.front().node,
          .reason = detail::reason_for(hosts, node_that_rocr_names(gpu, hosts))};
}

std::string host_placement(const Agent& gpu, hsa_agent_t owner) {
  const std::vector<HostDistance> hosts = hosts_by_distance(gpu);
  const auto found = std::ranges::find(hosts, owner.handle,
                                       [](const HostDistance& host) { return host.agent.handle; });
  if (found == hosts.end()) return fmt::format("node {}", node_of(owner));
  return detail::reason_for(hosts, node_that_rocr_names(gpu, hosts),
                            static_cast<size_t>(found - hosts.begin()));
}

std::string signal_placement(const Agent& gpu) {
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
