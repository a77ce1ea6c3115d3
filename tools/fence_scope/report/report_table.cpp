#include "tools/fence_scope/report/report_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
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

// One table: the columns that identify cells, and those of the others that the width allows. A line
// names the rest.
std::string table_of(const Report& report, const Section& section, size_t columns) {
  std::vector<Field> fields = identity(section);
  for (Field& figure : figures(report, section)) {
    figure.column.optional = true;
    fields.push_back(std::move(figure));
  }
  std::vector<support::Column> titles;
  for (const Field& field : fields) titles.push_back(field.column);
  support::Table table(std::move(titles));
  for (const Cell* cell : section.cells) {
    std::vector<std::string> row;
    for (const Field& field : fields) row.push_back(field.text(*cell));
    table.add_row(std::move(row));
  }
  std::vector<std::string> left_out;
  std::string text = table.fitted(columns, left_out);
  if (const std::string common = counted_alike(section); !common.empty())
    text += '\n' + wrapped(common + '.', columns, 2,
                           section.cells.size() == 1 ? "Counted: " : "Equal for all: ");
  std::ranges::transform(left_out, left_out.begin(), one_line);
  if (!left_out.empty())
    text += '\n' + wrapped(fmt::format("{}. A wider terminal or COLUMNS has room for them, and "
                                       "--html, --csv and --json have them all.",
                                       fmt::join(left_out, ", ")),
                           columns, 2, "Without room: ");
  return text;
}

// The meaning of each verdict that occurs, and the reasons for cells that are not correct.
std::string verdicts(const Report& report, size_t columns) {
  std::string text;
  for (const Verdict verdict :
       {Verdict::correct, Verdict::stale, Verdict::unordered, Verdict::unknown})
    if (std::ranges::any_of(report.cells,
                            [&](const Cell& cell) { return cell.judgement.verdict == verdict; }))
      text += wrapped(meaning_of(verdict), columns, 10, fmt::format("{:<9} ", name_of(verdict)));
  const std::vector<Reason> reasons = reasons_of(cells_of(report));
  if (reasons.empty()) return text;
  text += "\nWhy not:\n";
  for (size_t i = 0; i < std::min(reasons.size(), kMostReasons); ++i)
    text += wrapped(reasons[i].text, columns, 4,
                    fmt::format("  {}: ", counted(reasons[i].cells.size(), "cell")));
  if (reasons.size() > kMostReasons)
    text +=
        fmt::format("  {} more reasons are in --html and --json.\n", reasons.size() - kMostReasons);
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
  if (any(is_noisy)) text += "? too noisy: stopped before the interval was narrow enough. ";
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
    text += '\n' + wrapped(title_of(report, section), width, 2) + '\n' +
            table_of(report, section, width);
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
