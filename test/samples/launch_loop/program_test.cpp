// launch_loop as a user runs it.
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
  // Allocations, signals, waits, skipped arguments.
  CHECK(contains(result.out, "\nnaive                      62       60     60           0\n"));
  CHECK(contains(result.out, "\n+ cached scratch            0        0      1           0\n"));
  CHECK(contains(result.out, "\n+ skipped arguments         0        0      1          50\n"));
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
