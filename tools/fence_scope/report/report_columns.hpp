// Columns of tables that are made of cells, and lines of text: what the tables of reports and of comparisons have in common.
//
// Thread safety: pure functions.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/fence_scope/report/report_words.hpp"
#include "tools/support/table.hpp"

namespace uptempo::fence_scope {

inline constexpr unsigned kFewestColumns = 80, kMostColumns = 400;

// `prefix`, and the words of `text` in lines of at most `columns`, all but the first one indented.
std::string wrapped(std::string_view text, size_t columns, size_t indent = 0, std::string prefix = {});

// A column of a section's table, and what a cell has in it.
struct Field {
  using Text = std::function<std::string(const Cell&)>;
  Field(std::string title, Text text_, support::Align align = support::Align::right)
      : column{std::move(title), align}, text(std::move(text_)) {}

  support::Column column;
  Text text;

  size_t width(const Section& section) const;
};

// Whether a section's cells are no more than their flags.
bool only_flags(const Section& section);

// What tells a section's cells apart, with marks of what is recommended (>) and of the baseline (=); at last the verdict.
std::vector<Field> identity(const Section& section);
// Times, models, and those counts that are not alike for all cells. `section` must live as long as they.
std::vector<Field> figures(const Report& report, const Section& section);
// Titles that also read well behind a number, in one line. What the rows' own settings say is left out.
std::vector<Field> count_fields(const Section& section);
bool all_alike(const Section& section, const Field& field);
// "5 packets, 1 doorbell": counts that are no columns.
std::string counted_alike(const Section& section);
// A column's title without its line breaks.
std::string one_line(std::string title);

}  // namespace uptempo::fence_scope
