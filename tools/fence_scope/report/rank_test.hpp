// Whether two groups of values differ: the test of Mann and Whitney (1947), which asks nothing of how they are distributed.
//
// Thread safety: pure functions.
#pragma once

#include <span>
#include <vector>

namespace uptempo::fence_scope {

struct RankTest {
  double u = 0;  // pairs (a, b) with a > b, ties counted half
  double p =
      1;  // two-sided: how likely a U as far from its mean is where both groups are of one distribution
  bool exact =
      false;  // by counting arrangements; else by the normal approximation, corrected for ties and continuity
};

// Exact for up to 50 values without ties. Throws std::invalid_argument when a group is empty or a value is no finite number.
RankTest mann_whitney(std::span<const double> a, std::span<const double> b);

// p values of as many tests made at once, adjusted by Holm (1979): where those below 0.05 are called differences, the chance that any of them is none stays below 5 %,
// however the tests depend on one another.
std::vector<double> holm(std::span<const double> p_values);

}  // namespace uptempo::fence_scope
