// Programs on a device with random delays, seed by seed. A program that waits for what it needs is
// right for each seed; a program that relies on timing is wrong for some.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>

#include "programs/run.hpp"
#include "test/support/catch.hpp"

namespace uptempo::vgpu {
namespace {

using Verdicts = std::map<std::string, unsigned>;  // number of wrong runs of each way

void add_verdicts(Verdicts& wrong, std::vector<std::string> options) {
  options.insert(options.end(), {"--", UPTEMPO_VGPU_RACES});
  const CommandResult finished = launch(options);
  CAPTURE(options, finished.err);
  REQUIRE(finished.exit_code == 0);
  CHECK(finished.err.empty());
  std::istringstream lines(finished.out);
  for (std::string name, verdict; lines >> name >> verdict;) wrong[name] += verdict == "wrong";
}

void check_dependences(const Verdicts& wrong) {
  REQUIRE(wrong.size() == 10);
  for (const auto& [name, times] : wrong) {
    CAPTURE(name, times);
    if (!name.starts_with('!')) CHECK(times == 0);
  }
}

TEST_CASE("waiting is right for every seed, relying on timing is wrong for some", "[delay]") {
  Verdicts wrong;
  for (unsigned seed = 1; seed <= 24; ++seed)
    add_verdicts(wrong, {"--delay", std::to_string(seed)});
  const auto each_was_wrong = [&] {
    return std::ranges::all_of(
        wrong, [](const auto& of) { return !of.first.starts_with('!') || of.second > 0; });
  };
  // A busy machine may run the program so late that few delays outlast what it relies on.
  for (unsigned seed = 25; seed <= 500 && !each_was_wrong(); ++seed)
    add_verdicts(wrong, {"--delay", std::to_string(seed)});
  check_dependences(wrong);
  for (const auto& [name, times] : wrong) {
    CAPTURE(name, times);
    if (name.starts_with('!')) CHECK(times > 0);
  }
}

TEST_CASE("waiting is right together with every other option", "[delay]") {
  for (const std::vector<std::string>& options : {std::vector<std::string>{"--incoherent", "3"},
                                                  {"--deterministic"},
                                                  {"--early-read-index"},
                                                  {"--workers", "1"},
                                                  {"--device", "gfx906"}}) {
    Verdicts wrong;
    for (unsigned seed = 1; seed <= 4; ++seed) {
      std::vector<std::string> all{"--delay=" + std::to_string(seed)};
      all.insert(all.end(), options.begin(), options.end());
      add_verdicts(wrong, all);
    }
    CAPTURE(options);
    check_dependences(wrong);
  }
}

TEST_CASE(
    "the fence checker finds mistakes where the program relies on timing, none where it waits",
    "[delay]") {
  // Programs that rely on timing are sometimes ordered, depending on the time that the host takes.
  bool found = false;
  for (const char* seed : {"1", "2", "3", "4", "5", "6"}) {
    const CommandResult waiting =
        launch({"--delay", seed, "--check", "fences", "--", UPTEMPO_VGPU_RACES, "waiting"});
    CHECK(waiting.exit_code == 0);
    CHECK(waiting.err.starts_with("uptempo-vgpu: checked "));
    CHECK(waiting.err.find(" bytes: no findings;") != std::string::npos);
    CHECK(std::count(waiting.err.begin(), waiting.err.end(), '\n') == 1);
    CHECK(waiting.out.find("wrong") == std::string::npos);
    const CommandResult checked =
        launch({"--delay", seed, "--check", "fences", "--", UPTEMPO_VGPU_RACES});
    found = found || checked.err.find("uptempo-vgpu: unordered:") != std::string::npos;
  }
  CHECK(found);
}

// Delays of each packet by queue and index, and of each SDMA packet by queue and offset.
struct Delays {
  std::map<std::pair<unsigned, uint64_t>, std::string> packets, copies;
};

Delays delays_of(const std::string& seed) {
  const uptempo::test::TemporaryDirectory directory;
  const std::string name = directory.file("trace");
  const CommandResult finished =
      launch({"--delay", seed, "--trace", name, "--", UPTEMPO_VGPU_RACES});
  CAPTURE(finished.err);
  REQUIRE(finished.exit_code == 0);
  Delays delays;
  std::ifstream lines(name);
  for (std::string line; std::getline(lines, line);) {
    const auto event = nlohmann::json::parse(line);
    if (event.at("type") == "doorbell") continue;
    if (event.at("type") == "sdma")
      delays.copies[{event.at("queue"), event.at("offset")}] = event.at("delay_ns").dump();
    else
      delays.packets[{event.at("queue"), event.at("index")}] = event.at("delays_ns").dump();
  }
  return delays;
}

TEST_CASE("a seed delays each queue in the same way on every run", "[delay]") {
  const Delays once = delays_of("7"), again = delays_of("7"), other = delays_of("8");
  CHECK(once.packets.size() > 300);
  CHECK(again.packets == once.packets);
  CHECK(other.packets != once.packets);
  // ROCr 6.4 leaves out the poll for a dependency that is fulfilled already, so on a busy host its
  // SDMA queue has packets at other offsets. The first copy waits for nothing.
  size_t in_both = 0;
  for (const auto& [place, delay] : once.copies) {
    const auto same = again.copies.find(place);
    if (same == again.copies.end()) continue;
    CHECK(same->second == delay);
    ++in_both;
  }
  CHECK(in_both >= 5);
}

}  // namespace
}  // namespace uptempo::vgpu
