// How vgpu_consume_bench judges its measurements.
#include "test/support/catch.hpp"
#include "tools/bench/vgpu/consume/report.hpp"
#include "tools/bench/vgpu/consume/shares.hpp"

using namespace uptempo::vgpu::consume;
using uptempo::test::Approx;

TEST_CASE("Jain's index is 1 for equal shares and 1/n if one has all") {
  CHECK(jain_index(std::vector<double>{5, 5, 5, 5}) == Approx(1));
  CHECK(jain_index(std::vector<double>{8, 0, 0, 0}) == Approx(0.25));
  CHECK(jain_index(std::vector<double>{1, 3}) == Approx(16.0 / 20));
  CHECK(jain_index(std::vector<double>{0, 0}) == Approx(1));
}

TEST_CASE("shares are those of the worst window, and an unfinished window is ignored") {
  const std::vector<Snapshot> snapshots{{0, {0, 0}},     {10, {30, 30}},   {20, {50, 50}},
                                        {900, {90, 60}}, {901, {110, 90}}, {902, {110, 120}}};
  const Fairness shares = fairness(snapshots, 50);
  CHECK(shares.windows == 2);  // to 50 and 50, to 110 and 90
  CHECK(shares.least_to_most == Approx(40.0 / 60));
  CHECK(shares.jain == Approx(10000.0 / (2 * 5200)));
}

TEST_CASE("with too few packets for a window there are no shares") {
  const std::vector<Snapshot> snapshots{{0, {0, 0}}, {60, {99, 0}}};
  CHECK(fairness(snapshots, 50).windows == 0);
}

TEST_CASE("a bar is met when the worse end of the interval meets it") {
  Rows rows;
  rows.declare("floor", "ns");
  rows.declare("row", "ns", "floor");
  for (int round = 0; round < 6; ++round) {
    rows.add("floor", 10);
    rows.add("row", 20 + round);  // 20 to 25: six values, all of them in the interval
  }
  const std::vector<Judged> judged = judge(rows, {{"row", 25},
                                                  {"row", 24.9},
                                                  {"row", 20, true},
                                                  {"row", 20.1, true},
                                                  {"row", 2.5, false, true},
                                                  {"row", 2.4, false, true}});
  REQUIRE(judged.size() == 6);
  for (size_t bar = 0; bar < judged.size(); ++bar) {
    CAPTURE(bar);
    CHECK(judged[bar].met == (bar % 2 == 0));
  }
  CHECK(judged[0].value == Approx(25));
  CHECK(judged[2].value == Approx(20));
  CHECK(judged[4].value == Approx(2.5));
}

TEST_CASE("ratios use existing rows, and named rows are found") {
  Rows rows;
  CHECK_THROWS_AS(rows.declare("row", "ns", "floor"), std::invalid_argument);
  CHECK_THROWS_AS(rows.add("row", 1), std::invalid_argument);
}
