#include "tools/fence_scope/report/report_columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <uptempo/aql/text.hpp>

namespace uptempo::fence_scope {

using support::Align;

namespace {

std::string pair_text(uint64_t a, uint64_t b) { return fmt::format("{}/{}", a, b); }
std::string count_text(const std::optional<uint64_t>& count) {
  return count ? std::to_string(*count) : "-";
}

// Whether a section's cells differ in their flags only.
bool only_flags(const Section& section) {
  return std::ranges::all_of(
      section.cells, [](const Cell* cell) { return cell->label == flags_label(cell->flags); });
}

// Counts, with titles that can follow a number in one line. Leaves out counts that the rows' own
// settings imply.
std::vector<Field> count_fields(const Section& section) {
  using C = const Cell&;
  std::vector<Field> fields;
  fields.emplace_back("packets", [](C cell) { return std::to_string(cell.counts.packets); });
  fields.emplace_back("doorbells", [](C cell) { return std::to_string(cell.counts.doorbells); });
  fields.emplace_back("signal\nupdates",
                      [](C cell) { return std::to_string(cell.counts.signal_updates); });
  fields.emplace_back("interrupts", [](C cell) { return std::to_string(cell.counts.interrupts); });
  if (!only_flags(section)) {
    fields.emplace_back("barrier\nbits",
                        [](C cell) { return std::to_string(cell.counts.barrier_bits); });
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
               ? count_text(counts.l2_lines_invalidated) + '/' +
                     count_text(counts.l2_lines_written_back)
               : "-";
  });
  return fields;
}

bool all_alike(const Section& section, const Field& field) {
  return std::ranges::all_of(section.cells, [&](const Cell* cell) {
    return field.text(*cell) == field.text(*section.cells.front());
  });
}

}  // namespace

std::vector<Field> identity(const Section& section) {
  std::vector<Field> fields;
  if (differ(section, &Cell::position))
    fields.emplace_back(
        "position", [](const Cell& cell) { return name_of(cell.position); }, Align::left);
  if (differ(section, &Cell::kernels))
    fields.emplace_back("kernels", [](const Cell& cell) { return std::to_string(cell.kernels); });
  if (differ(section, &Cell::bytes_per_kernel))
    fields.emplace_back("bytes per\nkernel",
                        [](const Cell& cell) { return bytes_text(cell.bytes_per_kernel); });
  if (differ(section, &Cell::working_set_bytes))
    fields.emplace_back("working\nset",
                        [](const Cell& cell) { return bytes_text(cell.working_set_bytes); });
  if (only_flags(section)) {
    fields.emplace_back(
        "bar-\nrier",
        [](const Cell& cell) {
          return std::string(cell.flags.barrier == aql::Barrier::on ? "yes" : "no");
        },
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
  // Marks are part of the first column: a separate column would be two blanks wider.
  fields.front().column.title = "  " + fields.front().column.title;
  fields.front().text = [text = fields.front().text](const Cell& cell) {
    return (cell.recommended ? "> " : cell.baseline ? "= " : "  ") + text(cell);
  };
  fields.front().column.align = Align::left;
  return fields;
}

std::vector<Field> figures(const Report& report, const Section& section) {
  const std::string clock = report.time_kind == TimeKind::hardware ? "" : "virtual\nGPU us,\n";
  const std::string unit = report.time_kind == TimeKind::hardware ? " us" : "";
  std::vector<Field> fields;
  for (const std::string& model : models_of(section.cells)) {
    std::string title = model;  // for example "model fiji: restated, not reproduced"
    title.replace(title.find(": "), 2, ":\n");
    title.replace(title.find(' '), 1, "\n");
    if (const size_t comma = title.find(", "); comma != std::string::npos)
      title.replace(comma, 2, ",\n");
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
  const bool gated = is_gated(section);
  const Field ratio(gated ? "ratio\nby round" : "ratio of\nmedians",
                    [](const Cell& cell) { return relative_text(cell.relative); });
  if (gated) {
    fields.emplace_back(clock + "gated" + unit,
                        [](const Cell& cell) { return times_text(cell.gated); });
    fields.push_back(ratio);
  }
  fields.emplace_back(clock + "ungated" + unit,
                      [](const Cell& cell) { return times_text(cell.ungated); });
  if (!gated) fields.push_back(ratio);
  for (const Field& count : count_fields(section))
    if (!all_alike(section, count)) fields.push_back(count);
  return fields;
}

std::vector<std::string> models_of(std::span<const Cell* const> cells) {
  std::vector<std::string> models;
  for (const Cell* cell : cells)
    if (cell->model && std::ranges::find(models, model_text(*cell->model)) == models.end())
      models.push_back(model_text(*cell->model));
  return models;
}

std::string one_line(std::string title) {
  for (size_t at = title.find('\n'); at != std::string::npos; at = title.find('\n')) {
    const bool hyphen = at > 0 && title[at - 1] == '-', slash = at > 0 && title[at - 1] == '/';
    title.replace(hyphen ? at - 1 : at, hyphen ? 2 : 1, hyphen || slash ? "" : " ");
  }
  return title.substr(std::min(title.find_first_not_of(' '), title.size()));
}

std::string counted_alike(const Section& section) {
  std::string text;
  for (const Field& count : count_fields(section)) {
    const std::string value = count.text(*section.cells.front());
    if (!all_alike(section, count) || value == "-") continue;
    std::string title = one_line(count.column.title);
    if (value == "1") title.erase(title.find_last_not_of('s') + 1);
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", value, title);
  }
  return text;
}

}  // namespace uptempo::fence_scope
