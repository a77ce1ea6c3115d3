// A HIP program under libuptempo-lint.so, and the bench that measures the lint with it. The oracle
// is the virtual GPU's trace.
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>

#include "test/support/catch.hpp"
#include "test/support/text.hpp"
#include "tools/support/command.hpp"

namespace {

using nlohmann::json;
using uptempo::test::contains;
using uptempo::test::contents_of;
using uptempo::test::run_command;
using uptempo::test::TemporaryDirectory;

constexpr const char* kKernel = "(anonymous namespace)::count(unsigned int*)";

}  // namespace

TEST_CASE("the packets of a HIP program are seen, with names and call sites") {
  const TemporaryDirectory directory;
  const std::string report = directory.file("report"), trace = directory.file("trace");
  // A turn of 30 launches for each byte of the input.
  const auto result = run_command({UPTEMPO_VGPU_LAUNCHER, "--trace", trace, "--", LOOP, "30"},
                                  {.environment = {std::string("HSA_TOOLS_LIB=") + LINT,
                                                   "UPTEMPO_LINT=format=json,file=" + report},
                                   .input = "turns!"});
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);

  // Queues with kernels that have no symbol, and with vendor packets, are ROCr's own.
  std::map<int, uint64_t> executed;
  std::set<int> of_rocr;
  std::ifstream lines(trace);
  for (std::string text; std::getline(lines, text);) {
    const json line = json::parse(text);
    const std::string type = line.at("type");
    if (type == "doorbell" || type == "sdma") continue;
    const int queue = line.at("queue");
    ++executed[queue];
    if (type == "vendor" ||
        (type == "kernel_dispatch" && line.at("kernel").get<std::string>().starts_with("0x")))
      of_rocr.insert(queue);
  }
  uint64_t packets = 0;
  for (const auto& [queue, count] : executed) packets += of_rocr.contains(queue) ? 0 : count;

  uint64_t seen = 0, missed = 0, launches = 0, unread = 0;
  bool site = false;
  std::istringstream text(contents_of(report));
  for (std::string each; std::getline(text, each);) {
    const json line = json::parse(each);
    const std::string type = line.at("type");
    if (type == "queue" && !line.at("of_rocr").get<bool>()) {
      seen += line.at("packets").get<uint64_t>();
      missed += line.at("missed").get<uint64_t>();
      unread += line.at("not_seen").get<uint64_t>() - line.at("missed").get<uint64_t>();
    }
    if (type == "pair" && line.at("packet") == kKernel)
      launches += line.at("dispatches").get<uint64_t>();
    if (type == "finding" && line.at("finding") == "lone_doorbell" &&
        line.at("packet") == kKernel && line.at("before") == kKernel)
      site = contains(line.at("sites").at(0).at("place").get<std::string>(), LOOP);
  }
  CHECK(seen + missed == packets);
  CHECK(unread == 0);
  // The device may take a packet before its doorbell.
  CHECK(launches > 0);
  CHECK(launches <= 180);
  CHECK(launches + missed >= 180);
  CHECK(site);
}

TEST_CASE("lint_bench compares the loop with and without the lint") {
  const TemporaryDirectory directory;
  const std::string file = directory.file("json");
  const auto result = run_command({BENCH, "--device", "virtual", "--rounds", "2", "--turns", "3",
                                   "--launches", "10", "--bar", "1000000", "--json", file});
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(contains(result.out, "device: virtual GPU\n"));
  const json made = json::parse(contents_of(file));
  CHECK(made.at("with_ns").size() == 2);
  CHECK(made.at("without_ns").size() == 2);
  CHECK(made.at("ratio_low") <= made.at("ratio"));

  const auto wrong = run_command({BENCH, "--device", "moon"});
  CHECK(wrong.exit_code != 0);
  CHECK(contains(wrong.err, "--device is 'moon'"));
}
