// The results as a table, as JSON and as a chart.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "samples/bitonic_sort/measurement.hpp"

namespace uptempo::sort {

struct Report {
  std::string device;  // for example "AMD Instinct MI210 (gfx90a)"
  bool is_virtual = false;
  uint32_t length = 0;
  uint32_t kernels = 0;
  uint32_t workgroup = 0;
  uint32_t iterations = 0;
  uint64_t seed = 0;
  bool descending = false;
  std::optional<bool> verified;  // no value: results were not compared
  std::vector<RungResult> rungs;
  // The choices for runtime and queue, as their describe() says them.
  std::string choices{};
};

// "baseline", then "+ " and the switch that a rung adds. A single rung may have too many switches
// for a column or a bar: its label is "these switches", and another line has the names.
std::string rung_label(const Report& report, size_t rung);

// The kind of sort, then times, then the counts that explain them; at most 80 columns.
std::string table(const Report& report);

// {device, virtual_gpu, length, kernels, workgroup, iterations, seed, order, verified, choices:
// [lines for a person], rungs: [{name, switches, us_per_iteration, us_low, us_high, us_coverage,
// delta_us, speedup, counts: {..., copies_by_path}}]}. us_low and us_high enclose the true median
// with probability us_coverage, 0.95 or more from 6 iterations. verified: null if results were not
// compared.
nlohmann::ordered_json json(const Report& report);
// The same as text, indented, with a newline at the end.
std::string json_text(const Report& report);

// A bar for each rung, readable on light and dark ground. The picture names the device, and says
// whether times are a virtual GPU's.
std::string svg(const Report& report);

}  // namespace uptempo::sort
