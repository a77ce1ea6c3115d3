#include "tools/support/rounds.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include "test/support/catch.hpp"
#include "tools/support/command_line.hpp"
#include "tools/support/program.hpp"

using namespace uptempo::support;

namespace {

std::vector<size_t> order_of(const Rounds& rounds, size_t turns) {
  std::vector<size_t> order;
  take_turns(rounds, turns, [&](size_t turn) { order.push_back(turn); });
  return order;
}

}  // namespace

TEST_CASE("every participant takes one turn per round, and rounds differ in their order") {
  const std::vector<size_t> order = order_of({.count = 50}, 4);
  REQUIRE(order.size() == 50 * 4);
  std::set<std::vector<size_t>> seen;
  for (auto round = order.begin(); round != order.end(); round += 4) {
    seen.emplace(round, round + 4);
    CHECK(std::is_permutation(round, round + 4, std::vector<size_t>{0, 1, 2, 3}.begin()));
  }
  CHECK(seen.size() > 12);  // of the 24 possible orders
}

TEST_CASE("the order depends on the seed alone") {
  CHECK(order_of({.count = 20, .seed = 3}, 8) == order_of({.count = 20, .seed = 3}, 8));
  CHECK(order_of({.count = 20, .seed = 3}, 8) != order_of({.count = 20, .seed = 4}, 8));
}

TEST_CASE("rounds without a known number continue until a condition holds, in the same order") {
  std::vector<size_t> order;
  std::vector<uint32_t> asked;
  take_turns(
      3, 8, [&](size_t turn) { order.push_back(turn); },
      [&](uint32_t rounds) {
        asked.push_back(rounds);
        return order.size() >= 20;
      });
  CHECK(order == order_of({.count = 3, .seed = 3}, 8));
  CHECK(asked == std::vector<uint32_t>{0, 1, 2, 3});
}

TEST_CASE("the list of participants may be empty") { CHECK(order_of({}, 0).empty()); }

TEST_CASE("the options keep the program's defaults, and too few rounds are refused") {
  Rounds rounds{.count = 30, .seed = 5};
  CommandLine app("rounds", "");
  add_rounds_options(app, rounds, 20);
  CHECK(app.parse({"--help"}).value().find("at least 20 (30)") != std::string::npos);
  CHECK_THROWS_AS(app.parse({"--rounds", "19"}), UsageError);
  app.parse({"--seed", "7"});
  CHECK(rounds.count == 30);
  CHECK(rounds.seed == 7);
  app.parse({"--rounds", "20"});
  CHECK(rounds.count == 20);
}
