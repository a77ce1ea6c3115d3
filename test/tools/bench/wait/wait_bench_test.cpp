// wait_bench as a user runs it.
#include <nlohmann/json.hpp>
#include <set>

#include "test/support/catch.hpp"
#include "tools/support/command.hpp"

using nlohmann::json;
using uptempo::test::run_command;

TEST_CASE(
    "every way to wait is timed for every length of work, for one thread and for a second one") {
  for (const bool second : {false, true}) {
    std::vector<std::string> command{WAIT_BENCH, "--device", "virtual", "--rounds",
                                     "6",        "--json",   "-"};
    if (second) command.push_back("--second");
    const auto result = run_command(command);
    CAPTURE(result.err);
    REQUIRE(result.exit_code == 0);
    const json out = json::parse(result.out);
    CHECK(out["virtual_gpu"] == true);
    CHECK(out["second_waiter"] == second);
    std::set<std::string> ways;
    std::set<double> lengths;
    for (const json& row : out["results"]) {
      CAPTURE(row);
      ways.insert(row["wait"]);
      lengths.insert(row["asked_us"].get<double>());
      CHECK(row["work_us"].get<double>() > 0);
      // The wait returns after the kernel's end, on one clock.
      CHECK(row["late_us"].get<double>() > 0);
      CHECK(row["core_per_cent"].get<double>() >= 0);
      if (row["wait"] == "active") CHECK(row["late_to_active"][1] == 1);
    }
    CHECK(ways == std::set<std::string>{"active", "blocked", "hybrid 5", "hybrid 20", "hybrid 50",
                                        "hybrid 100", "hybrid 200"});
    CHECK(lengths.contains(10'000));
    CHECK(out["results"].size() == ways.size() * lengths.size());
    // The default is one of the windows that are compared.
    CHECK(ways.contains("hybrid " + std::to_string(out["default_spin_us"].get<int>())));
  }
}

TEST_CASE("the table names the source of its times, and the error for a wrong option its values") {
  const auto table = run_command({WAIT_BENCH, "--device", "virtual", "--rounds", "6"});
  CHECK(table.exit_code == 0);
  CHECK(table.out.starts_with("Device: virtual GPU"));
  CHECK(table.out.find("virtual GPU times") != std::string::npos);
  const auto wrong = run_command({WAIT_BENCH, "--rounds", "5"});
  CHECK(wrong.exit_code == 2);
  CHECK(wrong.err.find("--rounds") != std::string::npos);
}
