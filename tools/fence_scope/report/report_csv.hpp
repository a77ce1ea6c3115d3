// A Report as CSV (RFC 4180): a header, then a record for each cell, or for each packet if the
// report has packets (`explain`).
//
// The header names the columns. Times are microseconds, sizes bytes. A field that is unknown or
// does not apply is empty. Every record names device, kind of times and mode of Timing, so that
// records of several reports can be combined without comparing incomparable times. Samples are in
// the JSON only.
//
// Thread safety: pure.
#pragma once

#include <string>

#include "tools/fence_scope/report/report.hpp"

namespace uptempo::fence_scope {

std::string csv(const Report& report);

}  // namespace uptempo::fence_scope
