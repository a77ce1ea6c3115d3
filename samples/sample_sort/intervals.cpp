#include "intervals.hpp"

#include <algorithm>

namespace uptempo::sample_sort {

std::vector<Interval> united(std::vector<Interval> intervals) {
  std::erase_if(intervals, [](const Interval& each) { return each.end_ns <= each.begin_ns; });
  std::ranges::sort(intervals);
  std::vector<Interval> result;
  for (const Interval& each : intervals) {
    if (result.empty() || result.back().end_ns < each.begin_ns) {
      result.push_back(each);
    } else {
      result.back().end_ns = std::max(result.back().end_ns, each.end_ns);
    }
  }
  return result;
}

double seconds_of(std::span<const Interval> intervals) {
  int64_t ns = 0;
  for (const Interval& each : intervals) ns += each.end_ns - each.begin_ns;
  return static_cast<double>(ns) * 1e-9;
}

std::vector<Interval> common(std::span<const Interval> a, std::span<const Interval> b) {
  std::vector<Interval> result;
  for (size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    const Interval both{.begin_ns = std::max(a[i].begin_ns, b[k].begin_ns),
                        .end_ns = std::min(a[i].end_ns, b[k].end_ns)};
    if (both.begin_ns < both.end_ns) result.push_back(both);
    if (a[i].end_ns < b[k].end_ns) {
      ++i;
    } else {
      ++k;
    }
  }
  return result;
}

}  // namespace uptempo::sample_sort
