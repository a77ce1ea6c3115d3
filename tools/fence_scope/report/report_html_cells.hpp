// The cells of a report as HTML tables: one matrix of all flags, or a list, then the reasons of
// verdicts, and all figures.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/fence_scope/report/report_words.hpp"

namespace uptempo::fence_scope {

// Escaped, with the sign ± instead of "+-".
std::string in_html(std::string_view text);

// The recommended cell, then the correct ones; the others follow. Otherwise in the given order.
std::vector<const Cell*> correct_first(std::vector<const Cell*> cells);

// The matrix or list of a section, and the reasons of verdicts, by number.
std::string cells_html(const Section& section);
// A row for each cell, with all its figures.
std::string figures_html(const Report& report, const Section& section);

}  // namespace uptempo::fence_scope
