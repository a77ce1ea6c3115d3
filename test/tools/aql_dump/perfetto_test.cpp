// `aql_dump trace --perfetto`: traces of programs and written ones, judged by an independent reader
// (trace_event_rules.py).
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/text.hpp"
#include "tools/support/command.hpp"

using namespace uptempo::test;
using nlohmann::json;

namespace {

// Converts the trace and returns the file, after the reader found no broken rule in it.
json converted(const TemporaryDirectory& directory, const std::string& trace,
               const std::vector<std::string>& options = {}) {
  const std::string out = directory.file("perfetto.json");
  std::vector<std::string> words{AQL_DUMP, "trace", trace, "--perfetto", out};
  words.insert(words.end(), options.begin(), options.end());
  const CommandResult result = run_command(words);
  CAPTURE(result.err);
  CHECK(result.exit_code == 0);
  std::vector<std::string> reader{PYTHON, TRACE_EVENT_RULES, out};
  if (options.empty()) reader.push_back(trace);
  const CommandResult rules = run_command(reader);
  CAPTURE(rules.out, rules.err);
  CHECK(rules.exit_code == 0);
  return json::parse(contents_of(out));
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

std::set<std::string> names_of(const json& document, const std::string& what) {
  std::set<std::string> names;
  for (const json& event : document["traceEvents"])
    if (event["name"] == what) names.insert(event["args"]["name"]);
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
  CHECK(count_of(document, "s", "dependency") == count_of(document, "f", "dependency"));
  CHECK(names_of(document, "process_name") == std::set<std::string>{"GPU 0 (virtual)"});
}

TEST_CASE("streams are threads, and copies of the engines are slices of theirs") {
  const json document = traced({}, {STREAMS});
  CHECK(count_of(document, "X", "copy") > 0);
  CHECK(count_of(document, "i", "doorbell") > 0);
  const std::set<std::string> threads = names_of(document, "thread_name");
  CHECK(threads.size() >= 3);
  bool has_sdma = false;
  for (const std::string& name : threads) has_sdma = has_sdma || contains(name, "(SDMA)");
  CHECK(has_sdma);
}

TEST_CASE("each GPU is a process") {
  const json document = traced({"--gpus", "2"}, {TWO_GPUS});
  CHECK(names_of(document, "process_name") ==
        std::set<std::string>{"GPU 0 (virtual)", "GPU 1 (virtual)"});
}

TEST_CASE("packets that execute at the same time are in lanes, and times are microseconds") {
  const json document = of_lines(packet(3, 0, "kernel_dispatch", true, 1'000'500, 1'003'000) +
                                 packet(3, 1, "kernel_dispatch", false, 1'001'000, 1'005'001) +
                                 packet(3, 2, "barrier_and", true, 1'006'000, 1'006'000));
  CHECK(names_of(document, "thread_name") == std::set<std::string>{"queue 3", "queue 3, lane 2"});
  std::vector<double> times, durations;
  for (const json& event : document["traceEvents"]) {
    if (event["ph"] != "X") continue;
    times.push_back(event["ts"]);
    durations.push_back(event["dur"]);
  }
  CHECK(times == std::vector<double>{0, 0.5, 5.5});
  CHECK(durations == std::vector<double>{2.5, 4.001, 0});
  // The last packet depends on both; the second one, without a barrier bit, on none.
  CHECK(count_of(document, "f", "dependency") == 2);
}

TEST_CASE("a packet after a barrier packet depends on it, and one that began too early is marked") {
  const json document = of_lines(packet(0, 0, "barrier_or", false, 10, 20) +
                                 packet(0, 1, "kernel_dispatch", false, 30, 40) +
                                 packet(0, 2, "kernel_dispatch", true, 35, 50));
  CHECK(count_of(document, "f", "dependency") == 2);
  CHECK(count_of(document, "i", "dependency") == 1);
}

TEST_CASE("a file of two processes has two queues of one number") {
  const std::string lines =
      packet(0, 0, "kernel_dispatch", true, 10, 20) + packet(0, 1, "kernel_dispatch", true, 20, 30);
  const json document = of_lines(lines + packet(0, 0, "kernel_dispatch", true, 15, 25));
  CHECK(names_of(document, "thread_name") ==
        std::set<std::string>{"queue 0", "queue 0, process 2"});
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
  CHECK(mixed["otherData"][key] == json{"queue 1 of GPU 0"});

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
  CHECK(count_of(converted(directory, trace, {"--queue", "1"}), "X", "packet") == 1);
  CHECK(of_lines("")["traceEvents"].empty());
}

TEST_CASE("a line without what the picture needs is named") {
  const std::string good = packet(0, 0, "kernel_dispatch", true, 10, 20);
  CHECK(error_of(good + packet(0, 1, "kernel_dispatch", true, 30, 29)) ==
        "aql_dump: event 2 of the trace ends before it begins\n");
  CHECK(error_of(good + R"({"type":"kernel_dispatch","queue":0,"index":1,"start_ns":1})") ==
        "aql_dump: event 2 of the trace has no number 'end_ns'\n");
  CHECK(error_of(R"({"type":"doorbell","ns":1})") ==
        "aql_dump: event 1 of the trace has no number 'queue'\n");
  CHECK(error_of(R"({"type":"doorbell","queue":4294967296,"ns":1})") ==
        "aql_dump: event 1 of the trace has a 'queue' above 1000000\n");
  CHECK(run_command({AQL_DUMP, "trace", "-", "--perfetto", "-", "--json", "-"}, {.input = good})
            .exit_code == 2);
}
