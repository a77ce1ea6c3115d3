// Programs on a device with stale caches, seed by seed. A program with the necessary fences is
// right for each seed, and each missing fence is wrong for some.
#include <sstream>
#include <string>

#include "programs/run.hpp"
#include "test/support/catch.hpp"
#include "wrong_runs.hpp"

namespace uptempo::vgpu {
namespace {

void check_messages(unsigned seeds, const std::string& target) {
  const auto wrong = wrong_runs({"--device", target}, UPTEMPO_VGPU_MESSAGES, seeds);
  CHECK(wrong.size() == 32);
  for (const auto& [name, times] : wrong) {
    CAPTURE(target, name, times);
    if (name.starts_with('!')) {
      CHECK(times > 0);
    } else {
      CHECK(times == 0);
    }
  }
}

TEST_CASE("sufficient fences are right for every seed, missing ones are wrong for some",
          "[incoherent]") {
  check_messages(20, "gfx90a");
}

TEST_CASE("the same holds on the other targets", "[incoherent]") {
  for (const char* target : {"gfx900", "gfx906", "gfx908"}) check_messages(8, target);
}

TEST_CASE("a thousand seeds", "[.long]") { check_messages(1000, "gfx90a"); }

TEST_CASE("a coherent device gives right results without the fences", "[incoherent]") {
  const CommandResult finished = launch({"--", UPTEMPO_VGPU_MESSAGES});
  REQUIRE(finished.exit_code == 0);
  CHECK(finished.out.find("wrong") == std::string::npos);
  CHECK(finished.out.find("!copy-over-kernel/agent right\n") != std::string::npos);
}

TEST_CASE("with --check the fence checker finds each missing fence, and nothing else",
          "[incoherent]") {
  const CommandResult finished = launch({"--check", "fences", "--", UPTEMPO_VGPU_MESSAGES});
  REQUIRE(finished.exit_code == 0);
  std::istringstream lines(finished.out);
  unsigned asked = 0;
  std::string name, verdict;
  for (unsigned unordered, stale, unreleased;
       lines >> name >> verdict >> unordered >> stale >> unreleased;) {
    CAPTURE(name, stale, unreleased);
    CHECK(unordered == 0);
    CHECK((stale != 0) == name.starts_with('!'));
    // The driver writes caches back when the program unlocks memory. Until then the completion
    // signal announced data that the host could not see.
    CHECK(unreleased == (name == "unlocked/none"));
    ++asked;
  }
  CHECK(asked == 32);
  const CommandResult unchecked = launch({"--", UPTEMPO_VGPU_MESSAGES});
  CHECK(unchecked.out.starts_with("kernel-to-kernel/local/agent right\n"));
}

TEST_CASE("a seed gives the same results on every run", "[incoherent]") {
  for (const char* seed : {"1", "2", "18446744073709551615"}) {
    const CommandResult once = launch({"--incoherent", seed, "--", UPTEMPO_VGPU_MESSAGES});
    const CommandResult again = launch({"--incoherent", seed, "--", UPTEMPO_VGPU_MESSAGES});
    CHECK(once.exit_code == 0);
    CHECK(once.out == again.out);
  }
}

}  // namespace
}  // namespace uptempo::vgpu
