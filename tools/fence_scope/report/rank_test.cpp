#include "tools/fence_scope/report/rank_test.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

namespace uptempo::fence_scope {
namespace {

// Counts stay below 2^53, so that doubles hold them exactly: C(50, 25) is 1.3e14.
constexpr size_t kMostExact = 50;

// Number of arrangements of n and m values for each U: the coefficients of the Gaussian binomial,
// product of (1 - q^(n+i)) / (1 - q^i) for i = 1..m.
std::vector<double> arrangements(size_t n, size_t m) {
  std::vector<double> counts(n * m + 1, 0);
  counts[0] = 1;
  for (size_t i = 1; i <= m; ++i) {
    for (size_t u = counts.size(); u-- > n + i;) counts[u] -= counts[u - n - i];
    for (size_t u = i; u < counts.size(); ++u) counts[u] += counts[u - i];
  }
  return counts;
}

double exact_p(double u, size_t n, size_t m) {
  const std::vector<double> counts = arrangements(n, m);
  const double all = std::accumulate(counts.begin(), counts.end(), 0.0);
  const auto nearer_end = static_cast<size_t>(std::min(u, static_cast<double>(n * m) - u));
  const double tail =
      std::accumulate(counts.begin(), counts.begin() + static_cast<ptrdiff_t>(nearer_end) + 1, 0.0);
  return std::min(1.0, 2 * tail / all);
}

double approximate_p(double u, double n, double m, double tie_term) {
  const double total = n + m;
  const double variance = n * m / 12 * ((total + 1) - tie_term / (total * (total - 1)));
  if (!(variance > 0)) return 1;  // all values are equal
  const double z = std::max(0.0, std::abs(u - n * m / 2) - 0.5) / std::sqrt(variance);
  return std::min(1.0, std::erfc(z / std::sqrt(2.0)));
}

}  // namespace

RankTest mann_whitney(std::span<const double> a, std::span<const double> b) {
  if (a.empty() || b.empty())
    throw std::invalid_argument("a rank test needs at least one value in each group");
  struct Value {
    double value;
    bool of_a;
  };
  std::vector<Value> all;
  for (const double value : a) all.push_back({value, true});
  for (const double value : b) all.push_back({value, false});
  if (!std::ranges::all_of(all, [](const Value& each) { return std::isfinite(each.value); }))
    throw std::invalid_argument("a rank test needs finite values");
  std::ranges::sort(all, {}, &Value::value);

  double rank_sum = 0, tie_term = 0;
  for (size_t begin = 0; begin < all.size();) {
    size_t end = begin;
    while (end < all.size() && all[end].value == all[begin].value) ++end;
    const auto tied = static_cast<double>(end - begin);
    const double rank = static_cast<double>(begin + 1 + end) / 2;  // mean of begin+1 .. end
    for (size_t i = begin; i < end; ++i) rank_sum += all[i].of_a ? rank : 0;
    tie_term += tied * tied * tied - tied;
    begin = end;
  }
  const auto n = static_cast<double>(a.size()), m = static_cast<double>(b.size());
  RankTest test{
      .u = rank_sum - n * (n + 1) / 2, .p = 1, .exact = tie_term == 0 && all.size() <= kMostExact};
  test.p = test.exact ? exact_p(test.u, a.size(), b.size()) : approximate_p(test.u, n, m, tie_term);
  return test;
}

std::vector<double> holm(std::span<const double> p_values) {
  std::vector<size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return p_values[i]; });
  std::vector<double> adjusted(p_values.size());
  double largest = 0;
  for (size_t rank = 0; rank < order.size(); ++rank) {
    largest = std::max(largest, static_cast<double>(order.size() - rank) * p_values[order[rank]]);
    adjusted[order[rank]] = std::min(1.0, largest);
  }
  return adjusted;
}

}  // namespace uptempo::fence_scope
