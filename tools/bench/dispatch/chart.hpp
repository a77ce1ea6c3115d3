// A chart of a report: host nanoseconds per dispatch by batch length, both logarithmic, with a
// panel for each phase and a line for each row.
//
// Thread safety: pure.
#pragma once

#include <string>

#include "tools/bench/dispatch/report.hpp"

namespace uptempo::bench {

// A complete SVG image. Throws std::runtime_error if the report has no figures.
std::string svg(const Report& report);

}  // namespace uptempo::bench
