#include "tools/support/table.hpp"

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include <uptempo/aql/printable.hpp>

namespace uptempo::support {
namespace {

constexpr size_t kGap = 2;  // blanks between columns

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

void append_cell(std::string& line, const std::string& cell, size_t width, Align align) {
  if (!line.empty()) line.append(kGap, ' ');
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
  for (std::string& cell : cells) cell = aql::printable(cell);
  rows_.push_back(std::move(cells));
}

size_t Table::width_of(size_t column) const {
  size_t width = 0;
  for (const std::string& line : lines_of(columns_[column].title))
    width = std::max(width, line.size());
  for (const auto& row : rows_) width = std::max(width, row[column].size());
  return width;
}

std::string Table::part(const std::vector<size_t>& columns) const {
  std::vector<std::vector<std::string>> titles;
  size_t title_height = 0;
  for (const size_t c : columns) {
    titles.push_back(lines_of(columns_[c].title));
    title_height = std::max(title_height, titles.back().size());
  }

  std::string out;
  size_t total_width = 0;
  for (size_t level = 0; level < title_height; ++level) {
    std::string line;
    for (size_t i = 0; i < columns.size(); ++i) {
      const size_t blank_lines = title_height - titles[i].size();
      append_cell(line, level < blank_lines ? "" : titles[i][level - blank_lines],
                  width_of(columns[i]), columns_[columns[i]].align);
    }
    total_width = line.size();
    append_line(out, line);
  }
  append_line(out, std::string(total_width, '-'));
  for (const auto& row : rows_) {
    std::string line;
    for (const size_t c : columns) append_cell(line, row[c], width_of(c), columns_[c].align);
    append_line(out, line);
  }
  return out;
}

std::string Table::text(size_t most) const {
  std::vector<size_t> lead;
  size_t lead_width = 0;
  for (size_t c = 0; c < std::min(lead_, columns_.size()); ++c) {
    lead.push_back(c);
    lead_width += width_of(c) + kGap;
  }
  std::string out;
  std::vector<size_t> columns = lead;
  size_t width = lead_width;
  for (size_t c = lead.size(); c < columns_.size(); ++c) {
    if (columns.size() > lead.size() && width + width_of(c) > most) {
      out += part(columns) + '\n';
      columns = lead;
      width = lead_width;
    }
    columns.push_back(c);
    width += width_of(c) + kGap;
  }
  return out + part(columns);
}

std::string Table::fitted(size_t most, std::vector<std::string>& left_out) const {
  size_t width = 0;  // with a gap after each column
  for (size_t c = 0; c < columns_.size(); ++c)
    if (!columns_[c].optional) width += width_of(c) + kGap;
  std::vector<size_t> columns;
  for (size_t c = 0; c < columns_.size(); ++c) {
    const size_t more = columns_[c].optional ? width_of(c) + kGap : 0;
    if (more != 0 && width + more > most + kGap) {
      left_out.push_back(columns_[c].title);
      continue;
    }
    columns.push_back(c);
    width += more;
  }
  return part(columns);
}

std::string counted(uint64_t count, std::string_view noun) {
  return std::to_string(count).append(" ").append(noun).append(count == 1 ? "" : "s");
}

std::string wrapped(std::string_view text, size_t columns, size_t indent, std::string prefix) {
  std::string out = std::move(prefix);
  size_t used = out.size();
  bool first_word = true;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    if (!first_word && used + 1 + word.size() > columns) {
      out += '\n' + std::string(indent, ' ');
      used = indent;
    } else if (!first_word) {
      out += ' ';
      ++used;
    }
    out += word;
    used += word.size();
    first_word = false;
  }
  return out + '\n';
}

}  // namespace uptempo::support
