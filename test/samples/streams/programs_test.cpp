// The samples about streams, as a user runs them.
#include <nlohmann/json.hpp>

#include "support/catch.hpp"
#include "support/command.hpp"

using nlohmann::json;
using uptempo::test::CommandResult;
using uptempo::test::run_command;

TEST_CASE("many_streams: the same packets beside any number of idle streams, and right results") {
  const CommandResult result =
      run_command({MANY_STREAMS, "--device", "virtual", "--rounds", "2", "--json", "-"});
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  const json report = json::parse(result.out);
  CHECK(report["verified"] == true);
  CHECK(report["virtual_gpu"] == true);
  const json& rows = report["rows"];
  REQUIRE(rows.size() == 5);
  const unsigned idle_streams[] = {0, 1, 8, 32, 64};
  for (size_t i = 0; i < rows.size(); ++i) {
    CHECK(rows[i]["idle_streams"] == idle_streams[i]);
    CHECK(rows[i]["packets"] == 2.0);
    CHECK(rows[i]["launch_ns"] > 0);
    CHECK(rows[i]["launch_sync_ns"] > 0);
  }
}

TEST_CASE("many_streams: a report for people says whose times these are, and that results were checked") {
  const CommandResult result = run_command({MANY_STREAMS, "--device", "virtual", "--rounds", "1"});
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == 0);
  CHECK(result.out.starts_with("Device: virtual GPU, "));
  CHECK(result.out.find("times are the virtual GPU's") != std::string::npos);
  CHECK(result.out.find("Verified: all launches were carried out, in order.") != std::string::npos);
}

TEST_CASE("many_streams: a wrong command line ends with 2 and one sentence") {
  const CommandResult result = run_command({MANY_STREAMS, "--device", "sideways"});
  CHECK(result.exit_code == 2);
  CHECK(result.out.empty());
  CHECK(result.err.starts_with("many_streams: --device: "));
}
