// Statistics of a few timings without an assumption about their distribution. Times on a shared
// machine have a long right tail, so the median represents them and ranks give its interval.
//
// Thread safety: pure functions.
#pragma once

#include <span>

namespace uptempo::support {

// The middle value, or the mean of the two middle values. Throws std::invalid_argument if `values`
// is empty.
double median(std::span<const double> values);

// The median of the values' distances from their median; not scaled to a standard deviation. Throws
// std::invalid_argument if `values` is empty.
double median_absolute_deviation(std::span<const double> values);

struct MedianInterval {
  double median = 0;
  double low = 0;
  double high = 0;
  // Probability that the interval holds the true median; below the requested confidence if there
  // are too few values.
  double coverage = 0;
};

// The narrowest symmetric pair of ranks that holds the true median with at least `confidence`. The
// number of values below the median is binomial (n, 1/2) for any distribution. Fewer than 6 values
// cannot give 95 %: the interval then spans all of them, and `coverage` holds the confidence
// reached.
// Errors: std::invalid_argument if `values` is empty.
MedianInterval median_interval(std::span<const double> values, double confidence = 0.95);

// The same for the ratios a[i] / b[i] of values taken in pairs. Throws std::invalid_argument if the
// lengths differ or are 0.
MedianInterval median_ratio(std::span<const double> a, std::span<const double> b);

}  // namespace uptempo::support
