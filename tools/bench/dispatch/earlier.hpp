// An earlier report (`--json`), and how a new one compares with it: `dispatch_bench --compare OLD.json`.
//
// Only what was measured under the same conditions is compared: device, virtual or not, kernels executed or not. The two runs were not interleaved, so
// there are no ratios of rounds: a difference counts when the two 95 % intervals do not overlap.
//
// Thread safety: pure functions, but for read_earlier().
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
  double ns = 0, low = 0, high = 0;
};

struct EarlierReport {
  std::string file;
  std::string device;
  bool is_virtual = false;
  bool kernels_executed = false;
  std::vector<Figure> figures;
};

// Throws support::UsageError naming the file and what is wrong with it: it cannot be read, is cut off or no JSON, was not written by this program, was written by a newer one, or has figures
// that none can be.
EarlierReport read_earlier(const std::string& file);
EarlierReport parse_earlier(const std::string& text, const std::string& file);

// Throws support::UsageError naming the condition that differs. Looks at no results.
void require_comparable(const EarlierReport& earlier, const Report& now);

// Every figure that either of them has.
std::string comparison_table(const EarlierReport& earlier, const Report& now);
// [{"name":..,"batch":..,"phase":..,"old":..,"new":..,"ratio":..,"overlap":true}]; null where one has no figure.
nlohmann::ordered_json comparison_json(const EarlierReport& earlier, const Report& now);

}  // namespace uptempo::bench
