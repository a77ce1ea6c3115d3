// Charts of a section of a report, as SVG to be put into HTML.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "tools/fence_scope/report/report_words.hpp"

namespace uptempo::fence_scope {

// Charts show what recommendations rest on (experiment.hpp): gated times; on a virtual GPU, whose own times say nothing about a device, the model's where all cells have one.

// A bar for each cell, the least first, with its interval, its verdict's sign and its time. Where sizes vary, cells of the largest alone. Empty for fewer than two.
std::string bar_chart(const Report& report, const Section& section);

// For each size that varies by itself (kernels, bytes per kernel, working set): time relative to the baseline's of the same sizes, a line for each label. Where no size varies without others, one chart of all.
std::vector<std::string> sweep_charts(const Report& report, const Section& section);

}  // namespace uptempo::fence_scope
