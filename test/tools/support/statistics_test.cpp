#include "tools/support/statistics.hpp"

#include <numeric>
#include <vector>

#include "test/support/catch.hpp"

using uptempo::support::median;
using uptempo::support::median_absolute_deviation;
using uptempo::support::median_interval;
using uptempo::support::median_ratio;
using uptempo::test::Approx;

namespace {

std::vector<double> one_to(int n) {
  std::vector<double> values(static_cast<size_t>(n));
  std::iota(values.begin(), values.end(), 1.0);
  return values;
}

}  // namespace

TEST_CASE(
    "the median is the middle value, or the mean of the two middle ones, in any input order") {
  CHECK(median(std::vector<double>{7}) == 7);
  CHECK(median(std::vector<double>{9, 1, 5}) == 5);
  CHECK(median(std::vector<double>{4, 1, 3, 2}) == 2.5);
  CHECK(median(std::vector<double>{1e9, 1, 2}) == 2);
}

TEST_CASE("the median of no values is refused") {
  CHECK_THROWS_AS(median({}), std::invalid_argument);
  CHECK_THROWS_AS(median_interval({}), std::invalid_argument);
  CHECK_THROWS_AS(median_absolute_deviation({}), std::invalid_argument);
}

TEST_CASE("the interval takes the ranks that published tables give for 95 %") {
  // n, lower rank, upper rank, coverage: W. J. Conover, Practical Nonparametric Statistics,
  // sign-test table.
  struct Row {
    int n, low, high;
    double coverage;
  };
  for (const Row& row :
       {Row{6, 1, 6, 0.9688}, Row{10, 2, 9, 0.9785}, Row{15, 4, 12, 0.9648}, Row{20, 6, 15, 0.9586},
        Row{25, 8, 18, 0.9567}, Row{30, 10, 21, 0.9572}, Row{40, 14, 27, 0.9615}}) {
    CAPTURE(row.n);
    const auto interval = median_interval(one_to(row.n));
    CHECK(interval.low == row.low);
    CHECK(interval.high == row.high);
    CHECK(interval.coverage == Approx(row.coverage).margin(0.0001));
  }
}

TEST_CASE("with too few values for 95 % the interval spans them all and reports its coverage") {
  const auto five = median_interval(one_to(5));
  CHECK(five.low == 1);
  CHECK(five.high == 5);
  CHECK(five.coverage == Approx(0.9375));
  const auto one = median_interval(std::vector<double>{3});
  CHECK(one.low == 3);
  CHECK(one.high == 3);
  CHECK(one.coverage == 0);
}

TEST_CASE("thousands of values neither overflow nor widen the interval") {
  const auto interval = median_interval(one_to(10001));
  CHECK(interval.median == 5001);
  CHECK(interval.low > 4890);
  CHECK(interval.low < 4910);
  CHECK(interval.low + interval.high == Approx(10002));
  CHECK(interval.coverage >= 0.95);
}

TEST_CASE("a ratio of pairs is the median of the pairs' ratios, and requires pairs") {
  const std::vector<double> a{1, 20, 3}, b{2, 10, 3};
  CHECK(median_ratio(a, b).median == 1);
  CHECK(median_ratio(a, b).low == 0.5);
  CHECK(median_ratio(a, b).high == 2);
  CHECK_THROWS_AS(median_ratio(a, {}), std::invalid_argument);
  CHECK_THROWS_AS(median_ratio({}, {}), std::invalid_argument);
}

TEST_CASE(
    "the median absolute deviation uses distances from the median, and one outlier does not change "
    "it") {
  CHECK(median_absolute_deviation(std::vector<double>{5}) == 0);
  CHECK(median_absolute_deviation(std::vector<double>{1, 1, 2, 2, 4, 6, 9}) == 1);
  CHECK(median_absolute_deviation(std::vector<double>{1, 2, 3, 4, 1e9}) == 1);
  CHECK(median_absolute_deviation(std::vector<double>{4, 1, 3, 2}) == 1);
}
