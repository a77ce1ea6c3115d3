// Charts of a report: host nanoseconds per dispatch by batch length, both logarithmic, with a panel
// for each phase and a line for each row. The first chart has five rows, each with a colour and a
// mark of its own; the second one has all others, each with a pair of colour and mark of its own.
//
// Thread safety: pure.
#pragma once

#include <string>

#include "tools/bench/dispatch/report.hpp"

namespace uptempo::bench {

// Complete SVG images. Throw std::runtime_error if the report has no rows for them.
std::string svg(const Report& report);
std::string svg_of_rest(const Report& report);

}  // namespace uptempo::bench
