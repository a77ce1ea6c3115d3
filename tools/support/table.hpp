// A table of plain text: columns as wide as their widest cell, titles of several lines aligned at the bottom, a rule beneath them.
//
// Thread safety: one owner. Cells are counted in bytes: ASCII only.
#pragma once

#include <string>
#include <vector>

namespace uptempo::support {

enum class Align { left, right };

struct Column {
  std::string title;  // '\n' starts a further title line
  Align align = Align::right;
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // One cell for each column; throws std::invalid_argument otherwise.
  void add_row(std::vector<std::string> cells);

  // Lines end in '\n' and hold no trailing blanks.
  std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace uptempo::support
