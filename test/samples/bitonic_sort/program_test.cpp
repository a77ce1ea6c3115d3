// bitonic_sort as a user runs it. The programs start themselves under uptempo-vgpu; tests that need
// its options start it explicitly.
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

CommandResult sort(const std::vector<std::string>& arguments) {
  return run_command(std::vector<std::string>{BITONIC_SORT, "--device", "virtual"} + arguments);
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
                 kAllSwitches + std::vector<std::string>{"--iterations", "1", "--json", "-"});
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
  const json counts = json::parse(result.out)["rungs"][0]["counts"];
  CHECK(counts["doorbells"] == 1);
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

TEST_CASE("the first line names the device and labels a virtual GPU's times; stderr stays empty") {
  const CommandResult result = sort({"--length", "64", "--iterations", "2"});
  REQUIRE(result.exit_code == 0);
  CHECK(result.err.empty());
  const auto lines = lines_of(result.out);
  CHECK(lines.front() ==
        "Device: virtual GPU, AMD Instinct MI210 (gfx90a); times are the virtual GPU's");
  CHECK(lines.back() == "Verified: every result equals std::sort of its input.");
  for (const std::string& line : lines) CHECK(line.size() <= 80);
}

TEST_CASE("--json - prints JSON alone, with the ladder's six rungs in order") {
  const CommandResult result = sort({"--length", "512", "--iterations", "3", "--json", "-"});
  REQUIRE(result.exit_code == 0);
  CHECK(result.err.empty());
  const json out = json::parse(result.out);
  CHECK(out["device"] == "AMD Instinct MI210 (gfx90a)");
  CHECK(out["virtual_gpu"] == true);
  CHECK(out["length"] == 512);
  CHECK(out["kernels"] == 45);
  CHECK(out["verified"] == true);
  const auto& choices = out["choices"];
  CHECK(choices.at(0) == "runtime");
  CHECK(std::ranges::count(choices, "  tools: no tool interposes") == 1);
  CHECK(std::ranges::count(choices, "  HSA queue: used by this Queue alone") == 1);
  std::vector<std::string> names;
  double sum = out["rungs"][0]["us_per_iteration"];
  for (const json& rung : out["rungs"]) {
    names.push_back(rung["name"]);
    CHECK(rung["us_per_iteration"].get<double>() > 0);
    CHECK(rung["us_low"] <= rung["us_per_iteration"]);
    CHECK(rung["us_high"] >= rung["us_per_iteration"]);
    sum += rung["delta_us"].get<double>();
    CHECK(sum == uptempo::test::Approx(rung["us_per_iteration"].get<double>()));
  }
  CHECK(names == std::vector<std::string>{"baseline", "prealloc-signal", "prealloc-kernarg",
                                          "avoid-host-sync", "fence", "pinned-host"});
}

TEST_CASE("JSON and chart are written to files in addition to the table") {
  const TemporaryDirectory directory;
  const CommandResult result =
      sort({"--length", "64", "--iterations", "1", "--json", directory.file("ladder.json"), "--svg",
            directory.file("ladder.svg")});
  REQUIRE(result.exit_code == 0);
  CHECK(result.out.find("baseline") != std::string::npos);
  CHECK(json::parse(uptempo::test::contents_of(directory.file("ladder.json")))["rungs"].size() ==
        6);
  const std::string chart = uptempo::test::contents_of(directory.file("ladder.svg"));
  CHECK(chart.starts_with("<svg"));
  CHECK(chart.find("virtual GPU time") != std::string::npos);
}

TEST_CASE("a wrong command line ends with 2 and one sentence, before any device is opened") {
  const std::vector<std::vector<std::string>> wrong{
      {"--length", "3"},         {"--length", "0"},
      {"--length", "1"},         {"--length", "33554432"},
      {"--length", "-4"},        {"--length", "x"},
      {"--iterations", "0"},     {"--device", "moon"},
      {"--ladder", "--fence"},   {"--no-such"},
      {"--baseline", "--fence"}, {"extra"}};
  for (const auto& arguments : wrong) {
    CAPTURE(arguments);
    const CommandResult result = run_command(std::vector<std::string>{BITONIC_SORT} + arguments);
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    CHECK(lines_of(result.err).size() == 1);
    CHECK(result.err.starts_with("bitonic_sort: "));
  }
}

TEST_CASE("a GPU is selected by its number; another one ends with 77 and the list of GPUs") {
  CHECK(under_vgpu({}, {"--device", "0"}).exit_code == 0);
  const CommandResult other = under_vgpu({}, {"--device", "7"});
  CHECK(other.exit_code == 77);
  CHECK(contains(other.err, "GPU '7'"));
  CHECK(contains(other.err, "GPU 0 (gfx90a, GPU-"));
}

TEST_CASE("an unavailable device ends with 77 and one sentence") {
  const CommandResult result = under_vgpu({}, {"--device", "hardware"});
  CHECK(result.exit_code == 77);
  CHECK(result.out.empty());
  CHECK(lines_of(result.err).size() == 1);
}

TEST_CASE("wrong results end with 1 and name the rung") {
  const CommandResult result =
      under_vgpu({"--null-kernels"}, {"--baseline", "--length", "64", "--iterations", "2"});
  CHECK(result.exit_code == 1);
  CHECK(result.out.find("WRONG RESULTS: baseline (2 of 2 iterations).") != std::string::npos);
}

TEST_CASE("a file that cannot be written is refused before the sort, by its name") {
  const CommandResult result =
      sort({"--length", "2", "--iterations", "1", "--json", "/no/such/folder/x.json"});
  CHECK(result.exit_code == 2);
  CHECK(result.out.empty());
  CHECK(result.err.find("/no/such/folder/x.json") != std::string::npos);
}

TEST_CASE("a read index that passes packets early changes no result") {
  for (const std::vector<std::string>& rung :
       {kAllSwitches, std::vector<std::string>{"--ladder"}}) {
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
    CHECK(result.out.find("(" + device + ")") != std::string::npos);
  }
}

TEST_CASE("two simultaneous processes do not disturb each other") {
  const auto command = [](const char* seed) {
    return std::vector<std::string>{BITONIC_SORT, "--device",     "virtual", "--length",
                                    "8192",       "--iterations", "5",       "--json",
                                    "-",          "--seed",       seed};
  };
  RunningCommand one(command("1")), two(command("2"));
  for (RunningCommand* running : {&one, &two}) {
    const CommandResult result = running->finish();
    CAPTURE(result.err);
    CHECK(result.exit_code == 0);
    CHECK(json::parse(result.out)["verified"] == true);
  }
}

TEST_CASE("--device selects each partition of a card, and refuses the UUID that they share") {
  const TemporaryDirectory directory;
  const std::string file = directory.file("trace");
  const std::vector<std::string> machine{"--gpus", "3", "--partitions", "same-id", "--trace", file};
  const auto run = [&](const std::string& device) {
    return under_vgpu(machine, {"--length", "64", "--iterations", "1", "--device", device});
  };
  for (uint32_t partition = 0; partition < 3; ++partition) {
    const std::string number = std::to_string(partition);
    for (const std::string& device : {number, "0000:03:00." + number}) {
      CAPTURE(device);
      const CommandResult result = run(device);
      CAPTURE(result.err);
      REQUIRE(result.exit_code == 0);
      std::vector<json> sorts = trace_of(file);
      std::erase_if(sorts, [](const json& event) { return !is_sort(event); });
      REQUIRE(!sorts.empty());
      for (const json& event : sorts) CHECK(event["gpu"] == partition);
    }
  }
  // The number of tools/vgpu/interpose/topology.cpp.
  const CommandResult refused = run("GPU-757074656d706f0a");
  CHECK(refused.exit_code == 77);
  for (const char* address : {"0000:03:00.0", "0000:03:00.1", "0000:03:00.2"})
    CHECK(contains(refused.err, address));
}
