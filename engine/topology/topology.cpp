#include "engine/topology/topology.hpp"

#include <fmt/format.h>

#include "engine/runtime/error.hpp"
#include "engine/topology/sources.hpp"

namespace uptempo {

std::vector<GpuTopology> read_gpu_topology() {
#ifdef UPTEMPO_TOPOLOGY_HSAKMT
  return detail::hsakmt_topology();
#else
  return detail::sysfs_topology();
#endif
}

GpuTopology gpu_topology(uint32_t node) {
  std::string known;
  for (const GpuTopology& gpu : read_gpu_topology()) {
    if (gpu.node == node) return gpu;
    known += fmt::format("{}{} ({})", known.empty() ? "" : ", ", gpu.node, gpu.name);
  }
  throw Error(
      {.status = HSA_STATUS_ERROR_INVALID_AGENT,
       .call = "gpu_topology",
       .asked = fmt::format("the GPU of node {}", node),
       .found = known.empty() ? "no node is a GPU" : fmt::format("GPUs are nodes {}", known),
       .remedy = "use AgentProperties::node of a GPU agent"});
}

EventBudget event_budget() noexcept { return {}; }

}  // namespace uptempo
