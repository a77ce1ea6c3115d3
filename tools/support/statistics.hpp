// What a handful of timings says, without assuming how they are distributed: times on a shared machine have a long right tail, so the
// median stands for them and ranks give its interval.
//
// Thread safety: pure functions.
#pragma once

#include <span>

namespace uptempo::support {

// The middle value, or the mean of the two middle ones. Throws std::invalid_argument when there is none.
double median(std::span<const double> values);

// Median absolute deviation: the median of the values' distances from their median; not scaled to anybody's standard deviation. Throws
// std::invalid_argument when there is no value.
double median_absolute_deviation(std::span<const double> values);

struct MedianInterval {
  double median = 0;
  double low = 0;
  double high = 0;
  double coverage =
      0;  // probability that the interval holds the true median; below the one asked for when there are too few values
};

// The narrowest symmetric pair of ranks that holds the true median with at least `confidence`: the number of values below it is binomial
// (n, 1/2), whatever the distribution. Fewer than 6 values cannot give 95 %: then all of them are spanned and `coverage` says how much that is.
// Throws std::invalid_argument when there is no value.
MedianInterval median_interval(std::span<const double> values, double confidence = 0.95);

// The same of the ratios a[i] / b[i] of values that were taken in pairs. Throws std::invalid_argument when the lengths differ or are 0.
MedianInterval median_ratio(std::span<const double> a, std::span<const double> b);

}  // namespace uptempo::support
