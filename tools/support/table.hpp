// A plain-text table: each column is as wide as its widest cell, titles of several lines are
// aligned at the bottom above a rule. And text in lines of limited length.
//
// Cells must be ASCII: widths are counted in bytes.
// Thread safety: one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace uptempo::support {

enum class Align { left, right };

struct Column {
  std::string title;  // '\n' starts another title line
  Align align = Align::right;
  bool optional = false;  // fitted() leaves it out where the table would be too wide
};

// Width of a terminal's window that every program may rely on.
inline constexpr size_t kTerminalColumns = 80;

class Table {
 public:
  // The first `lead` columns name the row.
  explicit Table(std::vector<Column> columns, size_t lead = 1)
      : columns_(std::move(columns)), lead_(lead) {}

  // Adds a row with one cell per column. Throws std::invalid_argument for another number of cells.
  void add_row(std::vector<std::string> cells);

  // Lines end in '\n' and have no trailing blanks. A table that is wider than `most` becomes
  // several, each with the columns that name the row.
  std::string text(size_t most = kTerminalColumns) const;
  // One table without the optional columns for which `most` has no room, from left to right; adds
  // their titles to `left_out`.
  std::string fitted(size_t most, std::vector<std::string>& left_out) const;

 private:
  size_t width_of(size_t column) const;
  std::string part(const std::vector<size_t>& columns) const;

  std::vector<Column> columns_;
  size_t lead_;
  std::vector<std::vector<std::string>> rows_;
};

// for example "1 cell" and "3 cells".
std::string counted(uint64_t count, std::string_view noun);

// `prefix` and the words of `text`, in lines of at most `columns`; all but the first are indented.
std::string wrapped(std::string_view text, size_t columns = kTerminalColumns, size_t indent = 0,
                    std::string prefix = {});

}  // namespace uptempo::support
