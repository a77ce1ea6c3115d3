// Tests whether two groups of values differ: Mann and Whitney (1947), for any distribution.
//
// Thread safety: pure functions.
#pragma once

#include <span>
#include <vector>

namespace uptempo::fence_scope {

struct RankTest {
  double u = 0;  // pairs (a, b) with a > b, ties counted half
  // two-sided: probability of a U at least as far from its mean if both groups have the same
  // distribution
  double p = 1;
  // true: by counting arrangements; false: by the normal approximation, corrected for ties and
  // continuity
  bool exact = false;
};

// Exact for up to 50 values without ties. Throws std::invalid_argument if a group is empty or a
// value is not finite.
RankTest mann_whitney(std::span<const double> a, std::span<const double> b);

// Adjusts the p values of simultaneous tests by Holm (1979). If values below 0.05 are called
// differences, the probability of any false one stays below 5 %, for any dependence between the
// tests.
std::vector<double> holm(std::span<const double> p_values);

}  // namespace uptempo::fence_scope
