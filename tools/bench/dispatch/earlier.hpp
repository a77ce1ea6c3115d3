// Reads an earlier report (`--json`) and compares a new one with it: `dispatch_bench --compare
// OLD.json`.
//
// Only reports of the same conditions are comparable: device, virtual or not, kernels executed or
// not. The two runs were not interleaved, so there are no ratios of rounds. A difference counts if
// the two 95 % intervals do not overlap.
//
// Thread safety: pure functions, except read_earlier().
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/bench/dispatch/report.hpp"

namespace uptempo::bench {

struct Figure {
  std::string name;
  uint32_t batch = 0;
  Phase phase = Phase::submit;
  support::MedianInterval ns{};
};

struct EarlierReport {
  std::string file;
  std::string device;
  bool is_virtual = false;
  bool kernels_executed = false;
  std::vector<Figure> figures;
};

// Errors: support::UsageError naming the file and the reason: it cannot be read, is truncated or
// not JSON, is from another program or a newer version, or has impossible figures.
EarlierReport read_earlier(const std::string& file);
EarlierReport parse_earlier(const std::string& text, const std::string& file);

// Throws support::UsageError naming the condition that differs. Does not read results.
void require_comparable(const EarlierReport& earlier, const Report& now);

// Every figure of either report.
std::string comparison_table(const EarlierReport& earlier, const Report& now);
// [{"name":..,"batch":..,"phase":..,"old":..,"new":..,"ratio":..,"overlap":true}]; null where one
// report has no figure.
nlohmann::ordered_json comparison_json(const EarlierReport& earlier, const Report& now);

}  // namespace uptempo::bench
