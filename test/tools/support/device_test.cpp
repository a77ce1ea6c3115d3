// The option --device of a tool: which GPU it selects, and which it refuses.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/text.hpp"
#include "tools/support/command.hpp"

using nlohmann::json;
using uptempo::test::CommandResult;
using uptempo::test::contains;
using uptempo::test::contents_of;
using uptempo::test::run_command;
using uptempo::test::TemporaryDirectory;

namespace {

// A sort under uptempo-vgpu with these options.
CommandResult ladder(std::vector<std::string> options, const std::string& device) {
  options.insert(options.begin(), UPTEMPO_VGPU_LAUNCHER);
  options.insert(options.end(), {"--", FENCE_SCOPE, "ladder", "--length", "64", "--iterations", "1",
                                 "--device", device});
  return run_command(options);
}

}  // namespace

TEST_CASE("a GPU is selected by its number; another one ends with 77 and the list of GPUs") {
  CHECK(ladder({}, "0").exit_code == 0);
  const CommandResult other = ladder({}, "7");
  CHECK(other.exit_code == 77);
  CHECK(contains(other.err, "GPU '7'"));
  CHECK(contains(other.err, "GPU 0 (gfx90a, GPU-"));
}

TEST_CASE("an unavailable device ends with 77 and one sentence") {
  const CommandResult result = ladder({}, "hardware");
  CHECK(result.exit_code == 77);
  CHECK(result.out.empty());
  CHECK(std::ranges::count(result.err, '\n') == 1);
}

TEST_CASE("--device selects each partition of a card, and refuses the UUID that they share") {
  const TemporaryDirectory directory;
  const std::string file = directory.file("trace");
  const auto run = [&](const std::string& device) {
    return ladder({"--gpus", "3", "--partitions", "same-id", "--trace", file}, device);
  };
  for (uint32_t partition = 0; partition < 3; ++partition) {
    const std::string number = std::to_string(partition);
    for (const std::string& device : {number, "0000:03:00." + number}) {
      CAPTURE(device);
      const CommandResult result = run(device);
      CAPTURE(result.err);
      REQUIRE(result.exit_code == 0);
      size_t sorts = 0;
      std::istringstream lines(contents_of(file));
      for (std::string line; std::getline(lines, line);) {
        const json event = json::parse(line);
        if (event["type"] != "kernel_dispatch" ||
            !event["kernel"].get<std::string>().starts_with("bitonic_sort"))
          continue;
        ++sorts;
        CHECK(event["gpu"] == partition);
      }
      CHECK(sorts > 0);
    }
  }
  // The number of tools/vgpu/interpose/topology.cpp.
  const CommandResult refused = run("GPU-757074656d706f0a");
  CHECK(refused.exit_code == 77);
  for (const char* address : {"0000:03:00.0", "0000:03:00.1", "0000:03:00.2"})
    CHECK(contains(refused.err, address));
}
