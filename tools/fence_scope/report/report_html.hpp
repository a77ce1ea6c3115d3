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
#include <vector>

#include "tools/fence_scope/report/report_words.hpp"

namespace uptempo::fence_scope {

std::string html(const Report& report);

// The parts of the file, in report_html.cpp and report_html_cells.cpp.

// Text for an element or a quoted attribute. Control characters that HTML forbids become U+FFFD.
std::string html_escaped(std::string_view text);
// The same, with the sign ± instead of "+-".
std::string in_html(std::string_view text);

// The recommended cell, then the correct ones; the others follow. Otherwise in the given order.
std::vector<const Cell*> correct_first(std::vector<const Cell*> cells);

// The matrix or list of a section, and the reasons of verdicts, by number.
std::string cells_html(const Section& section);
// A row for each cell, with all its figures.
std::string figures_html(const Report& report, const Section& section);

}  // namespace uptempo::fence_scope
