// A Report as text for a terminal.
//
// Thread safety: pure, but for terminal_columns().
#pragma once

#include <string>

#include "tools/fence_scope/report/report.hpp"

namespace uptempo::fence_scope {

// The conclusion first, then on what it was made, a table for each workload, what wrong cells are wrong about, and warnings. No line is longer than `columns`, at least 80,
// but for words that are: sentences are wrapped, and a table that is too wide is cut into several, each with the verdict beside its times. ASCII, but for what the
// report's names hold.
std::string table(const Report& report, unsigned columns = 80);

// Of standard output's terminal; else $COLUMNS; else 80. Between 80 and 400.
unsigned terminal_columns();

}  // namespace uptempo::fence_scope
