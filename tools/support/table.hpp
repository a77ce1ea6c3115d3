// A plain-text table: each column is as wide as its widest cell, titles of several lines are
// aligned at the bottom above a rule.
//
// Cells must be ASCII: widths are counted in bytes.
// Thread safety: one owner.
#pragma once

#include <string>
#include <vector>

namespace uptempo::support {

enum class Align { left, right };

struct Column {
  std::string title;  // '\n' starts another title line
  Align align = Align::right;
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // Adds a row with one cell per column. Throws std::invalid_argument for another number of cells.
  void add_row(std::vector<std::string> cells);

  // Lines end in '\n' and have no trailing blanks.
  std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace uptempo::support
