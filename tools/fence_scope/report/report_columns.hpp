// Table columns made of cells, shared by the tables of reports and of
// comparisons.
//
// Thread safety: pure functions.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/fence_scope/report/report_words.hpp"
#include "tools/support/table.hpp"

namespace uptempo::fence_scope {

inline constexpr unsigned kFewestColumns = 80, kMostColumns = 400;

using support::counted;
using support::wrapped;

// A column of a section's table, and its text for a cell.
struct Field {
  using Text = std::function<std::string(const Cell&)>;
  Field(std::string title, Text text_, support::Align align = support::Align::right)
      : column{std::move(title), align}, text(std::move(text_)) {}

  support::Column column;
  Text text;
};

// Whether a member differs between a section's cells.
bool differ(const Section& section, auto Cell::*member) {
  return std::ranges::any_of(section.cells, [&](const Cell* cell) {
    return cell->*member != section.cells.front()->*member;
  });
}

// Columns that identify a section's cells, with marks for the recommended cell (>) and the baseline
// (=); the last is the verdict.
std::vector<Field> identity(const Section& section);
// Models, times, and the counts that differ between cells. Those that decide a recommendation come
// first.
// Lifetime: `section` must outlive the result.
std::vector<Field> figures(const Report& report, const Section& section);
// for example "5 packets, 1 doorbell": the counts that are equal for all cells.
std::string counted_alike(const Section& section);
std::string one_line(std::string title);
// The models of these cells, each once: "model fiji: predicted".
std::vector<std::string> models_of(std::span<const Cell* const> cells);

}  // namespace uptempo::fence_scope
