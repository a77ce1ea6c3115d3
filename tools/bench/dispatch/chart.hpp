// A chart of a report: host nanoseconds per dispatch over the length of the batch, both logarithmic, a panel for each phase and a line for each row.
//
// Thread safety: pure.
#pragma once

#include <string>

#include "tools/bench/dispatch/report.hpp"

namespace uptempo::bench {

// An SVG image, complete in itself. Throws std::runtime_error when the report has no figure.
std::string svg(const Report& report);

}  // namespace uptempo::bench
