// Charts of a section of a report, as SVG for HTML.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "tools/fence_scope/report/report_words.hpp"

namespace uptempo::fence_scope {

// Charts show the times that recommendations use (experiment.hpp): gated times; on a virtual GPU
// the model's if all cells have one, since its own times say nothing about a device.

// A bar per cell, the smallest first, with its interval, its verdict's sign and its time. If sizes
// vary, only cells of the largest. Empty for fewer than two cells.
std::string bar_chart(const Report& report, const Section& section);

// A chart for each size that varies alone (kernels, bytes per kernel, working set): time relative
// to the baseline's of the same sizes, a line for each label. If no size varies alone, one chart of
// all.
std::vector<std::string> sweep_charts(const Report& report, const Section& section);

}  // namespace uptempo::fence_scope
