// contention_bench as a user runs it.
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "test/support/catch.hpp"
#include "tools/support/command.hpp"

using nlohmann::json;
using uptempo::test::run_command;

TEST_CASE(
    "each way has a verified figure per number of threads, and shared has a ratio to each other "
    "way") {
  const auto result =
      run_command({CONTENTION_BENCH, "--threads", "1", "2", "--batch", "8", "120", "--json", "-"});
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  const json out = json::parse(result.out);
  CHECK(out["verified"] == true);
  CHECK(out["cores"].get<int>() > 0);
  CHECK(out["rounds"] == 20);
  std::set<std::string> names;
  for (const json& entry : out["results"]) {
    names.insert(entry["name"]);
    CHECK(entry["low"] > 0);
    CHECK(entry["low"] <= entry["ns_per_packet"]);
    CHECK(entry["ns_per_packet"] <= entry["high"]);
    if (entry["name"] != "shared" || entry["threads"] == 1)
      CHECK(entry["doorbells_per_batch"] == 1.0);
  }
  CHECK(names == std::set<std::string>{"shared", "mutex", "add_index"});
  CHECK(out["results"].size() == 3 * 2 * 2);
  CHECK(out["ratios"].size() == 2 * 2 * 2);
}

TEST_CASE("too few rounds, and threads that do not divide the work, are refused") {
  CHECK(run_command({CONTENTION_BENCH, "--rounds", "19"}).exit_code == 2);
  CHECK(run_command({CONTENTION_BENCH, "--threads", "3"}).exit_code == 2);
}
