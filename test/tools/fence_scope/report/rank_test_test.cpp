#include "tools/fence_scope/report/rank_test.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>

#include "test/support/catch.hpp"

using namespace uptempo::fence_scope;
using uptempo::test::Approx;

namespace {

// The definition: counts every way to choose the ranks of a.
double enumerated_p(size_t n, size_t m, double u) {
  std::vector<bool> of_a(n + m, false);
  std::fill(of_a.begin(), of_a.begin() + static_cast<ptrdiff_t>(n), true);
  const double mean = static_cast<double>(n * m) / 2;
  size_t all = 0, as_far = 0;
  do {
    double pairs = 0, below = 0;
    for (const bool a : of_a) a ? pairs += below : below += 1;
    ++all;
    as_far += std::abs(pairs - mean) >= std::abs(u - mean);
  } while (std::prev_permutation(of_a.begin(), of_a.end()));
  return static_cast<double>(as_far) / static_cast<double>(all);
}

}  // namespace

TEST_CASE("rank test: exact values agree with published ones") {
  // Hollander & Wolfe (1973), p. 69, permeability of membranes, as in the page of R's wilcox.test:
  // W = 35, p = 0.1272 one-sided.
  const std::vector<double> x{0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46};
  const std::vector<double> y{1.15, 0.88, 0.90, 0.74, 1.21};
  const RankTest permeability = mann_whitney(x, y);
  CHECK(permeability.exact);
  CHECK(permeability.u == 35);
  CHECK(permeability.p / 2 == Approx(0.1272).margin(0.00005));
  // The page of SciPy's mannwhitneyu, ages at onset of diabetes: U = 17, p = 1/9.
  const RankTest ages =
      mann_whitney(std::vector<double>{19, 22, 16, 29, 24}, std::vector<double>{20, 11, 17, 12});
  CHECK(ages.exact);
  CHECK(ages.u == 17);
  CHECK(ages.p == Approx(1.0 / 9));
}

TEST_CASE(
    "rank test: p crosses 0.05 at the critical values of Mann and Whitney's two-sided 5 % tables") {
  struct Entry {
    size_t n, m, critical;
  };
  for (const Entry& entry :
       {Entry{4, 4, 0}, Entry{5, 5, 2}, Entry{6, 6, 5}, Entry{7, 7, 8}, Entry{8, 8, 13},
        Entry{10, 10, 23}, Entry{5, 10, 8}, Entry{10, 20, 55}, Entry{20, 20, 127}}) {
    // Values with the requested U: b holds 1 to m; each value of a is above as many of them as are
    // left to place.
    const auto p_of = [&](size_t u) {
      std::vector<double> a, b;
      for (size_t i = 0; i < entry.m; ++i) b.push_back(static_cast<double>(i + 1));
      for (size_t i = 0; i < entry.n; ++i) {
        const size_t above = std::min(u, entry.m);
        u -= above;
        a.push_back(static_cast<double>(above) + 0.5 + static_cast<double>(i) * 1e-6);
      }
      return mann_whitney(a, b).p;
    };
    CHECK(p_of(entry.critical) <= 0.05);
    CHECK(p_of(entry.critical + 1) > 0.05);
  }
}

TEST_CASE("rank test: exact p values equal those of counting every arrangement") {
  std::mt19937_64 random(3);
  for (size_t n = 1; n <= 7; ++n) {
    for (size_t m = 1; m <= 6; ++m) {
      std::vector<double> values(n + m);
      for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i * i) + 0.25;
      std::ranges::shuffle(values, random);
      const std::span<const double> all(values);
      const RankTest test = mann_whitney(all.first(n), all.subspan(n));
      CHECK(test.exact);
      CHECK(test.p == Approx(enumerated_p(n, m, test.u)));
      const RankTest swapped = mann_whitney(all.subspan(n), all.first(n));
      CHECK(swapped.u == static_cast<double>(n * m) - test.u);
      CHECK(swapped.p == Approx(test.p));
    }
  }
}

TEST_CASE("rank test: values with ties, by the normal approximation, agree with published ones") {
  // R's airquality, ozone in May and August: wilcox.test gives W = 127.5, p = 0.0001208.
  const std::vector<double> may{41, 36, 12, 18, 28, 23, 19, 8, 7,  16, 11, 14,  18,
                                14, 34, 6,  30, 11, 1,  11, 4, 32, 23, 45, 115, 37};
  const std::vector<double> august{39, 9,  16, 78, 35, 66, 122, 89,  110, 44, 28,  65, 22,
                                   59, 23, 31, 44, 21, 9,  45,  168, 73,  76, 118, 84, 85};
  const RankTest ozone = mann_whitney(may, august);
  CHECK(!ozone.exact);
  CHECK(ozone.u == 127.5);
  CHECK(ozone.p == Approx(0.0001208).margin(0.00000005));
}

TEST_CASE(
    "rank test: groups of one equal value do not differ; separate groups do, larger ones more") {
  const std::vector<double> ones(10, 1.0);
  CHECK(mann_whitney(ones, ones).p == 1);
  std::vector<double> low, high;
  double before = 1.1;
  for (int i = 0; i < 40; ++i) {
    low.push_back(i);
    high.push_back(1000 + i);
    const double p = mann_whitney(low, high).p;
    // from here on the approximation applies, which is cautious at such extremes
    if (i == 25) before = 1;
    CHECK(p < before);
    before = p;
  }
  CHECK(before < 1e-10);
}

TEST_CASE("rank test: empty groups and NaN are refused") {
  const std::vector<double> some{1, 2}, none, unknown{std::numeric_limits<double>::quiet_NaN()};
  CHECK_THROWS_AS(mann_whitney(some, none), std::invalid_argument);
  CHECK_THROWS_AS(mann_whitney(none, some), std::invalid_argument);
  CHECK_THROWS_AS(mann_whitney(some, unknown), std::invalid_argument);
}

TEST_CASE("Holm's correction: values agree with published ones, in the order of the input") {
  // R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm") is 0.03, 0.06, 0.06, 0.02.
  const std::vector<double> adjusted = holm(std::vector<double>{0.01, 0.04, 0.03, 0.005});
  REQUIRE(adjusted.size() == 4);
  CHECK(adjusted[0] == Approx(0.03));
  CHECK(adjusted[1] == Approx(0.06));
  CHECK(adjusted[2] == Approx(0.06));
  CHECK(adjusted[3] == Approx(0.02));
  CHECK(holm({}).empty());
  CHECK(holm(std::vector<double>{0.9, 0.8}) == std::vector<double>{1, 1});
}
