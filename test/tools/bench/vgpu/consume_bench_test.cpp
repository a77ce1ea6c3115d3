// vgpu_consume_bench as a user runs it. The test does not judge figures: those of a machine that
// runs tests mean nothing.
#include <nlohmann/json.hpp>

#include <set>
#include <string>

#include "test/support/catch.hpp"
#include "tools/support/command.hpp"

using Json = nlohmann::json;
using uptempo::test::run_command;

TEST_CASE(
    "every row has a figure with its interval, ratios name their floor, and missed bars set the "
    "exit code") {
  const auto result =
      run_command({VGPU_CONSUME_BENCH, "--rounds", "6", "--seed", "3", "--bars", "--json", "-"});
  CAPTURE(result.err);
  const Json out = Json::parse(result.out);
  CHECK(out["rounds"] == 6);
  CHECK(out["seed"] == 3);
  CHECK(out["host_core"] != out["device_core"]);
  std::set<std::string> names;
  for (const Json& row : out["results"]) {
    CAPTURE(row.dump());
    CHECK(row["low"] <= row["median"]);
    CHECK(row["median"] <= row["high"]);
    if (row.contains("floor")) CHECK(names.count(row["floor"]) == 1);
    CHECK(row.contains("floor") == row.contains("ratio"));
    names.insert(row["name"]);
  }
  for (const char* name :
       {"ring-barriers", "ring-dispatches", "trip-barrier", "trip-dispatch", "asleep-barrier",
        "beside-1", "beside-15", "busy-1", "busy-4", "busy-16", "idle"}) {
    CAPTURE(name);
    CHECK(names.count(name) == 1);
  }
  REQUIRE(out["bars"].size() == 10);
  bool met = true;
  for (const Json& bar : out["bars"]) met = met && bar["met"];
  CHECK(result.exit_code == (met ? 0 : 1));
}

TEST_CASE("without --json it prints a table, and missed bars fail only on request") {
  const auto result = run_command({VGPU_CONSUME_BENCH, "--rounds", "6"});
  CAPTURE(result.err);
  CHECK(result.exit_code == 0);
  CHECK(result.out.find("Device: virtual GPU") == 0);
  CHECK(result.out.find("ring-dispatches") != std::string::npos);
}

TEST_CASE("a device that executes kernels is refused") {
  const auto result =
      run_command({UPTEMPO_VGPU_LAUNCHER, "--", VGPU_CONSUME_BENCH, "--rounds", "6"});
  CHECK(result.exit_code == 2);
  CHECK(result.err.find("--null-kernels") != std::string::npos);
}

TEST_CASE("too few rounds for an interval are refused") {
  CHECK(run_command({VGPU_CONSUME_BENCH, "--rounds", "5"}).exit_code == 2);
}

TEST_CASE("with one core for both sides it ends with 77 and names the reason") {
  const auto result = run_command({"taskset", "-c", "0", VGPU_CONSUME_BENCH, "--rounds", "6"});
  CHECK(result.exit_code == 77);
  CHECK(result.err.find("a core each") != std::string::npos);
}
