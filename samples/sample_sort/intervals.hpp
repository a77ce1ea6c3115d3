// Intervals of time: how long something lasted, and how long two things lasted at once.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace uptempo::sample_sort {

struct Interval {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  friend auto operator<=>(const Interval&, const Interval&) = default;
};

// The same points of time as disjoint intervals in ascending order. Intervals that end before they
// begin hold no time.
std::vector<Interval> united(std::vector<Interval> intervals);

// Sum of the lengths, in seconds.
double seconds_of(std::span<const Interval> intervals);

// The points of time in both. Both are disjoint and ascending.
std::vector<Interval> common(std::span<const Interval> a, std::span<const Interval> b);

}  // namespace uptempo::sample_sort
