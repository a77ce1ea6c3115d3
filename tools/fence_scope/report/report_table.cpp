#include "tools/fence_scope/report/report_table.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "tools/fence_scope/report/report_columns.hpp"
#include "tools/fence_scope/report/report_packets.hpp"
#include "tools/support/table.hpp"

namespace uptempo::fence_scope {
namespace {

constexpr size_t kMostReasons = 8;

std::string table_of(const Section& section, const std::vector<const Field*>& fields) {
  std::vector<support::Column> columns;
  for (const Field* field : fields) columns.push_back(field->column);
  support::Table table(std::move(columns));
  for (const Cell* cell : section.cells) {
    std::vector<std::string> row;
    for (const Field* field : fields) row.push_back(field->text(*cell));
    table.add_row(std::move(row));
  }
  return table.text(kMostColumns);  // fitted by the caller
}

// As many tables as needed. Each begins with the columns that identify cells.
std::string tables_of(const Report& report, const Section& section, size_t columns) {
  constexpr size_t kGap = 2;
  const std::vector<Field> lead = identity(section), rest = figures(report, section);
  size_t lead_width = 0;
  std::vector<const Field*> lead_fields;
  for (const Field& field : lead) {
    lead_width += field.width(section) + (lead_fields.empty() ? 0 : kGap);
    lead_fields.push_back(&field);
  }
  std::string text;
  std::vector<const Field*> fields = lead_fields;
  size_t width = lead_width;
  const auto flush = [&] {
    if (fields.size() == lead_fields.size()) return;
    text += (text.empty() ? "" : "\n") + table_of(section, fields);
    fields = lead_fields;
    width = lead_width;
  };
  for (const Field& field : rest) {
    const size_t more = kGap + field.width(section);
    if (width + more > columns) flush();
    fields.push_back(&field);
    width += more;
  }
  flush();
  const std::string common = counted_alike(section);
  if (common.empty()) return text;
  return text + '\n' +
         wrapped(common + '.', columns, 2,
                 section.cells.size() == 1 ? "Counted: " : "Equal for all: ");
}

// The meaning of each verdict that occurs, and the reasons for cells that are not correct.
std::string verdicts(const Report& report, size_t columns) {
  std::string text;
  for (const Verdict verdict :
       {Verdict::correct, Verdict::stale, Verdict::unordered, Verdict::unknown})
    if (std::ranges::any_of(report.cells,
                            [&](const Cell& cell) { return cell.judgement.verdict == verdict; }))
      text += wrapped(meaning_of(verdict), columns, 10, fmt::format("{:<9} ", name_of(verdict)));
  std::vector<std::pair<std::string, size_t>> reasons;
  for (const Cell& cell : report.cells) {
    if (cell.judgement.verdict == Verdict::correct || cell.judgement.reason.empty()) continue;
    const auto reason =
        std::ranges::find(reasons, cell.judgement.reason, &std::pair<std::string, size_t>::first);
    if (reason == reasons.end())
      reasons.emplace_back(cell.judgement.reason, 1);
    else
      ++reason->second;
  }
  if (reasons.empty()) return text;
  std::ranges::stable_sort(reasons, std::ranges::greater{},
                           &std::pair<std::string, size_t>::second);
  text += "\nWhy not:\n";
  for (size_t i = 0; i < std::min(reasons.size(), kMostReasons); ++i)
    text +=
        wrapped(reasons[i].first, columns, 4,
                fmt::format("  {} cell{}: ", reasons[i].second, reasons[i].second == 1 ? "" : "s"));
  if (reasons.size() > kMostReasons)
    text += fmt::format("  {} more reasons are in the JSON.\n", reasons.size() - kMostReasons);
  return text;
}

std::string legend(const Report& report, size_t columns) {
  std::string text;
  const auto any = [&](auto what) { return std::ranges::any_of(report.cells, what); };
  if (any([](const Cell& cell) { return cell.recommended; })) text += "> recommended. ";
  if (any([](const Cell& cell) { return cell.baseline; })) text += "= baseline. ";
  text += "Times are medians of one iteration and the half width of their interval. ";
  if (any([](const Cell& cell) { return timed(cell.gated); }))
    text += fmt::format("{} ", about_ratios());
  if (any([](const Cell& cell) {
        return cell.gated.noisy || cell.ungated.noisy || (cell.device && cell.device->noisy);
      }))
    text += "? too noisy: stopped before the interval was narrow enough. ";
  if (any([](const Cell& cell) { return cell.model.has_value(); }))
    text +=
        "Model: an estimate from the profile of a device, not a measurement; then, times the "
        "baseline's. ";
  if (any([](const Cell& cell) {
        return cell.judgement.writer != Judgement::kNoStep ||
               cell.judgement.reader != Judgement::kNoStep;
      }))
    text += "2>3: step 2 writes data that step 3 touches, in either order. ";
  return wrapped(text, columns);
}

}  // namespace

std::string table(const Report& report, unsigned columns) {
  const size_t width = std::clamp(columns, kFewestColumns, kMostColumns);
  std::string text = wrapped(report.conclusion, width);
  text +=
      '\n' + wrapped(fmt::format("{}; {}; Timing::{}; seed {}", report.device,
                                 kind_text(report.time_kind), name_of(report.timing), report.seed),
                     width, 2);
  for (const std::string& warning : report.warnings)
    text += wrapped("warning: " + warning, width, 2);
  if (report.cells.empty()) return text;
  for (const Section& section : sections_of(report))
    text += fmt::format("\n{} {}\n\n", report.experiment, section.workload) +
            tables_of(report, section, width);
  text += '\n' + legend(report, width) + '\n' + verdicts(report, width);
  if (!report.packets.empty()) text += '\n' + packets_text(report, width);
  return text;
}

unsigned terminal_columns() {
  winsize size{};
  unsigned columns = 0;
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) columns = size.ws_col;
  if (const char* variable = std::getenv("COLUMNS"); columns == 0 && variable != nullptr)
    std::from_chars(variable, variable + std::strlen(variable), columns);
  return columns == 0 ? kFewestColumns : std::clamp(columns, kFewestColumns, kMostColumns);
}

}  // namespace uptempo::fence_scope
