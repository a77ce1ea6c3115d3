#include "tools/support/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <vector>

namespace uptempo::support {
namespace {

std::vector<double> sorted(std::span<const double> values) {
  if (values.empty()) throw std::invalid_argument("median() needs at least one value");
  std::vector<double> copy(values.begin(), values.end());
  std::sort(copy.begin(), copy.end());
  return copy;
}

double middle(const std::vector<double>& ascending) {
  const size_t half = ascending.size() / 2;
  return ascending.size() % 2 == 1 ? ascending[half] : (ascending[half - 1] + ascending[half]) / 2;
}

}  // namespace

double median(std::span<const double> values) { return middle(sorted(values)); }

double median_absolute_deviation(std::span<const double> values) {
  const double center = median(values);
  std::vector<double> distances(values.begin(), values.end());
  for (double& value : distances) value = std::abs(value - center);
  return median(distances);
}

MedianInterval median_interval(std::span<const double> values, double confidence) {
  const std::vector<double> ascending = sorted(values);
  const auto n = static_cast<double>(ascending.size());
  // Probability that exactly k values are below the true median. Computed through logarithms,
  // because 2^-n underflows double at n = 1075.
  const auto probability = [n](double k) {
    return std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) -
                    n * std::log(2.0));
  };
  size_t dropped = 0;  // values outside the interval on either side
  double tail = probability(0);
  for (;;) {
    const double next_tail = tail + probability(static_cast<double>(dropped + 1));
    if (1 - 2 * next_tail < confidence || 2 * (dropped + 1) >= ascending.size()) break;
    tail = next_tail;
    ++dropped;
  }
  return {.median = middle(ascending),
          .low = ascending[dropped],
          .high = ascending[ascending.size() - 1 - dropped],
          .coverage = ascending.size() == 1 ? 0 : 1 - 2 * tail};
}

MedianInterval median_ratio(std::span<const double> a, std::span<const double> b) {
  if (a.size() != b.size())
    throw std::invalid_argument("median_ratio() needs two ranges of the same length, at least 1");
  std::vector<double> ratios(a.size());
  std::transform(a.begin(), a.end(), b.begin(), ratios.begin(), std::divides<>());
  return median_interval(ratios);
}

}  // namespace uptempo::support
