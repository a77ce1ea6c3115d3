// Ctrl-C during a measurement.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

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
