#include "tools/support/table.hpp"

#include <algorithm>
#include <sstream>
#include <stdexcept>

namespace uptempo::support {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

void append_cell(std::string& line, const std::string& cell, size_t width, Align align) {
  if (!line.empty()) line += "  ";
  const std::string padding(width - cell.size(), ' ');
  line += align == Align::left ? cell + padding : padding + cell;
}

void append_line(std::string& out, std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  out += line + '\n';
}

}  // namespace

void Table::add_row(std::vector<std::string> cells) {
  if (cells.size() != columns_.size())
    throw std::invalid_argument("a row of " + std::to_string(cells.size()) +
                                " cells in a table of " + std::to_string(columns_.size()) +
                                " columns");
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<std::vector<std::string>> titles;
  std::vector<size_t> widths;
  size_t title_height = 0;
  for (size_t c = 0; c < columns_.size(); ++c) {
    titles.push_back(lines_of(columns_[c].title));
    title_height = std::max(title_height, titles[c].size());
    size_t width = 0;
    for (const std::string& line : titles[c]) width = std::max(width, line.size());
    for (const auto& row : rows_) width = std::max(width, row[c].size());
    widths.push_back(width);
  }

  std::string out;
  size_t total_width = 0;
  for (size_t level = 0; level < title_height; ++level) {
    std::string line;
    for (size_t c = 0; c < columns_.size(); ++c) {
      const size_t blank_lines = title_height - titles[c].size();
      append_cell(line, level < blank_lines ? "" : titles[c][level - blank_lines], widths[c],
                  columns_[c].align);
    }
    total_width = line.size();
    append_line(out, line);
  }
  append_line(out, std::string(total_width, '-'));
  for (const auto& row : rows_) {
    std::string line;
    for (size_t c = 0; c < columns_.size(); ++c)
      append_cell(line, row[c], widths[c], columns_[c].align);
    append_line(out, line);
  }
  return out;
}

}  // namespace uptempo::support
