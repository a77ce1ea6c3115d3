// bitonic_sort as a user runs it.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "tools/support/command.hpp"

using nlohmann::json;
using uptempo::test::CommandResult;
using uptempo::test::contains;
using uptempo::test::run_command;
using uptempo::test::RunningCommand;
using uptempo::test::TemporaryDirectory;

namespace {

const std::vector<std::string> kAllSwitches{"--prealloc-signal", "--prealloc-kernarg",
                                            "--avoid-host-sync", "--fence", "--pinned-host"};

std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

CommandResult under_vgpu(const std::vector<std::string>& options,
                         const std::vector<std::string>& arguments) {
  return run_command(std::vector<std::string>{UPTEMPO_VGPU_LAUNCHER} + options +
                     std::vector<std::string>{"--", BITONIC_SORT} + arguments);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<json> trace_of(const std::string& file) {
  std::vector<json> events;
  for (const std::string& line : lines_of(uptempo::test::contents_of(file)))
    events.push_back(json::parse(line));
  return events;
}

bool is_sort(const json& event) {
  return event["type"] == "kernel_dispatch" &&
         event["kernel"].get<std::string>().starts_with("bitonic_sort");
}

}  // namespace

TEST_CASE(
    "the fully optimised sort is 120 dispatches with the fewest fences and signals and one "
    "doorbell") {
  const TemporaryDirectory directory;
  const CommandResult result =
      under_vgpu({"--trace", directory.file("trace")},
                 kAllSwitches + std::vector<std::string>{"--iterations", "1"});
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  const std::vector<json> events = trace_of(directory.file("trace"));

  std::vector<json> dispatches;
  std::copy_if(events.begin(), events.end(), std::back_inserter(dispatches), is_sort);
  REQUIRE(dispatches.size() == 120);
  const json queue = dispatches.front()["queue"];
  const auto first_index = dispatches.front()["index"].get<uint64_t>();
  for (size_t i = 0; i < dispatches.size(); ++i) {
    const json& packet = dispatches[i];
    CAPTURE(i, packet.dump());
    const bool first = i == 0, last = i == 119;
    CHECK(packet["queue"] == queue);
    CHECK(packet["index"] == first_index + i);
    CHECK(packet["barrier"] == true);
    CHECK(packet["acquire"] == (first ? "system" : "agent"));
    CHECK(packet["release"] == (last ? "system" : "agent"));
    CHECK(packet["completion_signal"] == last);
    CHECK(packet["grid"] == json{16384, 1, 1});
    CHECK(packet["workgroup"] == json{256, 1, 1});
    CHECK(packet["kernarg"].get<uint64_t>() % 64 == 0);
    if (!first) CHECK(packet["kernarg"] != dispatches[i - 1]["kernarg"]);
    if (!first) CHECK(packet["start_ns"] >= dispatches[i - 1]["end_ns"]);
  }

  std::vector<json> doorbells;
  std::copy_if(events.begin(), events.end(), std::back_inserter(doorbells), [&](const json& event) {
    return event["type"] == "doorbell" && event["queue"] == queue;
  });
  REQUIRE(doorbells.size() == 1);
  CHECK(doorbells[0]["value"] == first_index + 119);
}

// The processor may be asleep when a queue's doorbell page is attached. A first doorbell that did
// not wake it made one start in three hang.
TEST_CASE("a traced sort ends, however often it is started") {
  const TemporaryDirectory directory;
  for (int i = 0; i < 15; ++i) {
    const CommandResult result = under_vgpu({"--trace", directory.file("trace")},
                                            {"--fence", "--length", "16", "--iterations", "1"});
    CAPTURE(i, result.err);
    CHECK(result.exit_code == 0);
  }
}

TEST_CASE("the baseline fences at system scope and signals on every packet") {
  const TemporaryDirectory directory;
  const CommandResult result = under_vgpu({"--trace", directory.file("trace")},
                                          {"--baseline", "--length", "256", "--iterations", "1"});
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  size_t count = 0;
  for (const json& event : trace_of(directory.file("trace"))) {
    if (!is_sort(event)) continue;
    ++count;
    CHECK(event["barrier"] == true);
    CHECK(event["acquire"] == "system");
    CHECK(event["release"] == "system");
    CHECK(event["completion_signal"] == true);
  }
  CHECK(count == 36);
}

TEST_CASE("the first line names the device, and the table has the ladder's six rungs in order") {
  const CommandResult result = under_vgpu({}, {"--length", "64", "--iterations", "2"});
  REQUIRE(result.exit_code == 0);
  CHECK(result.err.empty());
  CHECK(result.out.starts_with("gfx90a, a virtual GPU: 64 keys ascending, 21 kernels, "));
  const auto lines = lines_of(result.out);
  CHECK(lines[1] == "Median of 2 iterations, virtual GPU time");
  const std::vector<std::string> rungs{
      "baseline",          "+ prealloc-signal", "+ prealloc-kernarg",
      "+ avoid-host-sync", "+ fence",           "+ pinned-host"};
  for (size_t i = 0; i < rungs.size(); ++i) CHECK(lines[5 + i].starts_with(rungs[i] + " "));
  CHECK(lines.back() == "Verified: every result equals std::sort of its input.");
}

TEST_CASE("keys may be sorted the largest first") {
  const CommandResult result =
      under_vgpu({}, {"--descending", "--fence", "--length", "64", "--iterations", "1"});
  CHECK(result.exit_code == 0);
  CHECK(contains(result.out, "64 keys descending"));
  CHECK(contains(result.out, "Switches: fence\n"));
}

TEST_CASE("a wrong command line is refused, before any device is opened") {
  const std::vector<std::vector<std::string>> wrong{
      {"--length", "3"}, {"--length", "33554432"},  {"--length", "x"}, {"--iterations", "0"},
      {"--no-such"},     {"--baseline", "--fence"}, {"extra"}};
  for (const auto& arguments : wrong) {
    CAPTURE(arguments);
    const CommandResult result = run_command(std::vector<std::string>{BITONIC_SORT} + arguments);
    CHECK(result.exit_code != 0);
    CHECK(result.out.empty());
    CHECK_FALSE(result.err.empty());
    CHECK_FALSE(contains(result.err, "hsa_init"));
  }
}

TEST_CASE("wrong results end with 1 and name the rung") {
  const CommandResult result =
      under_vgpu({"--null-kernels"}, {"--baseline", "--length", "64", "--iterations", "2"});
  CHECK(result.exit_code == 1);
  CHECK(result.out.find("WRONG RESULTS: baseline (2 of 2 iterations).") != std::string::npos);
}

TEST_CASE("a read index that passes packets early changes no result") {
  for (const std::vector<std::string>& rung : {kAllSwitches, std::vector<std::string>{}}) {
    const CommandResult result =
        under_vgpu({"--early-read-index"},
                   rung + std::vector<std::string>{"--length", "4096", "--iterations", "5"});
    CAPTURE(result.err, result.out);
    CHECK(result.exit_code == 0);
  }
}

TEST_CASE("the sort runs on every device that the virtual GPU can model") {
  for (const std::string device : {"gfx90a", "gfx908", "gfx906", "gfx900"}) {
    const CommandResult result =
        under_vgpu({"--device", device}, {"--length", "1024", "--iterations", "2"});
    CAPTURE(device, result.err);
    CHECK(result.exit_code == 0);
    CHECK(result.out.starts_with(device + ", "));
  }
}

TEST_CASE("two simultaneous processes do not disturb each other") {
  const std::vector<std::string> command{
      UPTEMPO_VGPU_LAUNCHER, "--", BITONIC_SORT, "--length", "8192", "--iterations", "5"};
  RunningCommand one(command), two(command);
  for (RunningCommand* running : {&one, &two}) {
    const CommandResult result = running->finish();
    CAPTURE(result.err);
    CHECK(result.exit_code == 0);
    CHECK(contains(result.out, "\nVerified: "));
  }
}
