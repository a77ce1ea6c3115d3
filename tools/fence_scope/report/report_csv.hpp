// A Report as CSV: RFC 4180, a header, then one record for each cell; of a report that has packets (`explain`), for each of these instead.
//
// Columns are named in the header; times are microseconds, sizes bytes. What is not known or does not apply is an empty field. Every record names device, kind of times and
// mode of Timing, so that records of several reports can be put together without comparing what cannot be compared. Samples are in the JSON alone.
//
// Thread safety: pure.
#pragma once

#include <string>

#include "tools/fence_scope/report/report.hpp"

namespace uptempo::fence_scope {

std::string csv(const Report& report);

}  // namespace uptempo::fence_scope
