#include "fence_scope/report_columns.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "aql/text.hpp"

namespace uptempo::fence_scope {

using support::Align;

namespace {

bool differ(const Section& section, auto member) {
  return std::ranges::any_of(
      section.cells, [&](const Cell* cell) { return cell->*member != section.cells.front()->*member; });
}

}  // namespace

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

size_t Field::width(const Section& section) const {
  size_t widest = 0;
  const std::string& title = column.title;
  for (size_t at = 0; at <= title.size();) {
    const size_t end = std::min(title.find('\n', at), title.size());
    widest = std::max(widest, end - at);
    at = end + 1;
  }
  for (const Cell* cell : section.cells) widest = std::max(widest, text(*cell).size());
  return widest;
}

bool only_flags(const Section& section) {
  return std::ranges::all_of(section.cells,
                             [](const Cell* cell) { return cell->label == flags_label(cell->flags); });
}

std::vector<Field> identity(const Section& section) {
  std::vector<Field> fields;
  if (differ(section, &Cell::position))
    fields.emplace_back(
        "position", [](const Cell& cell) { return std::string(name_of(cell.position)); }, Align::left);
  if (differ(section, &Cell::kernels))
    fields.emplace_back("kernels", [](const Cell& cell) { return std::to_string(cell.kernels); });
  if (differ(section, &Cell::bytes_per_kernel))
    fields.emplace_back("bytes per\nkernel",
                        [](const Cell& cell) { return bytes_text(cell.bytes_per_kernel); });
  if (differ(section, &Cell::working_set_bytes))
    fields.emplace_back("working\nset", [](const Cell& cell) { return bytes_text(cell.working_set_bytes); });
  if (only_flags(section)) {
    fields.emplace_back(
        "bar-\nrier",
        [](const Cell& cell) { return std::string(cell.flags.barrier == aql::Barrier::on ? "yes" : "no"); },
        Align::left);
    fields.emplace_back(
        "acquire/\nrelease",
        [](const Cell& cell) {
          return fmt::format("{}/{}", aql::scope_name(cell.flags.acquire),
                             aql::scope_name(cell.flags.release));
        },
        Align::left);
  } else {
    fields.emplace_back(
        "", [](const Cell& cell) { return cell.label; }, Align::left);
  }
  fields.emplace_back(
      "verdict", [](const Cell& cell) { return verdict_text(cell.judgement); }, Align::left);
  // Marks are part of the first column: one of their own would take two blanks more.
  fields.front().column.title = "  " + fields.front().column.title;
  fields.front().text = [text = fields.front().text](const Cell& cell) {
    return (cell.recommended ? "> " : cell.baseline ? "= " : "  ") + text(cell);
  };
  fields.front().column.align = Align::left;
  return fields;
}

}  // namespace uptempo::fence_scope
