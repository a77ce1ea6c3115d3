// launch_loop as a user runs it.
#include <nlohmann/json.hpp>
#include <sstream>

#include "test/support/catch.hpp"
#include "tools/support/command.hpp"

using nlohmann::json;
using uptempo::test::CommandResult;
using uptempo::test::run_command;

TEST_CASE(
    "--json - prints JSON alone: a row for each way, verified, and zeros where launchers promise "
    "them") {
  const CommandResult result =
      run_command({LAUNCH_LOOP, "--device", "virtual", "--steps", "150", "--json", "-"});
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(result.err.empty());
  const json report = json::parse(result.out);
  CHECK(report["device"] == "AMD Instinct MI210 (gfx90a)");
  CHECK(report["virtual_gpu"] == true);
  CHECK(report["kernels"] == 60);
  CHECK(report["steps"] == 150);
  CHECK(report["turns"] == 2);
  CHECK(report["points"] == 64);
  CHECK(report["verified"] == true);
  const json& rows = report["rows"];
  const std::vector<std::string> names{"naive", "+ async copies", "+ cached scratch",
                                       "+ skipped arguments"};
  REQUIRE(rows.size() == names.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(rows[i].dump());
    CHECK(rows[i]["way"] == names[i]);
    CHECK(rows[i]["steps"] == (i < 2 ? 17 : 150));
    CHECK(rows[i]["us_per_step"].get<double>() > rows[i]["host_us_per_step"].get<double>());
    CHECK(rows[i]["us_low"] <= rows[i]["us_per_step"]);
    CHECK(rows[i]["us_high"] >= rows[i]["us_per_step"]);
    CHECK(rows[i]["wrong_observations"] == 0);
    CHECK(rows[i]["verified"] == true);
    const bool launches_fresh = i < 2;
    for (const char* count : {"allocations", "frees", "signals_created"})
      CHECK((rows[i][count] > 0) == launches_fresh);
    CHECK(rows[i]["blocking_copies"] == (i == 0 ? 2 : 0));
    CHECK(rows[i]["started_copies"] == (i == 1 ? 2 : 0));
    CHECK(rows[i]["pins"] == 0);
    CHECK((rows[i]["argument_hits"] > 49) == (i == 3));
    CHECK((rows[i]["argument_bytes_saved"] > 0) == (i == 3));
  }
  CHECK(rows[0]["speed_up"] == 1.0);
  CHECK(rows[0]["host_waits"] == 60);
}

TEST_CASE("the text report names the device first, then the results, then the table") {
  const CommandResult result =
      run_command({LAUNCH_LOOP, "--device", "virtual", "--steps", "20", "--kernels", "8"});
  CAPTURE(result.out, result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(result.out.starts_with("Device: virtual GPU, "));
  CHECK(result.out.find("\nA step of 8 kernels takes ") == result.out.find('\n'));
  CHECK(
      result.out.find("launchers make 0\nallocations, 0 frees, 0 blocking copies and 0 signals") !=
      std::string::npos);
  CHECK(result.out.find("virtual GPU time") != std::string::npos);
  CHECK(result.out.find("Verified: the host's bits in every observation, and in the state") !=
        std::string::npos);
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 80);
}

TEST_CASE("a step may have as few kernels as arrays, or so many that it reaches a queue's limits") {
  for (const char* kernels : {"2", "300"}) {
    const CommandResult result =
        run_command({LAUNCH_LOOP, "--device", "virtual", "--steps", "11", "--kernels", kernels});
    CAPTURE(kernels, result.out, result.err);
    CHECK(result.exit_code == 0);
  }
}

TEST_CASE("a wrong command line ends with 2 and one sentence") {
  const std::vector<std::vector<std::string>> wrong{{"--steps", "10"},        {"--steps", "x"},
                                                    {"--kernels", "1"},       {"--kernels", "1001"},
                                                    {"--device", "sideways"}, {"extra"}};
  for (const auto& arguments : wrong) {
    CAPTURE(arguments);
    std::vector<std::string> command{LAUNCH_LOOP};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const CommandResult result = run_command(command);
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    CHECK(result.err.starts_with("launch_loop: "));
    CHECK(result.err.find('\n') == result.err.size() - 1);
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
