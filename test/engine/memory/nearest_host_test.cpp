// The order of CPU agents by distance, as a function of what HSA reports.
#include <uptempo/memory/pool.hpp>

#include <string>
#include <vector>

#include "test/support/catch.hpp"

using namespace uptempo;
using detail::HostDistance;

namespace {

HostDistance host(uint32_t node, std::optional<uint32_t> distance) {
  return {.agent = {node + 100}, .node = node, .distance = distance, .link = "PCIe"};
}

std::vector<uint32_t> order(std::vector<HostDistance> hosts) {
  detail::sort_by_distance(hosts);
  std::vector<uint32_t> nodes;
  for (const HostDistance& each : hosts) nodes.push_back(each.node);
  return nodes;
}

using Nodes = std::vector<uint32_t>;

HostDistance without_memory(HostDistance host) {
  host.has_memory = false;
  return host;
}

}  // namespace

TEST_CASE("the CPU agent with the shortest distance is first", "[memory]") {
  CHECK(order({host(0, 52), host(1, 20)}) == Nodes{1, 0});
  CHECK(order({host(0, 20), host(1, 52)}) == Nodes{0, 1});
  CHECK(order({host(0, 52), host(1, 52), host(2, 20), host(3, 36)}) == Nodes{2, 3, 0, 1});
  CHECK(order({host(0, 20), host(1, 0)}) == Nodes{1, 0});   // the GPU's own node
  CHECK(order({host(1, 20), host(0, 20)}) == Nodes{1, 0});  // HSA's order
}

TEST_CASE("a CPU agent without a link is last", "[memory]") {
  CHECK(order({host(0, {}), host(1, 52)}) == Nodes{1, 0});
  CHECK(order({host(0, {}), host(1, UINT32_MAX)}) == Nodes{1, 0});
}

TEST_CASE("a CPU agent without memory comes after every other one", "[memory]") {
  CHECK(order({without_memory(host(0, 20)), host(1, 52)}) == Nodes{1, 0});
  CHECK(order({without_memory(host(0, 0)), host(1, {})}) == Nodes{1, 0});
  CHECK(order({without_memory(host(0, 52)), without_memory(host(1, 20))}) == Nodes{1, 0});
}

TEST_CASE("the placement names every CPU agent with its distance", "[memory]") {
  CHECK(detail::host_placement({host(0, 20)}, 0) == "node 0, the only CPU agent");
  CHECK(detail::host_placement({host(1, 20), host(0, 52)}, 0) ==
        "node 1, the nearest of 2 CPU agents: NUMA distance 20 (PCIe); node 0: 52 (PCIe)");
  HostDistance without_link = host(0, {});
  without_link.link = "no link";
  CHECK(detail::host_placement({host(1, 20), without_link}, 0).ends_with("; node 0: no link"));
}

TEST_CASE("the placement says which CPU agents have no memory or no such pool", "[memory]") {
  CHECK(detail::host_placement({host(1, 52), without_memory(host(0, 20))}, 0) ==
        "node 1, the nearest of 2 CPU agents: NUMA distance 52 (PCIe); node 0: 20 (PCIe), no "
        "memory");
  CHECK(detail::host_placement({without_memory(host(0, 20))}, 0) ==
        "node 0, the only CPU agent, no memory");
  CHECK(detail::host_placement({host(1, 20), host(0, 52)}, 1) ==
        "node 0, the nearest of 2 CPU agents with such a pool: NUMA distance 52 (PCIe); node 1: 20 "
        "(PCIe)");
}
