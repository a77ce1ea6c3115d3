// stream_bench as a user runs it.
#include <nlohmann/json.hpp>
#include <set>

#include "test/support/catch.hpp"
#include "tools/support/command.hpp"

using nlohmann::json;
using uptempo::test::run_command;

TEST_CASE("skipping is compared with writing for arguments of 16 bytes to 4 KiB") {
  const auto result =
      run_command({STREAM_BENCH, "--device", "virtual", "--rounds", "6", "--json", "-"});
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);  // each launch's result and the number of hits are checked
  const json out = json::parse(result.out);
  CHECK(out["virtual_gpu"] == true);
  std::set<size_t> sizes;
  for (const json& row : out["results"]) {
    CAPTURE(row);
    sizes.insert(row["argument_bytes"].get<size_t>());
    for (const char* way : {"written", "skipped", "changed"})
      CHECK(row[std::string(way) + "_ns"].get<double>() > 0);
    for (const char* ratio : {"skipped_to_written", "changed_to_written"}) {
      CHECK(row[ratio][0] <= row[ratio][1]);
      CHECK(row[ratio][1] <= row[ratio][2]);
    }
  }
  CHECK(sizes == std::set<size_t>{16, 32, 64, 128, 256, 512, 1024, 2048, 4096});
}

TEST_CASE("the table names the source of its times, and the error for a wrong option its values") {
  const auto table = run_command({STREAM_BENCH, "--device", "virtual", "--rounds", "6"});
  CHECK(table.exit_code == 0);
  CHECK(table.out.starts_with("Device: virtual GPU"));
  CHECK(table.out.find("virtual GPU times") != std::string::npos);
  const auto wrong = run_command({STREAM_BENCH, "--rounds", "5"});
  CHECK(wrong.exit_code == 2);
  CHECK(wrong.err.find("--rounds") != std::string::npos);
}
