// hardware_check as an owner runs it, on the virtual GPU.
#include <filesystem>
#include <set>
#include <sstream>

#include "test/support/catch.hpp"
#include "test/support/text.hpp"
#include "tools/hardware/chain.hpp"
#include "tools/hardware/probe.hpp"
#include "tools/support/command.hpp"

using namespace uptempo::hardware;
using nlohmann::json;
using uptempo::test::CommandResult;
using uptempo::test::contains;
using uptempo::test::run_command;

namespace {

CommandResult check_on(std::vector<std::string> vgpu_options, std::vector<std::string> arguments) {
  std::vector<std::string> command{VGPU};
  command.insert(command.end(), vgpu_options.begin(), vgpu_options.end());
  command.insert(command.end(), {"--", HARDWARE_CHECK});
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run_command(command);
}

// A virtual GPU that breaks a probe's rule, and what the row then says.
struct Broken {
  std::string probe;
  std::vector<std::string> options;
  std::string said;
};

const std::vector<std::string> kStale{"--incoherent", "1", "--inject", "packet stale every=1"};
// The barrier packets that begin a test empty the caches.
const std::vector<std::string> kStaleDispatches{"--incoherent", "1", "--inject",
                                                "packet stale type=dispatch every=1"};
const std::vector<std::string> kTorn{"--inject", "packet torn type=dispatch nth=5000"};
const std::vector<Broken> kBroken{
    {"read-index", {"--grouped-read-index"}, "it stays up to 7 packets behind"},
    {"read-index", {"--early-read-index"}, "it passes kernels that still run"},
    {"ring-64", kTorn, "the packet processor stopped the queue"},
    {"ring-256", kTorn, "the packet processor stopped the queue"},
    {"profiling", {"--inject", "packet untimed every=1"}, "no times, even if"},
    {"profiling", {"--inject", "packet untimed nth=2 count=all"}, "no times if"},
    {"eager-packets", {"--eager-packets"}, "is taken beyond the write index"},
    {"stale-host", kStale, "stale reads of"},
    {"stale-device", kStale, "stale reads of"},
    {"hdp-flush", {"--bar", "lazy", "7", "--inject", "hdp lost every=1"}, "stale reads:"},
    {"litmus", kStaleDispatches, "tests have a forbidden outcome"},
    {"copy-engines", {"--inject", "copy lost every=1"}, "wrong bytes after copies"},
    {"costs", kTorn, "the packet processor stopped the queue"},
    {"ladder", kStale, "unsorted results: baseline (3 of 3)"},
    {"chain-batch", kStale, "words are wrong"},
    {"chain-recording", kStale, "words are wrong"},
    {"chain-hip-graph", kStale, "words are wrong"},
};

}  // namespace

TEST_CASE("on the virtual GPU every probe finds what the engine assumes") {
  const CommandResult result = run_command({HARDWARE_CHECK, "--device", "virtual", "--json", "-"});
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == 0);
  const json report = json::parse(result.out);
  CHECK(report["format"] == "uptempo-hardware-check-1");
  CHECK(report["device"] == "AMD Instinct MI210 (gfx90a)");
  CHECK(report["target"] == "gfx90a");
  CHECK(report["virtual_gpu"] == true);
  CHECK(report["rocr_library"].get<std::string>().starts_with("libhsa-runtime64.so"));
  CHECK(report["choices"].size() > 10);
  REQUIRE(report["probes"].size() == probes().size());
  for (size_t i = 0; i < probes().size(); ++i) {
    const json& row = report["probes"][i];
    CAPTURE(row.dump());
    CHECK(row["probe"] == probes()[i].name);
    CHECK(row["rule"] == probes()[i].rule);
    CHECK(row["verdict"] == "as the engine assumes");
    CHECK_FALSE(row["measured"].empty());
  }
}

TEST_CASE("each probe differs on a virtual GPU that breaks its rule") {
  std::set<std::string> broken;
  for (const Broken& each : kBroken) {
    CAPTURE(each.probe, each.options);
    const CommandResult result = check_on(each.options, {"--only", each.probe, "--json", "-"});
    CAPTURE(result.out, result.err);
    CHECK(result.exit_code == 1);
    const json report = json::parse(result.out);
    REQUIRE(report["probes"].size() == 1);
    CHECK(report["probes"][0]["probe"] == each.probe);
    CHECK(report["probes"][0]["verdict"] == "differs");
    CHECK(contains(report["probes"][0]["text"].get<std::string>(), each.said));
    broken.insert(each.probe);
  }
  for (const Probe& probe : probes()) CHECK(broken.contains(std::string(probe.name)));
}

TEST_CASE("a probe that hangs is a row, and the next one is asked") {
  const CommandResult result = check_on({"--inject", "packet late=600000 type=dispatch nth=1"},
                                        {"--only", "read-index", "profiling", "--limit", "4.5"});
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == 1);
  CHECK(contains(result.out, "read-index       differs: it hangs: no answer after 4.5 s"));
  CHECK(contains(result.out, "profiling        as the engine assumes"));
}

TEST_CASE("a machine without a large BAR is not asked about it") {
  const CommandResult result =
      check_on({"--bar", "small"}, {"--only", "stale-device", "hdp-flush"});
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == 0);
  CHECK(contains(result.out, "stale-device     not asked: the host does not reach device memory"));
  CHECK(contains(result.out, "0 of 2 probes found what the engine assumes, 0 something else; 2"));
}

TEST_CASE("the text names the device first, and has at most 80 columns") {
  const CommandResult result =
      run_command({HARDWARE_CHECK, "--device", "virtual", "--only", "profiling"});
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == 0);
  CHECK(result.out.starts_with("Device: virtual GPU, AMD Instinct MI210 (gfx90a)"));
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 80);
}

TEST_CASE("a device that is missing ends the program before any probe") {
  const CommandResult result = run_command({HARDWARE_CHECK, "--device", "GPU-0123456789abcdef"});
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == 77);
  CHECK(result.out.empty());
  CHECK(result.err.starts_with("hardware_check: "));
}

TEST_CASE("--list names every probe with its rule") {
  const CommandResult result = run_command({HARDWARE_CHECK, "--list"});
  CHECK(result.exit_code == 0);
  for (const Probe& probe : probes()) {
    CHECK(contains(result.out, std::string(probe.name)));
    CHECK(contains(result.out, std::string(probe.rule)));
  }
}

TEST_CASE("every probe asks the GPU that --device names, HIP's graph too") {
  const uptempo::test::TemporaryDirectory directory;
  const std::string trace = directory.file("trace-%p");
  for (const uint32_t chosen : {0u, 1u}) {
    const CommandResult result =
        check_on({"--gpus", "gfx90a,gfx908", "--trace", trace},
                 {"--device", std::to_string(chosen), "--only", "chain-batch", "chain-hip-graph"});
    CAPTURE(chosen, result.out, result.err);
    CHECK(result.exit_code == 0);
    size_t links = 0;
    for (const auto& file :
         std::filesystem::directory_iterator(std::filesystem::path(trace).parent_path())) {
      std::istringstream lines(uptempo::test::contents_of(file.path()));
      for (std::string line; std::getline(lines, line);) {
        const json event = json::parse(line);
        if (event["type"] != "kernel_dispatch" ||
            !contains(event["kernel"].get<std::string>(), "chain_increment"))
          continue;
        ++links;
        CHECK(event["gpu"] == chosen);
      }
      std::filesystem::remove(file.path());
    }
    size_t timed = 0;  // by a batch and by HIP; the untimed ones come in addition
    for (const ChainShape& shape : kChainShapes) timed += 2 * kChainRuns * shape.dispatches;
    CHECK(links > timed);
  }
}

TEST_CASE("the report is written after each row, also if --json is a file") {
  const uptempo::test::TemporaryDirectory directory;
  const std::string file = directory.file("report.json");
  const CommandResult result =
      run_command({HARDWARE_CHECK, "--device", "virtual", "--only", "profiling", "--json", file});
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == 0);
  CHECK(contains(result.out, "The report is in '" + file + "'."));
  CHECK(json::parse(uptempo::test::contents_of(file))["probes"].size() == 1);
}

TEST_CASE("a probe whose kernels do not load is not asked, and the others are") {
  // ROCT then reports a target for which no kernel is compiled.
  const CommandResult result =
      run_command({"/usr/bin/env", "HSA_OVERRIDE_GFX_VERSION=9.0.2", HARDWARE_CHECK, "--device",
                   "virtual", "--only", "profiling", "ladder", "--json", "-"});
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == 0);
  const json report = json::parse(result.out);
  CHECK(report["target"] == "gfx902");
  CHECK(report["environment"]["HSA_OVERRIDE_GFX_VERSION"] == "9.0.2");
  CHECK(report["probes"][0]["verdict"] == "as the engine assumes");
  CHECK(report["probes"][1]["verdict"] == "not asked");
  CHECK(contains(report["probes"][1]["text"].get<std::string>(), "gfx902"));
}
