// A Report as text for a terminal.
//
// Thread safety: pure, except terminal_columns().
#pragma once

#include <string>

#include "tools/fence_scope/report/report.hpp"

namespace uptempo::fence_scope {

// The conclusion first, then the machine, a table for each workload, the reasons for wrong cells,
// and warnings. No line is longer than `columns`, at least 80, except for longer words: sentences
// are wrapped, and a table that is too wide becomes several, each with the verdict beside its
// times. ASCII, except for names in the report.
std::string table(const Report& report, unsigned columns = 80);

// Width of standard output's terminal; else $COLUMNS; else 80. Between 80 and 400.
unsigned terminal_columns();

}  // namespace uptempo::fence_scope
