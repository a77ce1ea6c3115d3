// The results as a table.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "measurement.hpp"

namespace uptempo::sort {

struct Report {
  bool is_virtual = false;  // times are the virtual GPU's
  uint32_t length = 0;
  uint32_t kernels = 0;
  uint32_t workgroup = 0;
  bool descending = false;
  std::vector<RungResult> rungs;
};

// "baseline", then "+ " and the switch that a rung adds. A single rung may have too many switches
// for a column: its label is "these switches", and another line has the names.
std::string rung_label(const Report& report, size_t rung);

bool is_right(const Report& report);

// The kind of sort, then times, then the counts that explain them; at most 80 columns.
std::string table(const Report& report);

}  // namespace uptempo::sort
