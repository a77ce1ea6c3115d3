// dispatch_bench as a user runs it.
#include <nlohmann/json.hpp>
#include <set>

#include "support/catch.hpp"
#include "support/command.hpp"

using nlohmann::json;
using uptempo::test::run_command;

namespace {

json results_of(const std::vector<std::string>& options) {
  std::vector<std::string> command{DISPATCH_BENCH, "--device", "virtual", "--rounds", "20", "--json", "-"};
  command.insert(command.end(), options.begin(), options.end());
  const auto result = run_command(command);
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  return json::parse(result.out);
}

}  // namespace

TEST_CASE("every row is timed and verified, kernels executed or not") {
  for (const char* kernels : {"null", "real"}) {
    const json out = results_of({"--batch", "1", "120", "--kernels", kernels});
    CHECK(out["kernels"] == kernels);
    CHECK(out["verified"] == true);
    CHECK(out["virtual_gpu"] == true);
    std::set<std::string> names;
    for (const json& row : out["results"]) {
      names.insert(row["name"]);
      CHECK(row["ns_per_dispatch"].get<double>() > 0);
      CHECK(row["low"] <= row["ns_per_dispatch"]);
      CHECK(row["high"] >= row["ns_per_dispatch"]);
    }
    CHECK(names == std::set<std::string>{"floor-packets", "floor-packets-kernargs", "hip-graph", "hip-launch",
                                         "hsa-careful", "hsa-doorbell-each", "hsa-naive", "uptempo-batch",
                                         "uptempo-single"});
  }
}

TEST_CASE("variants of the floor are shown when asked for") {
  const json out = results_of({"--batch", "8", "--variants", "--only", "floor-packets/"});
  CHECK(out["results"].size() == 8);  // four variants, two phases
}

TEST_CASE("what cannot be run is refused") {
  CHECK(run_command({DISPATCH_BENCH, "--rounds", "19"}).exit_code == 2);
  CHECK(run_command({DISPATCH_BENCH, "--batch", "8193"}).exit_code == 2);
  CHECK(run_command({DISPATCH_BENCH, "--kernels", "some"}).exit_code == 2);
  const auto executed = run_command({UPTEMPO_VGPU_LAUNCHER, "--", DISPATCH_BENCH, "--kernels", "null"});
  CHECK(executed.exit_code == 2);
  CHECK(executed.err.find("this device executes kernels") != std::string::npos);
  const auto nothing = run_command({DISPATCH_BENCH, "--device", "virtual", "--only", "nothing"});
  CHECK(nothing.exit_code == 2);
  CHECK(nothing.err.find("no row has that in its name") != std::string::npos);
}
