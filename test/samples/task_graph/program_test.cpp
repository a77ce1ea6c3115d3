// task_graph as a user runs it.
#include <nlohmann/json.hpp>

#include "test/support/catch.hpp"
#include "tools/support/command.hpp"

using nlohmann::json;
using uptempo::test::CommandResult;
using uptempo::test::run_command;

TEST_CASE(
    "branches that join need a barrier bit for each level of the graph, and no system fence "
    "within") {
  const CommandResult result =
      run_command({TASK_GRAPH, "--device", "virtual", "--rounds", "3", "--json", "-"});
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  const json report = json::parse(result.out);
  CHECK(report["verified"] == true);
  CHECK(report["virtual_gpu"] == true);
  CHECK(report["tasks"].size() == 31);
  CHECK(report["tasks"][24]["name"] == "join 1 into 0");
  const json& ways = report["ways"];
  REQUIRE(ways.size() == 3);
  const auto has = [](const json& way, const char* name, int system, int barriers, int agent) {
    CHECK(way["name"] == name);
    CHECK(way["system_fences"] == system);
    CHECK(way["barrier_bits"] == barriers);
    CHECK(way["agent_fences"] == agent);
    CHECK(way["device_us"] > 0);
  };
  // One creation, two advances, three joins: six levels. Each task but the last one is read by
  // another one, and each level but the first one acquires.
  has(ways[0], "planned", 2, 6, 30 + 5);
  has(ways[1], "barrier everywhere", 2, 31, 2 * 30);
  has(ways[2], "system everywhere", 2 * 31, 31, 0);
}

TEST_CASE("the report explains each packet's fences, the savings, and the source of its times") {
  const CommandResult result = run_command({TASK_GRAPH, "--device", "virtual", "--rounds", "1"});
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == 0);
  CHECK(result.out.starts_with("Device: virtual GPU, "));
  const auto printed = [&](const char* what) { return result.out.find(what) != std::string::npos; };
  CHECK(printed("packet 24, join 1 into 0: barrier bit: it touches what packet 17 touches"));
  CHECK(printed("  against barrier everywhere: 25 barrier bits, 25 agent fences\n"));
  CHECK(printed(
      "  against system everywhere: 60 system fences, 25 barrier bits; for 35 agent fences\n"));
  CHECK(printed("virtual GPU time"));
  CHECK(printed("Verified: every result equals the host's."));
}

TEST_CASE("a wrong command line ends with 2 and one sentence") {
  const CommandResult result = run_command({TASK_GRAPH, "--rounds", "0"});
  CHECK(result.exit_code == 2);
  CHECK(result.out.empty());
  CHECK(result.err.starts_with("task_graph: --rounds: "));
}
