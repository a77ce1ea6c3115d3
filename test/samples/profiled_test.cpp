// Each sample under each profiler double: the tool sees each packet of the program exactly once.
// The oracle is the virtual GPU's trace of the packets that it executed.
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "test/support/catch.hpp"
#include "tools/support/command.hpp"

namespace {

using uptempo::test::run_command;
using uptempo::test::TemporaryDirectory;

// Address of the arguments, and the grid.
using Dispatch = std::tuple<uint64_t, uint32_t, uint32_t, uint32_t>;
struct Packets {
  uint64_t dispatches = 0, others = 0;
  friend bool operator==(const Packets&, const Packets&) = default;
};
struct Execution {
  std::multiset<Dispatch> dispatches;
  std::map<int, Packets> queues;  // by number of the virtual GPU; those with packets
  Packets all;
  std::vector<std::string> problems;
};

// Packets that the program published. ROCr's own kernels have no symbol, and ROCr has queues for
// them and for its PM4 commands (vendor packets), which no tool sees.
Execution of_device(const std::string& trace) {
  Execution seen;
  std::set<int> of_rocr;
  std::ifstream file(trace);
  for (std::string text; std::getline(file, text);) {
    const auto line = nlohmann::json::parse(text);
    const std::string type = line.at("type");
    if (type == "doorbell" || type == "sdma") continue;
    const int queue = line.at("queue");
    if (type == "vendor") {
      of_rocr.insert(queue);
      continue;
    }
    if (type != "kernel_dispatch") {
      ++seen.queues[queue].others;
      continue;
    }
    if (const std::string kernel = line.at("kernel"); kernel.starts_with("0x")) {
      of_rocr.insert(queue);
      continue;
    }
    ++seen.queues[queue].dispatches;
    const auto& grid = line.at("grid");
    seen.dispatches.insert(
        {line.at("kernarg").get<uint64_t>(), grid.at(0), grid.at(1), grid.at(2)});
  }
  for (const int queue : of_rocr) {
    CHECK(seen.queues[queue].dispatches == 0);
    seen.queues.erase(queue);
  }
  for (const auto& [number, packets] : seen.queues) {
    seen.all.dispatches += packets.dispatches;
    seen.all.others += packets.others;
  }
  return seen;
}

Execution of_tool(const std::string& report, const std::string& tool) {
  Execution seen;
  std::ifstream file(report);
  REQUIRE(file);
  for (std::string text; std::getline(file, text);) {
    std::istringstream line(text);
    std::string what;
    line >> what;
    if (what == "tool") {
      std::string name;
      line >> name;
      CHECK(name == tool);
    } else if (what == "queue") {
      int number = 0;
      Packets packets;
      line >> number >> packets.dispatches >> packets.others;
      if (packets == Packets{}) continue;
      seen.queues[number].dispatches += packets.dispatches;
      seen.queues[number].others += packets.others;
      seen.all.dispatches += packets.dispatches;
      seen.all.others += packets.others;
    } else if (what == "dispatch") {
      Dispatch dispatch;
      line >> std::hex >> std::get<0>(dispatch) >> std::dec >> std::get<1>(dispatch) >>
          std::get<2>(dispatch) >> std::get<3>(dispatch);
      seen.dispatches.insert(dispatch);
    } else {
      seen.problems.push_back(text);
    }
    REQUIRE_FALSE(line.fail());
  }
  return seen;
}

struct Sample {
  std::string program;
  std::vector<std::string> arguments;
  uint64_t dispatches;  // by the program's own description of its work; 0: depends on timing
};

}  // namespace

TEST_CASE("a profiler sees each packet of every sample exactly once", "[profiled]") {
  const Sample sample = GENERATE(
      // one batch of 120
      Sample{FIRST_BATCH, {}, 120},
      // 4 requests of 3 batches of one kernel
      Sample{EVENT_LOOP, {}, 4 * 3},
      // 1000 replays of 2 dispatches
      Sample{REPLAY, {}, 1000 * 2},
      // 6 ways to sort, with 120 dispatches each
      Sample{BITONIC_SORT, {"--iterations", "1"}, 6 * 120},
      // 8 batches of 4 kernels, twice
      Sample{STREAMS, {}, 2 * 8 * 4}, Sample{MANY_STREAMS, {}, 0},
      Sample{LAUNCH_LOOP, {"--steps", "20"}, 0}, Sample{TASK_GRAPH, {}, 0});
  const auto [tool, library] =
      GENERATE(std::pair<std::string, std::string>{"shadow", SHADOW},
               std::pair<std::string, std::string>{"intercept", INTERCEPT});
  CAPTURE(sample.program, tool);
  const TemporaryDirectory directory;
  const std::string trace = directory.file("trace"), report = directory.file("report");
  std::vector<std::string> command{UPTEMPO_VGPU_LAUNCHER, "--trace", trace, "--", sample.program};
  command.insert(command.end(), sample.arguments.begin(), sample.arguments.end());
  const auto result = run_command(
      command, {.environment = {"HSA_TOOLS_LIB=" + library, "UPTEMPO_PROFILER_REPORT=" + report}});
  CAPTURE(result.out, result.err);
  REQUIRE(result.exit_code == 0);

  const Execution there = of_device(trace);
  const Execution seen = of_tool(report, tool);
  CHECK(seen.problems == std::vector<std::string>{});
  CHECK(there.all.dispatches != 0);
  if (sample.dispatches != 0) CHECK(there.all.dispatches == sample.dispatches);
  CHECK(seen.all == there.all);
  CHECK(seen.dispatches == there.dispatches);
  if (tool == "shadow") CHECK(seen.queues == there.queues);
}
