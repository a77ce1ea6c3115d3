// The order of CPU agents by distance, as a function of what HSA reports.
#include "engine/memory/nearest_host.hpp"

#include <string>
#include <vector>

#include "test/support/catch.hpp"

using namespace uptempo;

namespace {

HostDistance host(uint32_t node, std::optional<uint32_t> distance) {
  return {.agent = {node + 100}, .node = node, .distance = distance, .link = "PCIe"};
}

std::vector<uint32_t> order(std::vector<HostDistance> hosts, std::optional<uint32_t> named = {}) {
  detail::sort_by_distance(hosts, named);
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
  CHECK(order({host(0, 20), host(1, 0)}) == Nodes{1, 0});  // the GPU's own node
}

TEST_CASE("a CPU agent without a link is last, whatever ROCr names", "[memory]") {
  CHECK(order({host(0, {}), host(1, 52)}) == Nodes{1, 0});
  CHECK(order({host(0, {}), host(1, 52)}, 0) == Nodes{1, 0});
  CHECK(order({host(0, {}), host(1, UINT32_MAX)}, 0) == Nodes{1, 0});
}

TEST_CASE("ROCr's answer decides among equally distant CPU agents only", "[memory]") {
  CHECK(order({host(0, 20), host(1, 20)}) == Nodes{0, 1});
  CHECK(order({host(0, 20), host(1, 20)}, 1) == Nodes{1, 0});
  CHECK(order({host(0, 21), host(1, 20)}, 0) == Nodes{1, 0});
}

TEST_CASE("a CPU agent without memory comes after every other one", "[memory]") {
  CHECK(order({without_memory(host(0, 20)), host(1, 52)}) == Nodes{1, 0});
  CHECK(order({without_memory(host(0, 0)), host(1, {})}, 0) == Nodes{1, 0});
  CHECK(order({without_memory(host(0, 52)), without_memory(host(1, 20))}) == Nodes{1, 0});
}

TEST_CASE("the reason names every CPU agent with its distance", "[memory]") {
  CHECK(detail::reason_for({host(0, 20)}, 0) == "node 0, the only CPU agent");
  CHECK(detail::reason_for({host(1, 20), host(0, 52)}, {}) ==
        "node 1, the nearest of 2 CPU agents: NUMA distance 20 (PCIe); node 0: 52 (PCIe)");
  CHECK(detail::reason_for({host(1, 20), host(0, 52)}, 1).ends_with("; ROCr names the same"));
  HostDistance without_link = host(0, {});
  without_link.link = "no link";
  CHECK(detail::reason_for({host(1, 20), without_link}, 0)
            .ends_with("node 0: no link; ROCr names node 0, which is farther"));
}

TEST_CASE("the reason says which CPU agents have no memory or no such pool", "[memory]") {
  CHECK(detail::reason_for({host(1, 52), without_memory(host(0, 20))}, 0) ==
        "node 1, the nearest of 2 CPU agents: NUMA distance 52 (PCIe); node 0: 20 (PCIe), no "
        "memory; ROCr names node 0");
  CHECK(detail::reason_for({without_memory(host(0, 20))}, {}) ==
        "node 0, the only CPU agent, no memory");
  CHECK(detail::reason_for({host(1, 20), host(0, 52)}, 1, 1) ==
        "node 0, the nearest of 2 CPU agents with such a pool: NUMA distance 52 (PCIe); node 1: 20 "
        "(PCIe); ROCr names node 1");
}
