// Charts of a section of a report, as SVG to be put into HTML.
//
// Thread safety: pure functions.
#pragma once

#include <string>

#include "fence_scope/report_words.hpp"

namespace uptempo::fence_scope {

// What the cells' settings cost: a bar for each, with its interval, its verdict's sign and its time. Cells of the baseline's sizes alone where sizes vary.
std::string bar_chart(const Report& report, const Section& section);

// Time over whatever varies (kernels, bytes per kernel or working set), both logarithmic, a line for each label. Empty where nothing varies, or no time is above 0.
std::string sweep_chart(const Report& report, const Section& section);

}  // namespace uptempo::fence_scope
