// `aql_dump trace --perfetto`: traces of programs and written ones.
// test/tools/support/trace_test.cpp has the file's format.
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/text.hpp"
#include "test/tools/support/trace_rules.hpp"
#include "tools/support/command.hpp"

using namespace uptempo::test;
using json = nlohmann::ordered_json;

namespace {

// How often each packet, copy and doorbell occurs: its category, begin and duration in nanoseconds.
using Occurrences = std::map<std::tuple<std::string, uint64_t, uint64_t>, size_t>;

Occurrences events_of(const json& document) {
  Occurrences found;
  const auto ns = [](const json& us) {
    return static_cast<uint64_t>(std::llround(us.get<double>() * 1000));
  };
  for (const json& event : document["traceEvents"]) {
    if (event["ph"] == "X") ++found[{"slice", ns(event["ts"]), ns(event["dur"])}];
    if (event["ph"] == "i" && event["cat"] == "doorbell") ++found[{"doorbell", ns(event["ts"]), 0}];
  }
  return found;
}

Occurrences events_of_lines(const std::string& lines) {
  std::vector<json> all;
  uint64_t origin = UINT64_MAX;
  std::istringstream in(lines);
  for (std::string line; std::getline(in, line);) {
    all.push_back(json::parse(line));
    origin = std::min(origin, all.back().value("ns", all.back().value("start_ns", origin)));
  }
  Occurrences found;
  for (const json& line : all) {
    if (line["type"] == "doorbell") {
      ++found[{"doorbell", line["ns"].get<uint64_t>() - origin, 0}];
    } else {
      const auto begin = line["start_ns"].get<uint64_t>();
      ++found[{"slice", begin - origin, line["end_ns"].get<uint64_t>() - begin}];
    }
  }
  return found;
}

// Converts the trace and returns the file, which breaks no rule and has all events.
json converted(const TemporaryDirectory& directory, const std::string& trace,
               const std::vector<std::string>& options = {}) {
  const std::string out = directory.file("perfetto.json");
  std::vector<std::string> words{AQL_DUMP, "trace", trace, "--perfetto", out};
  words.insert(words.end(), options.begin(), options.end());
  const CommandResult result = run_command(words);
  CAPTURE(result.err);
  CHECK(result.exit_code == 0);
  json document = json::parse(contents_of(out));
  const std::vector<std::string> broken = broken_trace_rules(document);
  CAPTURE(broken);
  CHECK(broken.empty());
  if (options.empty()) CHECK(events_of(document) == events_of_lines(contents_of(trace)));
  return document;
}

json traced(const std::vector<std::string>& launcher_options,
            const std::vector<std::string>& program) {
  const TemporaryDirectory directory;
  const std::string trace = directory.file("trace.jsonl");
  std::vector<std::string> words{VGPU, "--trace", trace};
  words.insert(words.end(), launcher_options.begin(), launcher_options.end());
  words.push_back("--");
  words.insert(words.end(), program.begin(), program.end());
  const CommandResult result = run_command(words);
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  return converted(directory, trace);
}

json of_lines(const std::string& lines) {
  const TemporaryDirectory directory;
  const std::string trace = directory.file("trace.jsonl");
  std::ofstream(trace) << lines;
  return converted(directory, trace);
}

size_t count_of(const json& document, const std::string& phase, const std::string& category) {
  size_t found = 0;
  for (const json& event : document["traceEvents"])
    found += event["ph"] == phase && event.value("cat", "") == category;
  return found;
}

std::set<std::string> processes_of(const json& document) {
  std::set<std::string> names;
  for (const json& event : document["traceEvents"])
    if (event["name"] == "process_name") names.insert(event["args"]["name"]);
  return names;
}

std::string packet(uint32_t queue, uint64_t index, const std::string& type, bool barrier,
                   uint64_t begin, uint64_t end) {
  return json{{"queue", queue},
              {"index", index},
              {"type", type},
              {"barrier", barrier},
              {"acquire", "system"},
              {"release", "agent"},
              {"completion_signal", false},
              {"start_ns", begin},
              {"end_ns", end}}
             .dump() +
         '\n';
}

std::string error_of(const std::string& lines) {
  const CommandResult result =
      run_command({AQL_DUMP, "trace", "-", "--perfetto", "-"}, {.input = lines});
  CHECK(result.exit_code == 1);
  CHECK(result.out.empty());
  return result.err;
}

}  // namespace

TEST_CASE("a sort's trace has a slice for each dispatch, and each depends on the one before it") {
  const json document =
      traced({}, {BITONIC_SORT, "--baseline", "--length", "256", "--iterations", "1"});
  CHECK(count_of(document, "X", "dispatch") >= 36);  // the passes of one sort
  CHECK(count_of(document, "s", "dependency") >= 35);
  for (const json& event : document["traceEvents"])
    if (event["ph"] == "X" && event["cat"] == "dispatch") CHECK(event["args"].contains("grid"));
}

TEST_CASE("streams are processes, and copies of the engines are slices of theirs") {
  const json document = traced({}, {STREAMS});
  CHECK(count_of(document, "X", "copy") > 0);
  CHECK(count_of(document, "i", "doorbell") > 0);
  const std::set<std::string> names = processes_of(document);
  CHECK(names.size() >= 3);
  CHECK(names.contains("copies (virtual GPU)"));
  CHECK(names.contains("queue 0 (virtual GPU)"));
}

TEST_CASE("queues of several GPUs have their names") {
  std::set<std::string> gpus;
  for (const std::string& name : processes_of(traced({"--gpus", "2"}, {TWO_GPUS})))
    gpus.insert(name.substr(0, name.find(',')));
  CHECK(gpus == std::set<std::string>{"GPU 0", "GPU 1"});
}

TEST_CASE("a file of two processes has two queues of one number") {
  const std::string lines =
      packet(0, 0, "kernel_dispatch", true, 10, 20) + packet(0, 1, "kernel_dispatch", true, 20, 30);
  const json document = of_lines(lines + packet(0, 0, "kernel_dispatch", true, 15, 25));
  CHECK(processes_of(document) ==
        std::set<std::string>{"queue 0 (virtual GPU)", "queue 0, process 2 (virtual GPU)"});
}

TEST_CASE("queues of processes that ran at the same time get no dependencies") {
  const std::string alternating =
      packet(1, 0, "barrier_and", true, 100, 200) + packet(1, 0, "barrier_and", true, 110, 210) +
      packet(1, 1, "barrier_and", true, 205, 300) + packet(1, 1, "barrier_and", true, 215, 310);
  const std::string key = "without dependencies, processes mixed";
  const json mixed = of_lines(alternating + packet(2, 0, "barrier_and", true, 10, 20) +
                              packet(2, 1, "barrier_and", true, 20, 30));
  CHECK(count_of(mixed, "X", "packet") == 6);
  CHECK(count_of(mixed, "f", "dependency") == 1);  // queue 2
  CHECK(count_of(mixed, "i", "dependency") == 0);
  CHECK(mixed["otherData"][key][0] == "queue 1");

  // One process after the other.
  const json apart = of_lines(
      packet(1, 0, "barrier_and", true, 100, 200) + packet(1, 1, "barrier_and", true, 205, 300) +
      packet(1, 0, "barrier_and", true, 310, 400) + packet(1, 1, "barrier_and", true, 405, 500));
  CHECK(count_of(apart, "f", "dependency") == 2);
  CHECK(!apart["otherData"].contains(key));
}

TEST_CASE("--queue leaves out other queues, and an empty trace is a file without events") {
  const TemporaryDirectory directory;
  const std::string trace = directory.file("trace.jsonl");
  std::ofstream(trace) << packet(0, 0, "kernel_dispatch", true, 10, 20)
                       << packet(1, 0, "kernel_dispatch", true, 10, 20);
  CHECK(count_of(converted(directory, trace, {"--queue", "1"}), "X", "dispatch") == 1);
  CHECK(of_lines("")["traceEvents"].empty());
}

TEST_CASE("a line without what the picture needs is named") {
  const std::string good = packet(0, 0, "kernel_dispatch", true, 10, 20);
  CHECK(error_of(good + packet(0, 1, "kernel_dispatch", true, 30, 29)) ==
        "aql_dump: -: line 2 is not a line of the virtual GPU's trace: it ends before it begins\n");
  CHECK(contains(error_of(R"({"type":"doorbell","ns":1})"),
                 "line 1 is not a line of the virtual GPU's trace: the field 'queue' is missing"));
  CHECK(run_command({AQL_DUMP, "trace", "-", "--perfetto", "-", "--json", "-"}, {.input = good})
            .exit_code == 2);
}
