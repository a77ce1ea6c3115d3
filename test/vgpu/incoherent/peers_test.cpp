// Programs on two GPUs with stale caches, seed by seed. A program with the necessary fences is
// right for each seed, and each missing fence is wrong for some.
#include <sstream>
#include <string>
#include <vector>

#include "programs/run.hpp"
#include "test/support/catch.hpp"
#include "wrong_runs.hpp"

namespace uptempo::vgpu {
namespace {

constexpr size_t kWays = 23;

// `probed`: the L2 of a GPU learns of a peer's writes.
void check_messages(unsigned seeds, const std::string& gpus, bool probed) {
  const auto wrong = wrong_runs({"--gpus", gpus}, UPTEMPO_VGPU_PEER_MESSAGES, seeds);
  CHECK(wrong.size() == kWays);
  for (const auto& [name, times] : wrong) {
    CAPTURE(gpus, name, times);
    if (name.starts_with('!') || (name.starts_with('~') && !probed)) {
      CHECK(times > 0);
    } else {
      CHECK(times == 0);
    }
  }
}

TEST_CASE("between two GPUs, sufficient fences are right for every seed, missing ones are not",
          "[incoherent]") {
  check_messages(6, "gfx90a,gfx90a", true);
}

TEST_CASE("the same holds for GPUs of other targets", "[incoherent]") {
  check_messages(4, "gfx908,gfx908", true);
  check_messages(4, "gfx906,gfx906", false);
}

TEST_CASE("the same holds over PCI Express, where no write probes the owner's L2", "[incoherent]") {
  check_messages(4, "gfx90a,gfx908", false);
}

TEST_CASE("three hundred seeds", "[.long]") { check_messages(300, "gfx90a,gfx90a", true); }

TEST_CASE("coherent GPUs give right results without the fences", "[incoherent]") {
  const CommandResult finished = launch({"--gpus", "2", "--", UPTEMPO_VGPU_PEER_MESSAGES});
  REQUIRE(finished.exit_code == 0);
  CHECK(finished.out.find("wrong") == std::string::npos);
  CHECK(finished.out.find("!overwrite/agent right\n") != std::string::npos);
}

// One line of the program's output: findings follow if fences are checked.
void check_findings(const std::string& gpus, bool probed) {
  const CommandResult finished =
      launch({"--gpus", gpus, "--check", "fences", "--", UPTEMPO_VGPU_PEER_MESSAGES});
  CAPTURE(gpus, finished.err);
  REQUIRE(finished.exit_code == 0);
  std::istringstream lines(finished.out);
  size_t ways = 0;
  std::string name, verdict;
  for (unsigned unordered, stale, unreleased;
       lines >> name >> verdict >> unordered >> stale >> unreleased; ++ways) {
    CAPTURE(name, stale);
    CHECK(unordered == 0);
    CHECK(unreleased == 0);
    CHECK((stale != 0) == (name.starts_with('!') || (name.starts_with('~') && !probed)));
  }
  CHECK(ways == kWays);
  CHECK(finished.err.find("copy.kd (GPU 1, hsa_queue_t ") != std::string::npos);
  CHECK(finished.err.find("iota.kd (GPU 0, hsa_queue_t ") != std::string::npos);
}

TEST_CASE("the fence checker finds each missing fence between two GPUs, and nothing else",
          "[incoherent]") {
  check_findings("gfx90a,gfx90a", true);
  check_findings("gfx906,gfx906", false);
  check_findings("gfx90a,gfx908", false);
}

TEST_CASE("a seed gives the same results on every run of packets that signals order",
          "[incoherent]") {
  const std::vector<std::string> arguments{"--gpus", "2",  "--incoherent",
                                           "3",      "--", UPTEMPO_VGPU_PEER_MESSAGES};
  const CommandResult once = launch(arguments), again = launch(arguments);
  CHECK(once.exit_code == 0);
  CHECK(once.out == again.out);
}

}  // namespace
}  // namespace uptempo::vgpu
