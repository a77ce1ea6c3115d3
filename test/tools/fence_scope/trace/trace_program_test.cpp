// fence_scope --trace as a user runs it, on the virtual GPU.
#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "test/support/catch.hpp"
#include "test/tools/support/trace_rules.hpp"
#include "tools/support/command.hpp"

using nlohmann::ordered_json;
using uptempo::test::broken_trace_rules;
using uptempo::test::CommandResult;
using uptempo::test::contents_of;
using uptempo::test::run_command;
using uptempo::test::TemporaryDirectory;

namespace {

CommandResult traced(const std::string& file, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), FENCE_SCOPE);
  arguments.insert(arguments.end(), {"--device", "virtual", "--rounds", "1", "--trace", file});
  return run_command(arguments);
}

ordered_json trace_of(const std::vector<std::string>& arguments) {
  const TemporaryDirectory directory;
  const std::string file = directory.file("trace.json");
  const CommandResult result = traced(file, arguments);
  CAPTURE(result.err, result.out);
  REQUIRE(result.exit_code == 0);
  ordered_json trace = ordered_json::parse(contents_of(file));
  const std::vector<std::string> broken = broken_trace_rules(trace);
  CAPTURE(broken);
  CHECK(broken.empty());
  return trace;
}

std::vector<ordered_json> events_of(const ordered_json& trace, const std::string& ph,
                                    const std::string& category = {}) {
  std::vector<ordered_json> out;
  for (const ordered_json& event : trace["traceEvents"])
    if (event["ph"] == ph && (category.empty() || event["cat"] == category)) out.push_back(event);
  return out;
}

}  // namespace

TEST_CASE(
    "--trace writes the recommended cell's run: every dispatch by name, marked as the virtual "
    "GPU's") {
  const ordered_json trace =
      trace_of({"explain", "--workload", "chain", "--kernels", "5", "--bytes", "1024"});
  CHECK(trace["otherData"]["time"] == "of a virtual GPU, not of hardware");
  CHECK(trace["otherData"]["device"] == "AMD Instinct MI210 (gfx90a)");
  CHECK(trace["otherData"]["workload"] == "chain");
  CHECK(trace["otherData"]["verdict"] == "correct");
  for (const ordered_json& event : events_of(trace, "M"))
    if (event["name"] == "process_name")
      CHECK(event["args"]["name"].get<std::string>().ends_with("(virtual GPU)"));
  const std::vector<ordered_json> dispatches = events_of(trace, "b", "dispatch");
  REQUIRE(dispatches.size() == 5);
  for (size_t i = 0; i < 5; ++i) {
    CHECK(dispatches[i]["name"] == "link " + std::to_string(i));
    // The planned headers: from the host, between kernels, to the host.
    CHECK(dispatches[i]["args"]["barrier"] == true);
    CHECK(dispatches[i]["args"]["acquire"] == (i == 0 ? "system" : "agent"));
    CHECK(dispatches[i]["args"]["release"] == (i == 4 ? "system" : "agent"));
  }
  CHECK(events_of(trace, "b", "packet").size() == 1);  // the closing packet
  // Each packet depends on the one before it, and the closing packet on the last one.
  CHECK(events_of(trace, "s").size() == 5);
  CHECK(events_of(trace, "i").empty());
  // The ring fills with all six packets, and empties.
  const std::vector<ordered_json> ring = events_of(trace, "C");
  REQUIRE(ring.size() >= 2);
  const auto packets = [](const ordered_json& event) {
    return event["args"]["packets"].get<uint64_t>();
  };
  CHECK(std::ranges::max(ring, {}, packets)["args"]["packets"] == 6);
  CHECK(ring.back()["args"]["packets"] == 0);
}

TEST_CASE("--cell chooses the traced cell, including a wrong one whose packets overtake others") {
  const ordered_json trace = trace_of({"scopes", "--workload", "independent", "--kernels", "4",
                                       "--bytes", "1024", "--filter", "acquire none, release none",
                                       "--cell", "no barrier, acquire none, release none"});
  CHECK(trace["otherData"]["cell"] == "no barrier, acquire none, release none");
  size_t without = 0;
  for (const ordered_json& event : events_of(trace, "b", "dispatch"))
    without += event["args"]["barrier"] == false;
  CHECK(without >= 2);
}

TEST_CASE("copies and both queues are in the trace, joined by flows") {
  const ordered_json copies =
      trace_of({"explain", "--workload", "copy-kernel-copy", "--kernels", "2"});
  CHECK(events_of(copies, "b", "copy").size() == 2);
  // From the upload to the first kernel's wait, from there to the kernel, to the second kernel, to
  // the closing packet; and to the download.
  CHECK(events_of(copies, "s").size() >= 4);
  const ordered_json queues =
      trace_of({"explain", "--workload", "producer-consumer", "--kernels", "4"});
  std::set<uint64_t> processes;
  for (const ordered_json& event : events_of(queues, "b", "dispatch"))
    processes.insert(event["pid"].get<uint64_t>());
  CHECK(processes.size() == 2);
  bool across = false;
  std::map<uint64_t, uint64_t> from;
  for (const ordered_json& event : events_of(queues, "s"))
    from[event["id"].get<uint64_t>()] = event["pid"].get<uint64_t>();
  for (const ordered_json& event : events_of(queues, "f"))
    across |= from[event["id"].get<uint64_t>()] != event["pid"];
  CHECK(across);
}

TEST_CASE("a user's program file is traced, and a report is replayed with a trace") {
  const TemporaryDirectory directory;
  const std::string program = directory.file("steps.json"), report = directory.file("report.json"),
                    file = directory.file("trace.json");
  std::ofstream(program)
      << R"({"name": "twice", "buffers": [{"name": "x", "bytes": 1024}], "steps": [
    {"name": "one", "kernel": "chain_increment", "grid": 256, "arguments": [{"buffer": "x"}, {"u32": 1}], "reads": ["x"], "writes": ["x"]},
    {"name": "two", "kernel": "chain_increment", "grid": 256, "arguments": [{"buffer": "x"}, {"u32": 1}], "reads": ["x"], "writes": ["x"]}]})";
  const ordered_json trace = trace_of({"explain", "--program", program, "--json", report});
  CHECK(events_of(trace, "b", "dispatch").size() == 2);
  CHECK(contents_of(report).find("--trace") == std::string::npos);
  // The report names the program file, and the user confirms that it is read.
  const CommandResult unnamed = run_command({FENCE_SCOPE, "--replay", report, "--trace", file});
  CHECK(unnamed.exit_code == 2);
  CHECK(unnamed.err.find("reads '" + program + "'; name the file to read with --program") !=
        std::string::npos);
  const CommandResult again =
      run_command({FENCE_SCOPE, "--replay", report, "--program", program, "--trace", file});
  CAPTURE(again.err);
  REQUIRE(again.exit_code == 0);
  const ordered_json replayed = ordered_json::parse(contents_of(file));
  CHECK(broken_trace_rules(replayed).empty());
  CHECK(events_of(replayed, "b", "dispatch").size() == 2);
}

TEST_CASE("--trace - writes nothing else to standard output") {
  const CommandResult result = traced("-", {"explain", "--workload", "empty", "--kernels", "2"});
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(broken_trace_rules(ordered_json::parse(result.out)).empty());
}

TEST_CASE(
    "an impossible trace is refused before anything runs, and the error says what to do instead") {
  const TemporaryDirectory directory;
  const auto refusal = [&](const std::vector<std::string>& arguments) {
    const CommandResult result = traced(directory.file("trace.json"), arguments);
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    CHECK_FALSE(std::filesystem::exists(directory.file("trace.json")));
    CHECK(result.err.find('\n') == result.err.size() - 1);
    return result.err;
  };
  const auto has_words = [](const std::string& text, const char* words) {
    return text.find(words) != std::string::npos;
  };
  CHECK(has_words(refusal({"sweep"}),
                  "--trace: a sweep runs several sequences; trace one of them with"));
  CHECK(has_words(run_command({FENCE_SCOPE, "ladder", "--trace", "t.json"}).err,
                  "--trace: the ladder times whole sorts"));
  CHECK(has_words(refusal({"scopes", "--dry-run"}), "nothing runs with --dry-run"));
  CHECK(has_words(refusal({"scopes", "--list"}), "nothing runs with --list"));
  CHECK(has_words(refusal({"scopes", "--cell", "no such"}),
                  "--cell: no cell has 'no such' in its label"));
  CHECK(has_words(refusal({"scopes", "--cell", "acquire agent"}),
                  "--cell: 6 cells have 'acquire agent' in their label"));
  const CommandResult alone = run_command({FENCE_SCOPE, "scopes", "--cell", "acquire agent"});
  CHECK(alone.exit_code == 2);
  CHECK(has_words(alone.err, "--cell chooses the cell that --trace traces"));
}
