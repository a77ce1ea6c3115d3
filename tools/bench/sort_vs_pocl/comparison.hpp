// Times two ways of doing the same work in pairs.
//
// Each pair runs both back to back and alternates which one is first, so that a drift of the
// machine's speed affects both alike. The result is the median of the pairs' ratios with its 95 %
// interval, not a ratio of medians.
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

// `ours` and `peer` return the microseconds of one run. `progress` is called for each pair. SIGINT
// ends the comparison after a pair.
Comparison compare(uint32_t pairs, const std::function<double()>& ours,
                   const std::function<double()>& peer,
                   const std::function<void(const std::string&, uint32_t done)>& progress = {});

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
