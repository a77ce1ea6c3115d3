// launch_loop as a user runs it.
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/text.hpp"
#include "tools/support/command.hpp"

using uptempo::test::CommandResult;
using uptempo::test::contains;
using uptempo::test::run_command;

namespace {

CommandResult launch_loop(const std::vector<std::string>& arguments) {
  std::vector<std::string> command{UPTEMPO_VGPU_LAUNCHER, "--", LAUNCH_LOOP};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run_command(command);
}

}  // namespace

TEST_CASE("the report has a row for each way, with zeros where launchers promise them") {
  const CommandResult result = launch_loop({"--steps", "150"});
  CAPTURE(result.out, result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(result.out.starts_with("gfx90a: a step of 60 kernels takes "));
  CHECK(contains(result.out, "\nMedian of 2 turns, virtual GPU time\n"));
  const auto has = [&](const char* way, double allocations, double signals, double least_skipped) {
    std::smatch counts;
    CAPTURE(way);
    REQUIRE(std::regex_search(
        result.out, counts,
        std::regex(std::string("\n") + way + " +([0-9.]+) +([0-9.]+) +([0-9.]+) +([0-9.]+)\n")));
    CHECK(std::stod(counts[1]) == allocations);
    CHECK(std::stod(counts[2]) == signals);
    // A step whose observation is there already needs no wait.
    CHECK(std::stod(counts[3]) <= (allocations == 62 ? 60 : 1));
    CHECK(std::stod(counts[4]) >= least_skipped);
  };
  has("naive", 62, 60, 0);
  has("\\+ async copies", 64, 3, 0);
  has("\\+ cached scratch", 0, 0, 0);
  has("\\+ skipped arguments", 0, 0, 49);
  CHECK(contains(result.out, "\nVerified: the host's bits in every observation"));
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 80);
}

TEST_CASE("a step may have as few kernels as arrays, or so many that it reaches a queue's limits") {
  for (const char* kernels : {"2", "300"}) {
    const CommandResult result = launch_loop({"--steps", "11", "--kernels", kernels});
    CAPTURE(kernels, result.out, result.err);
    CHECK(result.exit_code == 0);
  }
}

TEST_CASE("kernels that do not run give wrong results, which are named, and exit code 1") {
  const CommandResult result =
      run_command({UPTEMPO_VGPU_LAUNCHER, "--null-kernels", "--", LAUNCH_LOOP, "--steps", "20"});
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == 1);
  CHECK(
      result.out.find("WRONG RESULTS: + skipped arguments (20 of 20 observations, wrong state).") !=
      std::string::npos);
  CHECK(result.out.find("Verified") == std::string::npos);
}
