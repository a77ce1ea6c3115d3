#include "samples/bitonic_sort/options.hpp"

#include <iterator>
#include <sstream>

#include "samples/bitonic_sort/network.hpp"
#include "test/support/catch.hpp"
#include "tools/support/command_line.hpp"
#include "tools/support/program.hpp"

using namespace uptempo::sort;

namespace {

Options parse(const std::string& line) {
  uptempo::support::CommandLine app("bitonic_sort", "");
  Options options;
  declare(app, options);
  std::istringstream words(line);
  app.parse({std::istream_iterator<std::string>(words), {}});
  return options;
}

std::vector<std::string> names(const std::vector<Rung>& rungs) {
  std::vector<std::string> names;
  for (const Rung& rung : rungs) names.push_back(rung.name);
  return names;
}

}  // namespace

TEST_CASE(
    "without a switch every rung is measured: baseline, then each switch added to those before") {
  for (const char* line : {"", "--ladder"}) {
    const auto rungs = uptempo::sort::rungs(parse(line));
    CHECK(names(rungs) == std::vector<std::string>{"baseline", "prealloc-signal",
                                                   "prealloc-kernarg", "avoid-host-sync", "fence",
                                                   "pinned-host"});
    CHECK(rungs[0].switches == Switches{});
    CHECK(rungs[3].switches == Switches{true, true, true, false, false});
    CHECK(rungs[5].switches == Switches{true, true, true, true, true});
  }
}

TEST_CASE("each switch on the command line sets that switch and no other") {
  for (const SwitchInfo& info : kSwitches) {
    CAPTURE(info.name);
    Switches expected;
    expected.*info.member = true;
    const auto rungs = uptempo::sort::rungs(parse("--" + std::string(info.name)));
    REQUIRE(rungs.size() == 1);
    CHECK(rungs[0].switches == expected);
    CHECK(rungs[0].name == info.name);
  }
}

TEST_CASE("switches combine into one rung that carries their names") {
  const auto rungs = uptempo::sort::rungs(parse("--fence --prealloc-signal"));
  REQUIRE(rungs.size() == 1);
  CHECK(rungs[0].name == "prealloc-signal+fence");
  CHECK(rungs[0].switches == Switches{true, false, false, true, false});
}

TEST_CASE("--baseline measures without any switch") {
  const auto rungs = uptempo::sort::rungs(parse("--baseline"));
  CHECK(names(rungs) == std::vector<std::string>{"baseline"});
  CHECK(rungs[0].switches == Switches{});
}

TEST_CASE("contradictory options are refused") {
  for (const char* line : {"--baseline --fence", "--ladder --fence", "--ladder --baseline"}) {
    CAPTURE(line);
    CHECK_THROWS_AS(uptempo::sort::rungs(parse(line)), uptempo::support::UsageError);
  }
}

TEST_CASE("results are verified unless --no-verify is given") {
  CHECK(parse("").verify);
  CHECK(parse("--verify").verify);
  CHECK_FALSE(parse("--no-verify").verify);
}

TEST_CASE("the parser refuses values that no run can have") {
  for (const char* line : {"--iterations 0", "--iterations -3", "--iterations many", "--length x",
                           "--device moon", "--seed"}) {
    CAPTURE(line);
    CHECK_THROWS_AS(parse(line), uptempo::support::UsageError);
  }
}

TEST_CASE("2^n keys take n (n + 1) / 2 passes over half as many work-items") {
  const Network network(32768);
  CHECK(network.passes().size() == 120);
  CHECK(network.work_items() == 16384);
  CHECK(network.workgroup() == 256);
  CHECK(network.passes().front().stage == 0);
  CHECK(network.passes().back().stage == 14);
  CHECK(network.passes().back().pass == 14);
  CHECK(Network(1u << 24).passes().size() == 300);
}

TEST_CASE("small inputs have workgroups of half their keys") {
  CHECK(Network(2).workgroup() == 1);
  CHECK(Network(2).passes().size() == 1);
  CHECK(Network(64).workgroup() == 32);
  CHECK(Network(512).workgroup() == 256);
  CHECK(Network(1024).workgroup() == 256);
}

TEST_CASE(
    "lengths other than powers of two from 2 to 2^24 are refused, and the error names the valid "
    "ones") {
  for (const int64_t length :
       {int64_t{0}, int64_t{1}, int64_t{3}, int64_t{-4}, int64_t{1000}, (int64_t{1} << 24) + 1,
        int64_t{1} << 25, int64_t{1} << 32, INT64_MIN}) {
    CAPTURE(length);
    try {
      const Network network(length);
      FAIL("accepted");
    } catch (const std::invalid_argument& error) {
      CHECK(std::string(error.what()).find(std::to_string(length)) != std::string::npos);
      CHECK(std::string(error.what()).find("power of two from 2 to 16777216") != std::string::npos);
    }
  }
}
