// dispatch_bench as a user runs it.
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "test/support/catch.hpp"
#include "tools/support/command.hpp"

using nlohmann::json;
using uptempo::test::run_command;

namespace {

json results_of(const std::vector<std::string>& options) {
  std::vector<std::string> command{DISPATCH_BENCH, "--device", "virtual", "--rounds",
                                   "20",           "--json",   "-"};
  command.insert(command.end(), options.begin(), options.end());
  const auto result = run_command(command);
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  return json::parse(result.out);
}

}  // namespace

namespace {

void check_every_row(const std::string& kernels, const std::vector<std::string>& batches) {
  std::vector<std::string> options{"--kernels", kernels, "--batch"};
  options.insert(options.end(), batches.begin(), batches.end());
  const json out = results_of(options);
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
  std::set<std::string> expected{"floor-packets",
                                 "floor-packets-kernargs",
                                 "hsa-careful",
                                 "hsa-doorbell-each",
                                 "hsa-naive",
                                 "uptempo-batch",
                                 "uptempo-batch-device",
                                 "uptempo-c-packed",
                                 "uptempo-c-params",
                                 "uptempo-c-stream",
                                 "uptempo-dispatch",
                                 "uptempo-dispatch-packed",
                                 "uptempo-dispatch-params",
                                 "uptempo-planned",
                                 "uptempo-planned-anew",
                                 "uptempo-planned-slices",
                                 "uptempo-prepared",
                                 "uptempo-single",
                                 "uptempo-stream",
                                 "uptempo-stream-packed",
                                 "uptempo-stream-hsa-calls",
                                 "uptempo-stream-device",
                                 "uptempo-launcher",
                                 "uptempo-replay",
                                 "uptempo-replay-patched",
                                 "uptempo-replay-patched-device"};
  // Peers have rows where they are installed; this test does not require them.
  if (!out["peers"]["HIP"].is_null())
    expected.insert({"hip-graph", "hip-launch", "uptempo-hip-graph"});
  CHECK(names == expected);
}

}  // namespace

TEST_CASE("every row is timed and verified") { check_every_row("real", {"8"}); }

TEST_CASE("every row is timed and verified without executing kernels", "[.long]") {
  check_every_row("null", {"1", "120"});
}

TEST_CASE("the costs of a batch other than time are counted from outside") {
  const json out = results_of({"--batch", "120"});
  const json missing = out["not_counted"];
  CHECK_FALSE(missing.contains("hsa_calls"));
  CHECK_FALSE(missing.contains("doorbells"));
  std::set<std::string> seen;
  for (const json& row : out["results"]) {
    CAPTURE(row);
    const std::string name = std::string(row["name"]) + ' ' + std::string(row["phase"]);
    seen.insert(name);
    const auto costs = [&](int allocations, int system_calls, int hsa_calls, double doorbells) {
      // A sanitizer's runtime allocates and calls the kernel inside instrumented code.
      if (!missing.contains("allocations")) CHECK(row["allocations"] == allocations);
      if (!missing.contains("system_calls")) CHECK(row["system_calls"] == system_calls);
      CHECK(row["hsa_calls"] == hsa_calls);
      CHECK(row["doorbells"] == doorbells);
    };
    if (name == "floor-packets submit") costs(0, 0, 0, 1);
    if (name == "floor-packets-kernargs complete") costs(0, 0, 1, 1);  // its wait
    if (name == "hsa-careful submit") costs(0, 0, 3, 1);  // reservation, room, doorbell
    if (name == "hsa-doorbell-each submit") costs(0, 0, 3 * 120, 120);
    if (name == "uptempo-single complete") costs(0, 0, 0, 120);
    if (name == "uptempo-batch complete" || name == "uptempo-dispatch-packed submit" ||
        name == "uptempo-dispatch-params submit" || name == "uptempo-c-packed submit" ||
        name == "uptempo-c-params submit" || name == "uptempo-planned submit" ||
        name == "uptempo-planned-slices submit")
      costs(0, 0, 0, 1);
    if (name == "uptempo-stream submit" || name == "uptempo-launcher submit" ||
        name == "uptempo-stream-packed submit" || name == "uptempo-c-stream submit")
      costs(0, 0, 0, 120 + 1.0 / 8);  // a marker after all eight batches
    if (name == "uptempo-stream-hsa-calls submit") {
      // Two for each launch and for the marker; the read index only now and then.
      if (!missing.contains("allocations")) CHECK(row["allocations"] == 0);
      CHECK(row["hsa_calls"] >= 2 * (120 + 1.0 / 8));
      CHECK(row["hsa_calls"] <= 2 * (120 + 1.0 / 8) + 1);
      CHECK(row["doorbells"] == 120 + 1.0 / 8);
    }
    if (name == "uptempo-replay submit" || name == "uptempo-replay-patched submit" ||
        name == "uptempo-hip-graph submit")
      costs(0, 0, 0, 2);  // the first packets are published early
    if (name == "uptempo-batch-device submit") costs(0, 0, 0, 1);
    if (name == "uptempo-replay-patched-device submit") costs(0, 0, 0, 2);
    // Arguments in device memory are flushed once per publication; others never.
    const bool is_stream = name.starts_with("uptempo-stream-device");
    CHECK(row["hdp_flushes"] == (is_stream ? 120 : name.find("-device") != name.npos ? 1 : 0));
    CHECK(row["read_backs"] == 0);
    if (name == "hsa-naive complete") {
      CHECK(row["hsa_calls"] >= 5 * 120);
      CHECK(row["doorbells"] == 120);
    }
    if (name.starts_with("hip-")) {
      if (!missing.contains("allocations")) CHECK(row["allocations"] >= 120);
      CHECK(row["hsa_calls"] >= 120);
      CHECK(row["doorbells"] >= 120);
    }
  }
  for (const char* name :
       {"floor-packets submit", "hsa-careful submit", "hsa-naive complete",
        "uptempo-dispatch-packed submit", "uptempo-dispatch-params submit",
        "uptempo-batch complete", "uptempo-batch-device submit",
        "uptempo-replay-patched-device submit", "uptempo-stream-device complete"})
    CHECK(seen.contains(name));
}

TEST_CASE("PoCL replaces HIP, executes its kernels on the processor and rings no doorbell") {
  const json out = results_of({"--batch", "8", "--peer", "pocl", "--only", "pocl"});
  REQUIRE(out["peers"]["PoCL"].is_string());  // a test dependency (Debian: pocl-opencl-icd)
  CHECK_FALSE(out["peers"].contains("HIP"));
  REQUIRE(out["results"].size() == 2);
  for (const json& row : out["results"]) {
    CHECK(row["name"] == "pocl");
    CHECK(row["ns_per_dispatch"].get<double>() > 0);
    CHECK(row["hsa_calls"] == 0);
    CHECK(row["doorbells"] == 0);
  }
}

TEST_CASE("without a peer there are no rows of it, and bars on it are not judged") {
  const auto rows = run_command(
      {DISPATCH_BENCH, "--device", "virtual", "--peer", "none", "--no-counts", "--only", "hip"});
  CHECK(rows.exit_code == 2);
  CHECK(rows.err.find("no row has that in its name") != std::string::npos);
  CHECK(run_command({DISPATCH_BENCH, "--peer", "cuda"}).exit_code == 2);
}

TEST_CASE("counts that were not requested are null, not 0") {
  const json out = results_of({"--batch", "8", "--only", "hsa-careful", "--no-counts"});
  REQUIRE(out["results"].size() == 2);
  for (const char* count :
       {"allocations", "system_calls", "hsa_calls", "doorbells", "hdp_flushes", "read_backs"}) {
    CHECK(out["results"][0][count].is_null());
    CHECK(out["not_counted"][count] == "--no-counts");
  }
}

TEST_CASE("a missed bar, or one without rows, ends with 1 and is named next to the report") {
  const auto result =
      run_command({DISPATCH_BENCH, "--device", "virtual", "--rounds", "20", "--batch", "120",
                   "--only", "uptempo-batch", "--bars", "--json", "-"});
  CHECK(result.exit_code == 1);
  CHECK(result.err.find("--bars: ") != std::string::npos);
  CHECK(result.err.find("no figure of hsa-careful for batches of 120") != std::string::npos);
  CHECK(result.err.find('\n') == result.err.size() - 1);
  const json out = json::parse(result.out);
  std::map<std::string, std::string> verdicts;
  for (const json& bar : out["bars"]) verdicts[bar["bar"]] = bar["verdict"];
  CHECK(verdicts["uptempo-batch of 120: at most 1.2 times hsa-careful of 120"] == "not judged");
  CHECK(verdicts["floor-packets: no row is cheaper"] == "not judged");
  if (!out["not_counted"].contains("allocations"))
    CHECK(verdicts["uptempo-batch: no heap allocations"] == "met");
}

TEST_CASE("a report is compared with an earlier one, but not with one of another device or mode") {
  const uptempo::test::TemporaryDirectory directory;
  const std::string old = directory.file("old.json");
  const auto run = [&](std::vector<std::string> more) {
    std::vector<std::string> command{DISPATCH_BENCH, "--device",   "virtual", "--rounds",
                                     "20",           "--batch",    "8",       "--only",
                                     "careful",      "--no-counts"};
    command.insert(command.end(), more.begin(), more.end());
    return run_command(command);
  };
  REQUIRE(run({"--json", old}).exit_code == 0);
  const auto compared = run({"--compare", old, "--json", "-"});
  CAPTURE(compared.err);
  REQUIRE(compared.exit_code == 0);
  const json out = json::parse(compared.out);
  CHECK(out["compared_with"] == old);
  REQUIRE(out["comparison"].size() == 2);
  CHECK(out["comparison"][0]["ratio"].get<double>() > 0);
  CHECK(run({"--compare", old}).out.find("Beside " + old) != std::string::npos);
  const auto other_mode = run({"--compare", old, "--kernels", "real"});
  CHECK(other_mode.exit_code == 2);
  CHECK(other_mode.err.find("use --kernels null") != std::string::npos);
  const auto other_device =
      run_command({UPTEMPO_VGPU_LAUNCHER, "--device", "gfx908", "--null-kernels", "--",
                   DISPATCH_BENCH, "--no-counts", "--compare", old});
  CHECK(other_device.exit_code == 2);
  CHECK(other_device.err.find("measured on AMD Instinct MI210 (gfx90a), this is") !=
        std::string::npos);
}

TEST_CASE("variants of the floor are shown on request") {
  const json out = results_of({"--batch", "8", "--variants", "--only", "floor-packets/"});
  CHECK(out["results"].size() >=
        8);  // four variants in two phases, and more where the processor has wide stores
}

TEST_CASE("impossible options are refused") {
  CHECK(run_command({DISPATCH_BENCH, "--rounds", "19"}).exit_code == 2);
  CHECK(run_command({DISPATCH_BENCH, "--batch", "8193"}).exit_code == 2);
  CHECK(run_command({DISPATCH_BENCH, "--kernels", "some"}).exit_code == 2);
  const auto executed =
      run_command({UPTEMPO_VGPU_LAUNCHER, "--", DISPATCH_BENCH, "--kernels", "null"});
  CHECK(executed.exit_code == 2);
  CHECK(executed.err.find("this device executes kernels") != std::string::npos);
  const auto nothing = run_command({DISPATCH_BENCH, "--device", "virtual", "--only", "nothing"});
  CHECK(nothing.exit_code == 2);
  CHECK(nothing.err.find("no row has that in its name") != std::string::npos);
}
