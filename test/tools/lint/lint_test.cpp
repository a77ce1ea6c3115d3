// Programs under libuptempo-lint.so, as a user starts them. The oracle of each report is what the
// program counts of itself, or the virtual GPU's trace.
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/text.hpp"
#include "tools/support/command.hpp"

namespace {

using nlohmann::json;
using uptempo::test::CommandResult;
using uptempo::test::contains;
using uptempo::test::contents_of;
using uptempo::test::run_command;
using uptempo::test::TemporaryDirectory;

CommandResult run(const std::string& what, const std::string& options,
                  const std::vector<std::string>& launcher_options = {}) {
  std::vector<std::string> command{UPTEMPO_VGPU_LAUNCHER};
  command.insert(command.end(), launcher_options.begin(), launcher_options.end());
  command.insert(command.end(), {"--", PROGRAM, what});
  CommandResult result = run_command(
      command, {.environment = {std::string("HSA_TOOLS_LIB=") + LINT, "UPTEMPO_LINT=" + options}});
  INFO(result.out << result.err);
  REQUIRE(result.exit_code == 0);
  return result;
}

struct Linted {
  json program;  // what the program counted
  std::vector<json> lines;

  std::vector<json> of(const std::string& type) const {
    std::vector<json> found;
    for (const json& line : lines)
      if (line.at("type") == type) found.push_back(line);
    return found;
  }
  uint64_t total(const std::string& count) const {
    uint64_t sum = 0;
    for (const json& pair : of("pair")) sum += pair.at(count).get<uint64_t>();
    return sum;
  }
  uint64_t found(const std::string& finding) const {
    uint64_t sum = 0;
    for (const json& line : of("finding"))
      if (line.at("finding") == finding) sum += line.at("count").get<uint64_t>();
    return sum;
  }
};

Linted linted(const std::string& what, const std::string& options = "",
              const std::vector<std::string>& launcher_options = {}) {
  const TemporaryDirectory directory;
  const std::string file = directory.file("report");
  const CommandResult result = run(what, "format=json,file=" + file + options, launcher_options);
  CHECK(!contains(result.err, "uptempo-lint"));
  Linted made{.program = json::parse(result.out), .lines = {}};
  std::istringstream text(contents_of(file));
  for (std::string line; std::getline(text, line);) made.lines.push_back(json::parse(line));
  return made;
}

}  // namespace

TEST_CASE("each defect is counted as often as the program made it") {
  const Linted there = linted("defects");
  CAPTURE(there.program.dump());
  for (const char* const count :
       {"packets", "dispatches", "doorbells", "system_acquires", "system_releases", "barrier_bits",
        "signals", "wide_acquires", "wide_releases", "idle_barriers", "unused_signals",
        "host_waits", "lone_doorbells", "unaligned_kernargs"}) {
    CAPTURE(count);
    CHECK(there.program.value(count, uint64_t{0}) != 0);
    CHECK(there.total(count) == there.program.value(count, uint64_t{0}));
    if (std::string(count).find('_') == std::string::npos) continue;
    const std::string finding = std::string(count).substr(0, std::string(count).size() - 1);
    if (finding.starts_with("system") || finding == "barrier_bit") continue;
    CHECK(there.found(finding) == there.program.at(count).get<uint64_t>());
  }
  // The pairs: 19 of the 20 dispatches with wide fences follow another one.
  for (const json& line : there.of("finding")) {
    if (line.at("finding") == "wide_acquire") {
      CHECK(line.at("before") == "empty");
      CHECK(line.at("packet") == "empty");
    }
    if (line.at("finding") == "idle_barrier") CHECK(line.at("before") == "<barrier-AND>");
    // Each pair's first doorbell is sampled, with the program as its place.
    REQUIRE(!line.at("sites").empty());
    CHECK(contains(line.at("sites").at(0).at("place").get<std::string>(), PROGRAM));
  }
  for (const json& queue : there.of("queue"))
    if (!queue.at("of_rocr").get<bool>()) CHECK(queue.at("not_seen") == 0);
}

TEST_CASE("a program without a defect has no finding, however it ends") {
  const std::string what = GENERATE("clean", "open");
  const Linted there = linted(what);
  CHECK(there.of("finding").empty());
  CHECK(there.total("packets") == 10);
  CHECK(there.total("system_acquires") == 1);
  CHECK(there.total("system_releases") == 1);

  const CommandResult text = run(what, "");
  CHECK(contains(text.err, "\nNo finding.\n"));
}

TEST_CASE("the HSA sessions of a process are reported once each, or together") {
  const Linted there = linted("twice");
  const std::vector<json> runs = there.of("run");
  // ROCr 6.1 unloads no tool in hsa_shut_down(); 5.2 and 6.4 do.
  REQUIRE((runs.size() == 1 || runs.size() == 2));
  for (size_t i = 0; i < runs.size(); ++i) CHECK(runs[i].at("session") == i + 1);
  CHECK(runs.back().at("virtual_gpu") == true);
  CHECK(there.of("finding").empty());
  CHECK(there.total("packets") == 20);
}

TEST_CASE("a queue whose doorbell is rung without a call is named") {
  const Linted there = linted("direct");
  CHECK(there.total("packets") == 0);
  const std::vector<json> queues = there.of("queue");
  const auto queue = std::ranges::find_if(
      queues, [](const json& line) { return !line.at("of_rocr").get<bool>(); });
  REQUIRE(queue != queues.end());
  CHECK(queue->at("not_seen") == there.program.at("packets"));
  CHECK(contains(queue->at("reason").get<std::string>(), "no call of hsa_signal_store rang"));

  std::string text = run("direct", "").err;
  std::ranges::replace(text, '\n', ' ');
  CHECK(contains(text, "3 packets not seen: no call of hsa_signal_store rang their doorbell"));
}

TEST_CASE("queues of ROCr itself are named with their packets") {
  const TemporaryDirectory directory;
  const std::string trace = directory.file("trace");
  const Linted there = linted("clean", "", {"--trace", trace});
  // The program's own queue has the 10 dispatches of its kernel.
  std::map<int, uint64_t> packets;
  int own = -1;
  std::ifstream lines(trace);
  for (std::string text; std::getline(lines, text);) {
    const json line = json::parse(text);
    const std::string type = line.at("type");
    if (type == "doorbell" || type == "sdma") continue;
    ++packets[line.at("queue").get<int>()];
    if (type == "kernel_dispatch" && line.at("kernel") == "empty.kd") own = line.at("queue");
  }
  REQUIRE(own != -1);
  uint64_t of_rocr = 0;
  for (const auto& [queue, count] : packets)
    if (queue != own) of_rocr += count;
  uint64_t reported = 0;
  for (const json& queue : there.of("queue"))
    if (queue.at("of_rocr").get<bool>()) reported += queue.at("not_seen").get<uint64_t>();
  CHECK(of_rocr != 0);
  CHECK(reported == of_rocr);
}

TEST_CASE("no packet of threads that share a queue is counted twice or forgotten") {
  const std::string what = GENERATE("threads", "race");
  const Linted there = linted(what);
  uint64_t seen = 0, not_seen = 0, doorbells = 0;
  for (const json& queue : there.of("queue")) {
    if (queue.at("of_rocr").get<bool>()) continue;
    seen += queue.at("packets").get<uint64_t>();
    not_seen += queue.at("not_seen").get<uint64_t>();
    doorbells += queue.at("doorbells").get<uint64_t>();
  }
  CHECK(seen + not_seen == there.program.at("packets").get<uint64_t>());
  // The device takes packets before their doorbell only if it runs.
  if (what == "threads") CHECK(not_seen == 0);
  CHECK(doorbells == there.program.at("doorbells").get<uint64_t>());
  CHECK(there.total("packets") == seen);
}

TEST_CASE("costs are the user's figures where there are any") {
  const Linted there =
      linted("defects", ",cost.acquire=1000,cost.signal=2.5,cost.kernarg=0,sites=off");
  for (const json& line : there.of("finding")) {
    const std::string finding = line.at("finding");
    CAPTURE(line.dump());
    const double count = line.at("count").get<double>();
    CHECK(line.at("sites").empty());
    if (finding == "wide_acquire") CHECK(line.at("estimate_ns") == 1000 * count);
    if (finding == "unused_signal") CHECK(line.at("estimate_ns") == 2.5 * count);
    if (finding == "unaligned_kernarg") CHECK(line.at("estimate_ns") == 0);
    // Filled from the L2's size and the memory's rate.
    if (finding == "wide_release") {
      CHECK(line.at("basis") == "bound");
      CHECK(line.at("estimate_ns").get<double>() > 0);
    }
    // Nothing is known without samples or a figure.
    if (finding == "idle_barrier" || finding == "lone_doorbell") {
      CHECK(line.at("estimate_ns").is_null());
      CHECK(line.at("basis") == "none");
    }
  }
}

TEST_CASE("a wrong setting is an error by name, and the program runs without the lint") {
  const auto [options, message] = GENERATE(table<std::string, std::string>({
      {"format=xml", "UPTEMPO_LINT: format=xml is neither text nor json"},
      {"sites=21", "UPTEMPO_LINT: sites=21 is not a number from 0 to 20"},
      {"colour=red", "UPTEMPO_LINT: 'colour' is not an option; the options are format, file"},
      {"file=/nowhere/report", "file=/nowhere/report cannot be written: No such file"},
      {"file=", "UPTEMPO_LINT: file= lacks a name"},
  }));
  const CommandResult result = run("clean", options);
  CAPTURE(result.err);
  CHECK(contains(result.err, message));
  CHECK(contains(result.err, "; the program runs without the lint\n"));
  CHECK(!contains(result.err, "finding"));
  CHECK(contains(result.out, "\"packets\":10"));
}

TEST_CASE("a report that is lost is an error, and the program's result stays") {
  const CommandResult result = run("clean", "file=/dev/full");
  CHECK(contains(result.err, "uptempo-lint: the report cannot be written to /dev/full: No space"));
  CHECK(contains(result.out, "\"packets\":10"));
}

TEST_CASE("runs that name one file append their reports to it, also at the same time") {
  const TemporaryDirectory directory;
  const std::string file = directory.file("report"), options = "format=json,file=" + file;
  run("clean", options);
  const std::vector<std::string> environment{std::string("HSA_TOOLS_LIB=") + LINT,
                                             "UPTEMPO_LINT=" + options};
  // Each shell runs two processes with the file one after the other.
  const std::vector<std::string> two{UPTEMPO_VGPU_LAUNCHER,          "--",   "sh", "-c",
                                     "\"$0\" clean && \"$0\" clean", PROGRAM};
  uptempo::test::RunningCommand one(two, {.environment = environment}),
      other(two, {.environment = environment});
  CHECK(one.finish().exit_code == 0);
  CHECK(other.finish().exit_code == 0);
  size_t runs = 0, packets = 0;
  std::istringstream text(contents_of(file));
  for (std::string line; std::getline(text, line);) {
    const json report = json::parse(line);
    if (report.at("type") == "run") ++runs;
    if (report.at("type") == "pair") packets += report.at("packets").get<size_t>();
  }
  CHECK(runs == 5);
  CHECK(packets == 5 * 10);
}

TEST_CASE("a report into a pipe without a reader is an error, and the program runs") {
  const TemporaryDirectory directory;
  const std::string pipe = directory.file("pipe");
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const CommandResult result = run("clean", "file=" + pipe);
  CHECK(contains(result.err, "uptempo-lint: the report cannot be written to " + pipe +
                                 ": No such device or address: no process reads it"));
  CHECK(contains(result.out, "\"packets\":10"));
}

TEST_CASE("the text report fits 80 columns") {
  const CommandResult result = run("defects", "top=3");
  std::istringstream text(result.err);
  size_t longest = 0;
  for (std::string line; std::getline(text, line);) longest = std::max(longest, line.size());
  CHECK(longest <= 80);
  CHECK(longest > 40);
  CHECK(contains(result.err, "more; see the option top"));
  CHECK(contains(result.err, "(virtual GPU)"));
  CHECK(contains(result.err, "Costs are estimates."));
}
