// Programs with and without waits of the host under `--check fences,waits`: each missing wait is
// found each time, and nothing else.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "programs/run.hpp"
#include "test/support/catch.hpp"
#include "tools/support/temporary_directory.hpp"

namespace uptempo::vgpu {
namespace {

using nlohmann::json;

constexpr unsigned kRounds = 100;

struct Checked {
  std::vector<json> findings;
  CommandResult run;
};

Checked check(const std::string& way, unsigned rounds, std::vector<std::string> options = {}) {
  const support::TemporaryDirectory directory;
  const std::string report = directory.file("report.jsonl");
  std::vector<std::string> command{"--check", "fences,waits,repeated", "--report", report};
  command.insert(command.end(), options.begin(), options.end());
  command.insert(command.end(), {"--", UPTEMPO_VGPU_WAITS, way, std::to_string(rounds)});
  Checked checked{{}, launch(command)};
  CAPTURE(way, checked.run.err);
  CHECK(checked.run.exit_code == 0);
  CHECK(checked.run.out == "right\n");
  std::ifstream lines(report);
  for (std::string line; std::getline(lines, line);)
    if (json finding = json::parse(line); !finding.contains("summary"))
      checked.findings.push_back(std::move(finding));
  return checked;
}

// Whether the process wrote nothing but the line that says what was checked, with these words.
bool is_only_closing_line(const std::string& text, const std::string& words) {
  return text.starts_with("uptempo-vgpu: checked ") && holds(text, words) &&
         std::ranges::count(text, '\n') == 1;
}

struct Missing {
  const char* way;
  const char* conflict;
  const char* kernel;
  bool by_call;  // the host accesses the memory in a system call
};

// The packets or copies with which the host conflicts, each with the number of its findings.
std::map<uint64_t, unsigned> partners(const Checked& checked, const Missing& missing) {
  const std::string host =
      missing.conflict == std::string("read-after-write") ? "reader" : "writer";
  const std::string device = host == "reader" ? "writer" : "reader";
  std::map<uint64_t, unsigned> found;
  for (const json& finding : checked.findings) {
    CAPTURE(finding.dump());
    CHECK(finding.at("class") == "unordered");
    CHECK(finding.at("conflict") == missing.conflict);
    CHECK(finding.at(host).at("engine") == "host");
    if (!missing.by_call) CHECK(finding.at(host).at("site").at(0).at("module") == "vgpu_waits");
    const json& task = finding.at(device);
    CHECK(task.at(task.contains("kernel") ? "kernel" : "engine") == missing.kernel);
    ++found[task.at(task.contains("index") ? "index" : "offset").get<uint64_t>()];
  }
  return found;
}

TEST_CASE("every missing wait of the host is found, whatever the timing", "[waits]") {
  const Missing missing =
      GENERATE(Missing{"!reads", "read-after-write", "iota.kd", false},
               Missing{"!writes", "write-after-read", "copy.kd", false},
               Missing{"!writes-arguments", "write-after-read", "iota.kd", false},
               Missing{"!other-signal", "read-after-write", "iota.kd", false},
               Missing{"!reads-copy", "read-after-write", "copy_linear", false},
               Missing{"!writes-copied", "write-after-read", "copy_linear", false},
               Missing{"!system-call", "read-after-write", "iota.kd", true},
               Missing{"!host-signal", "read-after-write", "iota.kd", false},
               Missing{"!other-queue", "read-after-write", "iota.kd", false});
  const Checked checked = check(missing.way, kRounds);
  CAPTURE(missing.way, checked.findings.size(), checked.run.err);
  CHECK(is_only_closing_line(checked.run.err, " unordered) in "));
  CHECK(partners(checked, missing).size() == kRounds);
}

TEST_CASE("a finding names the function and the line of the host's access", "[waits]") {
  const Checked checked = check("!reads", 1);
  REQUIRE(checked.findings.size() == 1);
  const json site = checked.findings[0].at("reader").at("site");
  INFO(site.dump());
  const bool names_function = std::ranges::any_of(site, [](const json& frame) {
    return holds(frame.value("function", ""), "reads_at_once") &&
           frame.value("source", "").starts_with("waits.cpp:");
  });
  CHECK(names_function);
  const CommandResult text =
      launch({"--check", "fences,waits", "--", UPTEMPO_VGPU_WAITS, "!reads", "1"});
  INFO(text.err);
  const std::string line = site[0].at("source");
  CHECK(holds(text.err, "unordered: the host (at " + line + ") reads "));
  CHECK(holds(text.err, "\n    the host reads in\n        "));
}

TEST_CASE("the place of an access does not depend on what the reporter has mapped", "[waits]") {
  const Checked checked = check("!copies-out", 3);
  REQUIRE(checked.findings.size() >= 3);
  const json first = checked.findings[0].at("reader").at("site");
  CHECK(first.at(0).at("module").get<std::string>().starts_with("libc.so."));
  for (const json& finding : checked.findings) {
    CAPTURE(finding.dump());
    CHECK(finding.at("reader").at("site") == first);
  }
}

TEST_CASE("an access of the host counts if its memory is freed before the next packet", "[waits]") {
  const Missing missing = GENERATE(Missing{"!reads-freed", "read-after-write", "iota.kd", false},
                                   Missing{"!writes-freed", "write-after-read", "copy.kd", false});
  const Checked checked = check(missing.way, kRounds);
  CAPTURE(missing.way, checked.findings.size(), checked.run.err);
  CHECK(partners(checked, missing).size() == kRounds);
}

TEST_CASE("the last access of a process counts", "[waits]") {
  const std::string way = GENERATE("!reads-last", "!reads-last-_exit", "!reads-last-quick_exit");
  const CommandResult run = launch(
      {"--check", "fences,waits", "--error-exitcode", "9", "--", UPTEMPO_VGPU_WAITS, way, "1"});
  CAPTURE(way, run.err);
  CHECK(run.exit_code == 9);
  CHECK(run.out == "right\n");
  CHECK(holds(run.err, "uptempo-vgpu: unordered: the host "));
  // Only exit() writes the closing line.
  CHECK(holds(run.err, ": 1 finding (1 unordered)\n") == (way == "!reads-last"));
}

TEST_CASE("a missing wait is found with one worker and with random delays", "[waits]") {
  for (const std::vector<std::string>& options : {std::vector<std::string>{"--workers", "1"},
                                                  {"--delay", "1"},
                                                  {"--delay", "2"},
                                                  {"--deterministic"}}) {
    CAPTURE(options);
    const Missing missing{"!reads", "read-after-write", "iota.kd", false};
    CHECK(partners(check(missing.way, 10, options), missing).size() == 10);
  }
}

TEST_CASE("nothing is found where the host waits", "[waits]") {
  const std::string way = GENERATE("blocked", "active", "load", "pointer", "exchange", "any",
                                   "later-packet", "other-queue", "copy", "handler", "thread",
                                   "counter", "flag", "host-signal", "destroyed", "writes");
  const Checked checked = check(way, kRounds);
  CAPTURE(way);
  CHECK(checked.findings.empty());
  CHECK(is_only_closing_line(checked.run.err, ": no findings in "));
}

TEST_CASE("system calls on pages that are closed work, and what they hide is counted", "[waits]") {
  const Checked checked = check("system-calls", 1);
  CHECK(checked.findings.empty());
  CHECK(holds(checked.run.err, "waits: 1 times all completions in a page count as known"));
}

TEST_CASE("a kernel that waits for the host does not hold the host for good", "[waits]") {
  const Checked checked = check("host-flag", 1);
  CHECK(checked.findings.empty());
  CHECK(holds(checked.run.err, "waits: 1 times the host continued after a doorbell"));
}

TEST_CASE("advice and several GPUs exclude the check of waits", "[waits]") {
  const CommandResult advice = launch({"--check", "fences,waits,advice", "--", "true"});
  CHECK(advice.exit_code == 2);
  CHECK(holds(advice.err, "advice and waits exclude each other"));
  const CommandResult gpus = launch({"--gpus", "2", "--check", "fences,waits", "--", "true"});
  CHECK(gpus.exit_code == 2);
  CHECK(holds(gpus.err, "--check fences,waits works with one GPU only"));
}

}  // namespace
}  // namespace uptempo::vgpu
