// A Report as one HTML file: conclusion, a matrix of verdicts and times, charts, all figures, and
// the packet headers.
//
// The file refers to nothing outside itself and has no script; all text of the report is escaped.
// Verdicts are words and signs as well as colours. It fits a phone, paper, and dark mode.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "tools/fence_scope/report/report.hpp"

namespace uptempo::fence_scope {

std::string html(const Report& report);

// Text for an element or a quoted attribute. Control characters that HTML forbids become U+FFFD.
std::string html_escaped(std::string_view text);

}  // namespace uptempo::fence_scope
