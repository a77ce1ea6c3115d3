// fence_scope litmus as a user runs it, on the virtual GPU.
#include <nlohmann/json.hpp>
#include <sstream>

#include "test/support/catch.hpp"
#include "tools/support/command.hpp"

using nlohmann::json;
using uptempo::test::CommandResult;
using uptempo::test::run_command;
using uptempo::test::TemporaryDirectory;

namespace {

CommandResult litmus(std::vector<std::string> arguments) {
  const std::vector<std::string> command{FENCE_SCOPE, "litmus"};
  arguments.insert(arguments.begin(), command.begin(), command.end());
  return run_command(arguments);
}

}  // namespace

TEST_CASE("on a coherent device every litmus test has allowed outcomes only") {
  const CommandResult result = litmus({"--device", "virtual", "--iterations", "2"});
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == 0);
  CHECK(result.out.starts_with("Device: virtual GPU, AMD Instinct MI210 (gfx90a)"));
  CHECK(result.out.find("No forbidden outcome.") != std::string::npos);
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 80);
}

TEST_CASE(
    "the report names program, tests and device, and gives the observed and the allowed outcomes") {
  const TemporaryDirectory directory;
  const std::string file = directory.file("report.json");
  const CommandResult result = litmus({"--device", "virtual", "--iterations", "3", "--filter",
                                       "kernel-to-host/coarse", "--json", file});
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  const json report = json::parse(uptempo::test::contents_of(file));
  CHECK(report["format"] == "uptempo-litmus-1");
  CHECK(report["device"] == "AMD Instinct MI210 (gfx90a)");
  CHECK(report["target"] == "gfx90a");
  CHECK(report["virtual_gpu"] == true);
  CHECK(report["hsa_version"].get<std::string>().find('.') != std::string::npos);
  CHECK(report["rocr_library"].get<std::string>().starts_with("libhsa-runtime64.so"));
  CHECK_FALSE(report["kernel"].get<std::string>().empty());
  CHECK(report["iterations"] == 3);
  CHECK(report["target_rules"] == true);
  CHECK(report["passed"] == true);
  REQUIRE(report["tests"].size() == 3);
  for (const json& test : report["tests"]) {
    CAPTURE(test.dump());
    const bool released = test["name"] == "kernel-to-host/coarse/release-system";
    CHECK(test["specification"] == (released ? "sequential" : "any"));
    CHECK(test["target"] == (released ? "sequential" : "any"));
    uint64_t words = 0;
    for (const json& outcome : test["outcomes"]) {
      words += outcome["count"].get<uint64_t>();
      CHECK(outcome["sequential"] == (outcome["values"] == "x=1"));
      CHECK(outcome["forbidden"] == false);
    }
    CHECK(words == 3 * report["words"].get<uint64_t>());
  }
}

TEST_CASE("--json - prints the same report and nothing else") {
  const CommandResult result = litmus({"--device", "virtual", "--iterations", "1", "--filter",
                                       "kernarg-reuse/fine/acquire-system", "--json", "-"});
  REQUIRE(result.exit_code == 0);
  const json report = json::parse(result.out);
  REQUIRE(report["tests"].size() == 1);
  CHECK(report["tests"][0]["outcomes"][0]["values"] == "x=1 x=2");
}

// fence_scope_litmus_incoherent runs all tests on such a device.
TEST_CASE("a device with stale caches shows more outcomes, and no forbidden one") {
  uint64_t others = 0;
  for (const char* seed : {"1", "2", "3"}) {
    const CommandResult result =
        run_command({VGPU, "--incoherent", seed, "--", FENCE_SCOPE, "litmus", "--iterations", "2",
                     "--filter", "kernel-to-engine", "--json", "-"});
    CAPTURE(seed, result.err);
    REQUIRE(result.exit_code == 0);
    const json report = json::parse(result.out);
    for (const json& test : report["tests"])
      if (test["name"] == "kernel-to-engine/device/release-none")
        for (const json& outcome : test["outcomes"])
          if (outcome["sequential"] == false) others += outcome["count"].get<uint64_t>();
  }
  CHECK(others > 0);
}

TEST_CASE("--list names the tests and their verdicts and needs no device") {
  const CommandResult result = litmus({"--list", "--filter", "host-to-kernel"});
  CHECK(result.exit_code == 0);
  CHECK(result.out ==
        "host-to-kernel/coarse/acquire-none  possible\n"
        "host-to-kernel/coarse/acquire-agent  possible\n"
        "host-to-kernel/coarse/acquire-system  correct\n"
        "host-to-kernel/fine/acquire-none  possible\n"
        "host-to-kernel/fine/acquire-agent  harmless\n"
        "host-to-kernel/fine/acquire-system  correct\n");
}

TEST_CASE("a wrong command line of litmus ends with 2 and one sentence") {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"--iterations", "0"},
                                                    {"--filter", "no-such-shape"},
                                                    {"--device", "moon"},
                                                    {"extra"}}) {
    const CommandResult result = litmus(arguments);
    CAPTURE(result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.err.starts_with("fence_scope: "));
    CHECK(result.err.find('\n') == result.err.size() - 1);
  }
}

TEST_CASE("litmus ends with 77 if hardware is requested under the virtual GPU") {
  const CommandResult result =
      run_command({VGPU, "--", FENCE_SCOPE, "litmus", "--device", "hardware"});
  CHECK(result.exit_code == 77);
  CHECK(result.err.starts_with("fence_scope: "));
}
