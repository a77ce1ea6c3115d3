// Two ways of doing the same thing, timed in pairs.
//
// Each pair runs both, back to back, and the one that goes first alternates, so that a machine whose speed drifts treats them alike. The
// figure is the median of the pairs' ratios with its 95 % interval, not a ratio of medians.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/support/statistics.hpp"

namespace uptempo::bench {

struct Comparison {
  std::vector<double> ours_us;
  std::vector<double> peer_us;

  support::MedianInterval ours() const { return support::median_interval(ours_us); }
  support::MedianInterval peer() const { return support::median_interval(peer_us); }
  support::MedianInterval ratio() const;  // ours / peer: below 1, ours is faster
};

// `ours` and `peer` return the microseconds that one run took. `progress` is told of each pair.
Comparison compare(uint32_t pairs, const std::function<double()>& ours, const std::function<double()>& peer,
                   const std::function<void(const std::string&)>& progress = {});

struct SortComparisonReport {
  std::string device;
  bool is_virtual = true;
  std::string peer_device;
  std::string peer_version;
  uint32_t length = 0;
  uint32_t kernels = 0;
  uint32_t cores = 0;
  Comparison comparison;
};

std::string table(const SortComparisonReport& report);
nlohmann::ordered_json json(const SortComparisonReport& report);

}  // namespace uptempo::bench
