// fence_scope as a user runs it, on the virtual GPU.
#include <nlohmann/json.hpp>

#include "support/catch.hpp"
#include "support/command.hpp"

using nlohmann::json;
using uptempo::test::CommandResult;
using uptempo::test::run_command;

namespace {

CommandResult fence_scope(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), FENCE_SCOPE);
  return run_command(arguments);
}

}  // namespace

TEST_CASE("ladder climbs the sort's ladder, each rung verified") {
  const CommandResult result =
      fence_scope({"ladder", "--device", "virtual", "--length", "256", "--iterations", "2", "--json", "-"});
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  const json out = json::parse(result.out);
  CHECK(out["verified"] == true);
  CHECK(out["rungs"].size() == 6);
}

TEST_CASE("scopes tries all 18 settings, each with the counts that it asked for") {
  const CommandResult result =
      fence_scope({"scopes", "--device", "virtual", "--length", "256", "--iterations", "2", "--json", "-"});
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  const json out = json::parse(result.out);
  CHECK(out["virtual_gpu"] == true);
  REQUIRE(out["variants"].size() == 18);
  const unsigned kernels = out["kernels"];
  REQUIRE(kernels == 36);
  for (const json& variant : out["variants"]) {
    CAPTURE(variant.dump());
    const json& counts = variant["counts"];
    CHECK(counts["barrier_bits"] == (variant["barrier"] == true ? kernels : 2));
    CHECK(counts["system_acquires"] == (variant["acquire"] == "system" ? kernels - 1 : 1));
    CHECK(counts["system_releases"] == (variant["release"] == "system" ? kernels - 1 : 1));
    CHECK(counts["completion_signals"] == 1);
    CHECK(counts["doorbells"] == 1);
    if (variant["guaranteed"] == true) CHECK(variant["correct"] == true);
  }
}

TEST_CASE("the table of scopes is labelled with the device and its kind of time") {
  const CommandResult result =
      fence_scope({"scopes", "--device", "virtual", "--length", "16", "--iterations", "1"});
  REQUIRE(result.exit_code == 0);
  CHECK(result.out.starts_with(
      "Device: virtual GPU, AMD Instinct MI210 (gfx90a); times are the virtual GPU's\n"));
  CHECK(result.out.find("virtual GPU time") != std::string::npos);
}

TEST_CASE("a wrong command line ends with 2 and one sentence") {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{},
                                                    {"steps"},
                                                    {"scopes", "--length", "5"},
                                                    {"ladder", "--iterations", "0"}}) {
    const CommandResult result = fence_scope(arguments);
    CAPTURE(result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.err.starts_with("fence_scope: "));
    CHECK(result.err.find('\n') == result.err.size() - 1);
  }
}
