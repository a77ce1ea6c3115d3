// The samples about streams, as a user runs them.
#include <nlohmann/json.hpp>

#include "test/support/catch.hpp"
#include "tools/support/command.hpp"

using nlohmann::json;
using uptempo::test::CommandResult;
using uptempo::test::run_command;

TEST_CASE("many_streams: the same packets with any number of idle streams, and right results") {
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

TEST_CASE(
    "many_streams: the text report names the source of its times and says that results were "
    "checked") {
  const CommandResult result = run_command({MANY_STREAMS, "--device", "virtual", "--rounds", "1"});
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == 0);
  CHECK(result.out.starts_with("Device: virtual GPU, "));
  CHECK(result.out.find("times are the virtual GPU's") != std::string::npos);
  CHECK(result.out.find("Verified: all launches were executed, in order.") != std::string::npos);
}

TEST_CASE("many_streams: a wrong command line ends with 2 and one sentence") {
  const CommandResult result = run_command({MANY_STREAMS, "--device", "sideways"});
  CHECK(result.exit_code == 2);
  CHECK(result.out.empty());
  CHECK(result.err.starts_with("many_streams: --device: "));
}

TEST_CASE(
    "streams: each batch is uploaded, computed and downloaded in this order, on one stream and on "
    "four") {
  const CommandResult result = run_command({STREAMS, "--device", "virtual", "--json", "-"});
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  const json report = json::parse(result.out);
  CHECK(report["verified"] == true);
  REQUIRE(report["rows"].size() == 2);
  for (const json& row : report["rows"]) {
    REQUIRE(row["timeline"].size() == 24);
    for (size_t i = 0; i < 24; ++i) {
      const json& step = row["timeline"][i];
      CHECK(step["begin_ns"] <= step["end_ns"]);
      CHECK(step["end_ns"] <= row["total_ns"]);
      CHECK(step["stream"] == step["batch"].get<unsigned>() % row["streams"].get<unsigned>());
      if (i % 3 != 0) CHECK(step["begin_ns"] == row["timeline"][i - 1]["end_ns"]);
    }
  }
}

TEST_CASE("streams: the report draws a row for each batch and names the source of its times") {
  const CommandResult result = run_command({STREAMS, "--device", "virtual"});
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == 0);
  CHECK(result.out.starts_with("Device: virtual GPU, "));
  CHECK(result.out.find("4 streams: ") != std::string::npos);
  CHECK(result.out.find("  batch 7, stream 3 |") != std::string::npos);
  CHECK(result.out.find("Verified: every batch equals the host's result.") != std::string::npos);
}
