// SIGINT (Ctrl-C) and SIGTERM during a measurement.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/text.hpp"
#include "tools/support/command.hpp"

using namespace uptempo::test;
using nlohmann::json;

namespace {

// Whether the process has a handler for SIGINT: the field SigCgt of /proc/PID/status (proc(5)).
bool catches_sigint(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("SigCgt:"))
      return (std::stoull(line.substr(7), nullptr, 16) >> (SIGINT - 1) & 1) != 0;
  return false;
}

bool has_ended(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("State:")) return line.find('Z') != std::string::npos;
  return true;
}

// Sends SIGINT to the program and its children, as a terminal does, once the program catches it.
// Before it executes the program, the process has this test's own handlers.
CommandResult interrupted(const std::vector<std::string>& words) {
  RunningCommand command(words, {.own_group = true});
  const std::string executed = "/proc/" + std::to_string(command.process()) + "/exe";
  std::error_code ignored;
  while (!has_ended(command.process()) &&
         (!std::filesystem::equivalent(executed, words.front(), ignored) ||
          !catches_sigint(command.process())))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  killpg(command.process(), SIGINT);
  return command.finish();
}

// The processes with this text in an argument, except this one.
std::vector<pid_t> processes_with(const std::string& text) {
  std::vector<pid_t> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const pid_t process = static_cast<pid_t>(std::stol(name));
    if (process != getpid() && contains(contents_of(entry.path() / "cmdline"), text))
      found.push_back(process);
  }
  return found;
}

// Sends the signal to the program, with `to_group` also to the processes of its group, once it has
// started a process with `word` in its arguments. The program has its temporary files in `folder`.
CommandResult interrupted_with_child(std::vector<std::string> words, const std::string& word,
                                     int signal, bool to_group, const std::string& folder) {
  RunningCommand command(words, {.environment = {"TMPDIR=" + folder}, .own_group = true});
  const auto has_child = [&] {
    for (const pid_t process : processes_with(word)) {
      std::ifstream stat("/proc/" + std::to_string(process) + "/stat");
      std::string id, name, state;
      pid_t parent = 0;
      if (stat >> id >> name >> state >> parent && parent == command.process()) return true;
    }
    return false;
  };
  while (!has_ended(command.process()) && !has_child())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  kill(to_group ? -command.process() : command.process(), signal);
  return command.finish();
}

struct Interruption {
  int signal;
  bool to_group;  // as a terminal sends it
  int exit_code;
};
const std::vector<Interruption> kInterruptions{
    {SIGINT, true, 130}, {SIGINT, false, 130}, {SIGTERM, false, 143}};

}  // namespace

TEST_CASE("an interrupted benchmark reports the rounds that it has finished, and returns 130") {
  const TemporaryDirectory directory;
  const std::string file = directory.file("out.json");
  const CommandResult result = interrupted(
      {CONTENTION_BENCH, "--rounds", "100000", "--threads", "1", "--batch", "120", "--json", file});
  CAPTURE(result.err);
  CHECK(result.exit_code == 130);
  CHECK(contains(result.err,
                 "contention_bench: interrupted; the report holds what was measured before\n"));
  CHECK(contains(result.out, "120 x 1"));
  const json out = json::parse(contents_of(file));
  CHECK(out["rounds"].get<int>() >= 1);
  CHECK(out["rounds"].get<int>() < 100000);
  CHECK(out["results"].size() == 3);
}

TEST_CASE("a benchmark that is interrupted while it counts reports one round, and returns 130") {
  const CommandResult result =
      interrupted({DISPATCH_BENCH, "--device", "virtual", "--peer", "none", "--rounds", "100000",
                   "--batch", "1", "--only", "uptempo-single"});
  CAPTURE(result.err);
  CHECK(result.exit_code == 130);
  CHECK(contains(result.err, "dispatch_bench: interrupted; the report holds"));
  CHECK(contains(result.out, "uptempo-single"));
}

TEST_CASE("an interrupted fence_scope reports what it has measured, and returns 130") {
  const TemporaryDirectory directory;
  const std::string file = directory.file("out.json");
  const CommandResult result = interrupted(
      {FENCE_SCOPE, "explain", "--device", "virtual", "--workload", "chain", "--kernels", "2",
       "--rounds", "100000", "--seconds", "100000", "--precision", "0.01", "--json", file});
  CAPTURE(result.err);
  CHECK(result.exit_code == 130);
  CHECK(contains(result.err, "fence_scope: interrupted;"));
  CHECK(contains(result.out, "warning: interrupted:"));
  const json out = json::parse(contents_of(file));
  CHECK(out["cells"].size() == 3);
  CHECK(out["warnings"].dump().find("interrupted") != std::string::npos);
}

TEST_CASE("fence_scope, interrupted while it gathers evidence, reports and leaves nothing behind") {
  for (const auto& [signal, to_group, exit_code] : kInterruptions) {
    const TemporaryDirectory directory, temporary;
    const std::string folder = std::filesystem::path(temporary.file("x")).parent_path(),
                      file = directory.file("out.json");
    const CommandResult result =
        interrupted_with_child({FENCE_SCOPE, "explain", "--device", "virtual", "--workload",
                                "chain", "--kernels", "2", "--json", file},
                               "--judge-cases", signal, to_group, folder);
    CAPTURE(signal, to_group, result.err);
    CHECK(result.exit_code == exit_code);
    CHECK(contains(result.err, "fence_scope: interrupted; the report holds"));
    CHECK(processes_with(folder).empty());
    CHECK(std::filesystem::is_empty(folder));
    const json out = json::parse(contents_of(file), nullptr, false);
    REQUIRE(out.is_object());
    CHECK(out["cells"].size() == 3);
    CHECK(contains(out["warnings"].dump(), "interrupted: the report holds"));
  }
}

TEST_CASE("interrupted litmus tests are reported as such, within a test of many iterations") {
  const TemporaryDirectory directory;
  const std::string file = directory.file("out.json");
  const CommandResult result = interrupted(
      {FENCE_SCOPE, "litmus", "--device", "virtual", "--iterations", "1000000", "--json", file});
  CAPTURE(result.err);
  CHECK(result.exit_code == 130);
  CHECK(contains(result.out, "Interrupted: the report holds"));
  CHECK(json::parse(contents_of(file))["interrupted"] == true);
}

TEST_CASE("hardware_check, interrupted during a probe, reports and leaves nothing behind") {
  for (const auto& [signal, to_group, exit_code] : kInterruptions) {
    const TemporaryDirectory directory, temporary;
    const std::string folder = std::filesystem::path(temporary.file("x")).parent_path(),
                      file = directory.file("out.json");
    const CommandResult result = interrupted_with_child(
        {HARDWARE_CHECK, "--device", "virtual", "--only", "profiling", "litmus", "--json", file},
        std::string("--probe\0litmus", 14), signal, to_group, folder);
    CAPTURE(signal, to_group, result.err);
    CHECK(result.exit_code == exit_code);
    CHECK(contains(result.err, "hardware_check: interrupted; the report holds"));
    CHECK(std::filesystem::is_empty(folder));
    const json out = json::parse(contents_of(file), nullptr, false);
    REQUIRE(out.is_object());
    CHECK(out["interrupted"] == true);
    REQUIRE(out["probes"].size() == 1);
    CHECK(out["probes"][0]["probe"] == "profiling");
  }
}
