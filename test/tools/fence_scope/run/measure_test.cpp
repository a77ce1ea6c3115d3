#include "tools/fence_scope/run/measure.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "test/support/catch.hpp"

using namespace uptempo::fence_scope;
using uptempo::test::Approx;

namespace {

// A bench whose runs take the times of `us`, on a clock that only they advance.
struct FakeBench {
  std::function<double(size_t configuration, uint32_t run)> us;
  std::vector<uint32_t> runs = std::vector<uint32_t>(8);
  std::vector<std::pair<size_t, Release>> order{};
  double seconds = 0;

  std::vector<Measured> measured(size_t configurations, const Method& method) {
    return measure(
        configurations, method,
        [this](size_t configuration, Release release) {
          order.emplace_back(configuration, release);
          const double time = us(configuration, runs[configuration]++);
          seconds += time / 1e6;
          return Bench::Run{.us = time, .device_us = time / 2, .correct = configuration != 1};
        },
        [this] { return seconds; });
  }
};

double steady(size_t configuration, uint32_t) {
  return 100.0 * static_cast<double>(configuration + 1);
}
double wild(size_t, uint32_t run) { return run % 4 < 2 ? 1 : 1000; }

}  // namespace

TEST_CASE("steady configurations take only the rounds that an interval requires") {
  FakeBench bench{steady};
  const std::vector<Measured> measured = bench.measured(3, {});
  REQUIRE(measured.size() == 3);
  for (size_t i = 0; i < 3; ++i) {
    const Times& gated = measured[i].gated;
    CHECK(gated.samples_us.size() == 6);
    CHECK(gated.median_us == steady(i, 0));
    CHECK(gated.mad_us == 0);
    CHECK(gated.low_us == gated.high_us);
    CHECK(gated.coverage == Approx(0.96875));
    CHECK_FALSE(gated.noisy);
    CHECK(measured[i].ungated.samples_us.size() == 6);
    REQUIRE(measured[i].device);
    CHECK(measured[i].device->median_us == steady(i, 0) / 2);
    CHECK(measured[i].device->samples_us.size() == 6);  // only gated runs
  }
}

TEST_CASE(
    "every round runs each configuration once gated and once ungated, in an order drawn from the "
    "seed") {
  FakeBench bench{steady};
  (void)bench.measured(4, {.seed = 7});
  REQUIRE(bench.order.size() == (1 + 6) * 8);
  std::set<std::vector<std::pair<size_t, Release>>> orders;
  for (auto round = bench.order.begin(); round != bench.order.end(); round += 8) {
    const std::vector<std::pair<size_t, Release>> turns(round, round + 8);
    CHECK(std::set(turns.begin(), turns.end()).size() == 8);
    orders.insert(turns);
  }
  CHECK(orders.size() > 1);

  FakeBench again{steady}, other{steady};
  (void)again.measured(4, {.seed = 7});
  (void)other.measured(4, {.seed = 8});
  CHECK(again.order == bench.order);
  CHECK(other.order != bench.order);
}

TEST_CASE("rounds of the warm-up are not timed, but their wrong results count") {
  FakeBench bench{[](size_t, uint32_t run) { return run < 2 * 3 ? 1e5 : 10.0; }};
  const std::vector<Measured> measured = bench.measured(2, {.warm_up = 3});
  CHECK(measured[0].gated.samples_us == std::vector<double>(6, 10.0));
  CHECK(measured[0].wrong_runs == 0);
  CHECK(measured[1].runs == 2 * (3 + 6));
  CHECK(measured[1].wrong_runs == measured[1].runs);
}

TEST_CASE(
    "one uncertain configuration keeps all of them running until the bound, and is called noisy") {
  FakeBench bench{[](size_t configuration, uint32_t run) {
    return configuration == 2 ? wild(configuration, run) : steady(configuration, run);
  }};
  const std::vector<Measured> measured = bench.measured(3, {.most_rounds = 25});
  for (const Measured& each : measured) CHECK(each.gated.samples_us.size() == 25);
  CHECK_FALSE(measured[0].gated.noisy);
  CHECK(measured[2].gated.noisy);
  CHECK(measured[2].ungated.noisy);
}

TEST_CASE("rounds end when the interval is as narrow as requested, and not before") {
  // Alternates 5 % around the middle: certain to 6 % as soon as there is an interval, never to 1 %.
  const auto alternate = [](size_t, uint32_t run) { return run % 4 < 2 ? 95.0 : 105.0; };
  FakeBench loose{alternate}, tight{alternate};
  CHECK(loose.measured(1, {.precision = 0.06})[0].gated.samples_us.size() == 6);
  const std::vector<Measured> measured = tight.measured(1, {.most_rounds = 30, .precision = 0.01});
  CHECK(measured[0].gated.samples_us.size() == 30);
  CHECK(measured[0].gated.noisy);
}

TEST_CASE("no round begins after the given seconds, but at least one is timed") {
  FakeBench bench{[](size_t, uint32_t) { return 1e6; }};  // two seconds per round
  CHECK(bench.measured(1, {.seconds = 9})[0].gated.samples_us.size() == 4);
  FakeBench late{[](size_t, uint32_t) { return 1e6; }};
  const std::vector<Measured> measured = late.measured(1, {.warm_up = 5, .seconds = 3});
  CHECK(measured[0].gated.samples_us.size() == 1);
  CHECK(measured[0].gated.noisy);
}

TEST_CASE("seconds of the whole run end a round between two runs, and its times are dropped") {
  // Two configurations: a round is four runs of a second.
  FakeBench bench{[](size_t, uint32_t) { return 1e6; }};
  const std::vector<Measured> measured =
      bench.measured(2, {.run_seconds = 20, .begun = 0, .precision = 1e-9});
  // 0.9 of them are the rounds': a warm-up, three rounds, and half of a round.
  CHECK(bench.seconds == 18);
  for (const Measured& each : measured) {
    CHECK(each.gated.samples_us.size() == 3);
    CHECK(each.ungated.samples_us.size() == 3);
    CHECK(each.device->samples_us.size() == 3);
  }
  CHECK(measured[0].runs + measured[1].runs == 18);
}

TEST_CASE("if the whole run's seconds end in the first round, the runs that had time are kept") {
  FakeBench bench{[](size_t, uint32_t) { return 1e6; }};
  // The warm-up has a quarter of the 4.5 seconds, and the round three of its four runs.
  const std::vector<Measured> measured = bench.measured(2, {.run_seconds = 5, .begun = 0});
  CHECK(bench.seconds == 5);
  size_t kept = 0;
  for (const Measured& each : measured)
    kept += each.gated.samples_us.size() + each.ungated.samples_us.size();
  CHECK(kept == 3);
}

TEST_CASE("a run whose seconds are over before its rounds measures nothing") {
  FakeBench bench{steady};
  bench.seconds = 100;
  const std::vector<Measured> measured = bench.measured(2, {.run_seconds = 50, .begun = 10});
  for (const Measured& each : measured) {
    CHECK(each.runs == 0);
    CHECK(each.gated.samples_us.empty());
  }
  CHECK(seconds_left({.run_seconds = 50, .begun = 10}, kWholeShare, 20) == 40);
  CHECK(seconds_left({.run_seconds = 50, .begun = 10}, kEvidenceShare, 90) == 0);
  CHECK_FALSE(seconds_left({}, kWholeShare, 20));
}

TEST_CASE("fewer rounds than an interval requires leave the median uncertain") {
  FakeBench bench{steady};
  const std::vector<Measured> measured = bench.measured(1, {.most_rounds = 3});
  CHECK(measured[0].gated.samples_us.size() == 3);
  CHECK(measured[0].gated.noisy);
  CHECK(std::isinf(uncertainty(measured[0].gated)));
}

TEST_CASE("no configurations give no measurements") {
  FakeBench bench{steady};
  CHECK(bench.measured(0, {}).empty());
  CHECK(times_of({}, 0.05).samples_us.empty());
}
