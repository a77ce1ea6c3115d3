#include "fence_scope/report_table.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "fence_scope/report_columns.hpp"
#include "support/table.hpp"

namespace uptempo::fence_scope {
namespace {

constexpr size_t kMostReasons = 8;

// "1221 +-3%", and "?" behind what was too noisy.
std::string times_text(const Times& times) {
  if (times.samples_us.empty() && times.median_us == 0) return "-";
  std::string text = microseconds_text(times.median_us);
  const double half = std::max(times.high_us - times.median_us, times.median_us - times.low_us);
  if (times.median_us > 0 && std::isfinite(half))
    text += fmt::format(" +-{:.0f}%", 100 * half / times.median_us);
  return text + (times.noisy ? "?" : "");
}

std::string pair_text(uint64_t a, uint64_t b) { return fmt::format("{}/{}", a, b); }
std::string count_text(const std::optional<uint64_t>& count) { return count ? std::to_string(*count) : "-"; }

// Titles that also read well behind a number, in one line.
// What the rows' own settings say is left out.
std::vector<Field> count_fields(const Section& section) {
  using C = const Cell&;
  std::vector<Field> fields;
  fields.emplace_back("packets", [](C cell) { return std::to_string(cell.counts.packets); });
  fields.emplace_back("doorbells", [](C cell) { return std::to_string(cell.counts.doorbells); });
  fields.emplace_back("signal\nupdates", [](C cell) { return std::to_string(cell.counts.signal_updates); });
  fields.emplace_back("interrupts", [](C cell) { return std::to_string(cell.counts.interrupts); });
  if (!only_flags(section)) {
    fields.emplace_back("barrier\nbits", [](C cell) { return std::to_string(cell.counts.barrier_bits); });
    fields.emplace_back("agent\nacquires/\nreleases", [](C cell) {
      return pair_text(cell.counts.agent_acquires, cell.counts.agent_releases);
    });
    fields.emplace_back("system\nacquires/\nreleases", [](C cell) {
      return pair_text(cell.counts.system_acquires, cell.counts.system_releases);
    });
  }
  // Acquires drop lines, releases write them back.
  fields.emplace_back("L1 lines\ndropped",
                      [](C cell) { return count_text(cell.counts.l1_lines_invalidated); });
  fields.emplace_back("L2 lines\ndropped/\nwritten", [](C cell) {
    const DeviceCounts& counts = cell.counts;
    return counts.l2_lines_invalidated || counts.l2_lines_written_back
               ? count_text(counts.l2_lines_invalidated) + '/' + count_text(counts.l2_lines_written_back)
               : "-";
  });
  return fields;
}

bool all_alike(const Section& section, const Field& field) {
  return std::ranges::all_of(section.cells, [&](const Cell* cell) {
    return field.text(*cell) == field.text(*section.cells.front());
  });
}

// "The same for all: 5 packets, 1 doorbells": no columns of their own.
std::string common_counts(const Section& section, size_t columns) {
  std::string text;
  for (const Field& count : count_fields(section)) {
    const std::string value = count.text(*section.cells.front());
    if (!all_alike(section, count) || value == "-") continue;
    std::string title = count.column.title;
    for (size_t at = title.find('\n'); at != std::string::npos; at = title.find('\n')) {
      if (at > 0 && title[at - 1] == '-')
        title.erase(at - 1, 2);
      else
        title.replace(at, 1, title[at - 1] == '/' ? "" : " ");
    }
    if (value == "1") title.erase(title.find_last_not_of('s') + 1);
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", value, title);
  }
  return text.empty() ? text
                      : '\n' + wrapped(text + '.', columns, 2,
                                       section.cells.size() == 1 ? "Counted: " : "Counted alike for all: ");
}

std::vector<Field> figures(const Report& report, const Section& section) {
  const std::string clock = report.time_kind == TimeKind::hardware ? "" : "virtual\nGPU us,\n";
  const std::string unit = report.time_kind == TimeKind::hardware ? " us" : "";
  std::vector<Field> fields;
  fields.emplace_back(clock + "gated" + unit, [](const Cell& cell) { return times_text(cell.gated); });
  fields.emplace_back("against\nbaseline", [](const Cell& cell) { return relative_text(cell.relative); });
  std::vector<std::string> models;
  for (const Cell* cell : section.cells)
    if (cell->model && std::ranges::find(models, model_text(*cell->model)) == models.end())
      models.push_back(model_text(*cell->model));
  for (const std::string& model : models) {
    std::string title = model;  // "model fiji: restated, not reproduced"
    title.replace(title.find(": "), 2, ":\n");
    title.replace(title.find(' '), 1, "\n");
    if (const size_t comma = title.find(", "); comma != std::string::npos) title.replace(comma, 2, ",\n");
    fields.emplace_back(title + "\nus", [&section, model](const Cell& cell) {
      if (!cell.model || model_text(*cell.model) != model) return std::string();
      const double relative = model_relative(section, cell);
      return microseconds_text(cell.model->us) +
             (std::isfinite(relative) ? "  " + relative_text(relative) : "");
    });
  }
  if (std::ranges::any_of(section.cells, [](const Cell* cell) { return cell->device.has_value(); }))
    fields.emplace_back(clock + "device" + unit, [](const Cell& cell) {
      return cell.device ? times_text(*cell.device) : std::string("-");
    });
  fields.emplace_back(clock + "ungated" + unit, [](const Cell& cell) { return times_text(cell.ungated); });
  for (const Field& count : count_fields(section))
    if (!all_alike(section, count)) fields.push_back(count);
  return fields;
}

std::string table_of(const Section& section, const std::vector<const Field*>& fields) {
  std::vector<support::Column> columns;
  for (const Field* field : fields) columns.push_back(field->column);
  support::Table table(std::move(columns));
  for (const Cell* cell : section.cells) {
    std::vector<std::string> row;
    for (const Field* field : fields) row.push_back(field->text(*cell));
    table.add_row(std::move(row));
  }
  return table.text();
}

// As many tables as it takes, each led by what tells cells apart.
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
  return text + common_counts(section, columns);
}

// What each verdict that occurs means, and the reasons given for cells that are not correct.
std::string verdicts(const Report& report, size_t columns) {
  std::string text;
  for (const Verdict verdict : {Verdict::correct, Verdict::stale, Verdict::unordered, Verdict::unknown})
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
  std::ranges::stable_sort(reasons, std::ranges::greater{}, &std::pair<std::string, size_t>::second);
  text += "\nWhy not:\n";
  for (size_t i = 0; i < std::min(reasons.size(), kMostReasons); ++i)
    text += wrapped(reasons[i].first, columns, 4,
                    fmt::format("  {} cell{}: ", reasons[i].second, reasons[i].second == 1 ? "" : "s"));
  if (reasons.size() > kMostReasons)
    text += fmt::format("  {} reasons more are in the JSON.\n", reasons.size() - kMostReasons);
  return text;
}

std::string legend(const Report& report, size_t columns) {
  std::string text;
  const auto any = [&](auto what) { return std::ranges::any_of(report.cells, what); };
  if (any([](const Cell& cell) { return cell.recommended; })) text += "> recommended. ";
  if (any([](const Cell& cell) { return cell.baseline; })) text += "= baseline. ";
  text += "Times are medians of one iteration and the half width of their interval. ";
  if (any([](const Cell& cell) {
        return cell.gated.noisy || cell.ungated.noisy || (cell.device && cell.device->noisy);
      }))
    text += "? too noisy: stopped before the interval was as narrow as wanted. ";
  if (any([](const Cell& cell) { return cell.model.has_value(); }))
    text +=
        "Model: an estimate by a profile of a device, measured nowhere; behind it, times the baseline's. ";
  if (any([](const Cell& cell) {
        return cell.judgement.writer != Judgement::npos || cell.judgement.reader != Judgement::npos;
      }))
    text += "2>3: step 3 reads what step 2 wrote. ";
  return wrapped(text, columns);
}

}  // namespace

std::string table(const Report& report, unsigned columns) {
  const size_t width = std::clamp(columns, kFewestColumns, kMostColumns);
  std::string text = wrapped(report.conclusion, width);
  text += '\n' + wrapped(fmt::format("{}; {}; Timing::{}; seed {}", report.device,
                                     kind_text(report.time_kind), name_of(report.timing), report.seed),
                         width, 2);
  for (const std::string& warning : report.warnings) text += wrapped("warning: " + warning, width, 2);
  if (report.cells.empty()) return text;
  for (const Section& section : sections_of(report))
    text +=
        fmt::format("\n{} {}\n\n", report.experiment, section.workload) + tables_of(report, section, width);
  text += '\n' + legend(report, width) + '\n' + verdicts(report, width);
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
