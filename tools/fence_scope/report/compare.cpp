#include "tools/fence_scope/report/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "tools/fence_scope/report/report_columns.hpp"
#include "tools/support/program.hpp"
#include "tools/support/statistics.hpp"

namespace uptempo::fence_scope {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// Names of both files, for error messages.
struct Refusal {
  const std::string &name_a, &name_b;

  [[noreturn]] void operator()(const std::string& what, std::string_view of_a,
                               std::string_view of_b) const {
    throw support::UsageError(fmt::format("{} cannot be compared: {} has {}, {} has {}", what,
                                          name_a, of_a, name_b, of_b));
  }
};

void require_comparable(const Report& a, const Report& b, Quantity quantity,
                        const Refusal& refuse) {
  if (a.schema != b.schema || a.schema != kReportSchema)
    refuse("reports of different schemas", std::to_string(a.schema), std::to_string(b.schema));
  if (quantity == Quantity::model) return;
  if (a.time_kind != b.time_kind)
    refuse("times of hardware and of a virtual GPU", kind_text(a.time_kind),
           kind_text(b.time_kind));
  if (a.timing != b.timing)
    refuse("times taken in different modes of Timing", fmt::format("Timing::{}", name_of(a.timing)),
           fmt::format("Timing::{}", name_of(b.timing)));
}

bool same_cell(const Cell& a, const Cell& b) {
  const auto key = [](const Cell& cell) {
    return std::tie(cell.workload, cell.label, cell.position, cell.kernels, cell.bytes_per_kernel,
                    cell.working_set_bytes);
  };
  return key(a) == key(b) && a.flags == b.flags;
}

const Times* times_of(const Cell& cell, Quantity quantity) {
  switch (quantity) {
    case Quantity::gated:
      return &cell.gated;
    case Quantity::ungated:
      return &cell.ungated;
    case Quantity::device:
      return cell.device ? &*cell.device : nullptr;
    case Quantity::model:
      break;
  }
  return nullptr;
}

bool usable(const std::vector<double>& samples) {
  return !samples.empty() &&
         std::ranges::all_of(samples, [](double each) { return std::isfinite(each); });
}

void compare_times(ComparedCell& cell, const std::vector<double>& a, const std::vector<double>& b) {
  // Each interval fails with at most 2.5 %, so both hold together with at least 95 %.
  const support::MedianInterval of_a = support::median_interval(a, 0.975),
                                of_b = support::median_interval(b, 0.975);
  cell.a_us = of_a.median;
  cell.b_us = of_b.median;
  cell.test = mann_whitney(a, b);
  if (!(of_a.low > 0)) return;
  cell.ratio = of_b.median / of_a.median;
  cell.low = of_b.low / of_a.high;
  cell.high = of_b.high / of_a.low;
  cell.coverage = std::max(0.0, of_a.coverage + of_b.coverage - 1);
}

ComparedCell compared(const Cell& a, const Cell& b, Quantity quantity, const Refusal& refuse) {
  ComparedCell cell{.a = &a,
                    .b = &b,
                    .a_us = kUnknown,
                    .b_us = kUnknown,
                    .ratio = kUnknown,
                    .low = kUnknown,
                    .high = kUnknown,
                    .coverage = kUnknown};
  if (quantity == Quantity::model) {
    if (a.model && b.model && a.model->profile != b.model->profile)
      refuse("models of different devices", "model " + a.model->profile,
             "model " + b.model->profile);
    if (a.model) cell.a_us = a.model->us;
    if (b.model) cell.b_us = b.model->us;
    if (cell.a_us > 0) cell.ratio = cell.b_us / cell.a_us;
    return cell;
  }
  const Times *of_a = times_of(a, quantity), *of_b = times_of(b, quantity);
  if (of_a != nullptr && of_b != nullptr && usable(of_a->samples_us) && usable(of_b->samples_us))
    compare_times(cell, of_a->samples_us, of_b->samples_us);
  return cell;
}

void note_maps(std::vector<std::string>& out, const std::map<std::string, std::string>& a,
               const std::map<std::string, std::string>& b, const Refusal& names) {
  std::set<std::string> keys;
  for (const auto* values : {&a, &b})
    for (const auto& [key, value] : *values) keys.insert(key);
  for (const std::string& key : keys) {
    const auto in_a = a.find(key), in_b = b.find(key);
    if (in_a != a.end() && in_b != b.end() && in_a->second == in_b->second) continue;
    out.push_back(fmt::format("{}: {} in {}, {} in {}", key,
                              in_a == a.end() ? "none" : in_a->second, names.name_a,
                              in_b == b.end() ? "none" : in_b->second, names.name_b));
  }
}

std::vector<std::string> differences_of(const Report& a, const Report& b, const Refusal& names) {
  std::vector<std::string> out;
  const auto facts = [](const Report& report) {
    return std::map<std::string, std::string>{
        {"device", report.device}, {"target", report.target}, {"experiment", report.experiment}};
  };
  note_maps(out, facts(a), facts(b), names);
  note_maps(out, a.versions, b.versions, names);
  note_maps(out, a.environment, b.environment, names);
  return out;
}

bool lost_correctness(const ComparedCell& cell) {
  return cell.a->judgement.verdict == Verdict::correct &&
         cell.b->judgement.verdict != Verdict::correct;
}
bool slower(const ComparedCell& cell) { return cell.differs() && cell.ratio > 1; }
bool faster(const ComparedCell& cell) { return cell.differs() && cell.ratio < 1; }

std::string p_text(double p) { return p < 0.001 ? "<0.001" : fmt::format("{:.3f}", p); }

std::string verdicts_text(const ComparedCell& cell) {
  const std::string &a = name_of(cell.a->judgement.verdict),
                    &b = name_of(cell.b->judgement.verdict);
  return a == b ? a : fmt::format("{}, now {}", a, b);
}

// With the details for which `width` has room. The old median is the new one divided by their
// ratio.
std::string section_table(const ReportComparison& comparison,
                          const std::vector<const ComparedCell*>& cells, const Section& section,
                          size_t width) {
  using support::Align;
  std::vector<Field> lead = identity(section);
  lead.pop_back();  // the verdict of only one report
  std::vector<support::Column> columns;
  for (const Field& field : lead) columns.push_back(field.column);
  columns.insert(columns.end(), {{"verdict", Align::left},
                                 {"old\nus", Align::right, true},
                                 {"new\nus"},
                                 {"new/\nold"},
                                 {"", Align::left}});
  const bool tested = comparison.quantity != Quantity::model;
  if (tested)
    columns.insert(columns.end(),
                   {{"95 % interval", Align::right, true}, {"p,\nadjusted", Align::right, true}});
  support::Table table(std::move(columns));
  for (const ComparedCell* cell : cells) {
    std::vector<std::string> row;
    for (const Field& field : lead) row.push_back(field.text(*cell->b));
    row.insert(row.end(), {verdicts_text(*cell), microseconds_text(cell->a_us),
                           microseconds_text(cell->b_us), relative_text(cell->ratio),
                           slower(*cell)   ? "slower"
                           : faster(*cell) ? "faster"
                                           : ""});
    if (tested) {
      row.push_back(!std::isfinite(cell->low) || cell->coverage < 0.95
                        ? "-"
                        : fmt::format("{:.2f} .. {:.2f}", cell->low, cell->high));
      row.push_back(cell->test ? p_text(cell->adjusted_p) : "-");
    }
    table.add_row(std::move(row));
  }
  std::vector<std::string> left_out;
  return table.fitted(width, left_out);
}

}  // namespace

bool ReportComparison::worse() const noexcept {
  return std::ranges::any_of(
      cells, [](const ComparedCell& cell) { return lost_correctness(cell) || slower(cell); });
}

std::string ReportComparison::conclusion() const {
  const auto wrong = std::ranges::count_if(cells, lost_correctness);
  if (quantity == Quantity::model)
    return fmt::format(
        "Of {} cells, {} are no longer correct; modelled times have no spread, so there is no test "
        "of "
        "them.",
        cells.size(), wrong);
  return fmt::format(
      "Of {} cells, {} are no longer correct, {} are slower, {} are faster, and {} do not differ.",
      cells.size(), wrong, std::ranges::count_if(cells, slower),
      std::ranges::count_if(cells, faster),
      std::ranges::count_if(
          cells, [](const ComparedCell& cell) { return !slower(cell) && !faster(cell); }));
}

ReportComparison compare(const Report& a, const std::string& name_a, const Report& b,
                         const std::string& name_b, Quantity quantity) {
  const Refusal refuse{name_a, name_b};
  require_comparable(a, b, quantity, refuse);
  ReportComparison out{.name_a = name_a,
                       .name_b = name_b,
                       .quantity = quantity,
                       .time_kind = a.time_kind,
                       .timing = a.timing};
  out.differences = differences_of(a, b, refuse);
  std::vector<bool> taken(b.cells.size(), false);
  for (const Cell& cell : a.cells) {
    size_t other = 0;
    while (other < b.cells.size() && (taken[other] || !same_cell(cell, b.cells[other]))) ++other;
    if (other == b.cells.size()) {
      out.only_in_a.push_back(&cell);
      continue;
    }
    taken[other] = true;
    out.cells.push_back(compared(cell, b.cells[other], quantity, refuse));
  }
  for (size_t i = 0; i < b.cells.size(); ++i)
    if (!taken[i]) out.only_in_b.push_back(&b.cells[i]);
  if (out.cells.empty())
    refuse("reports without a cell in common",
           fmt::format("{} of '{}'", a.cells.size(), a.experiment),
           fmt::format("{} of '{}'", b.cells.size(), b.experiment));
  if (std::ranges::none_of(out.cells,
                           [](const ComparedCell& cell) { return std::isfinite(cell.ratio); })) {
    const auto held = [&](const Report& report) {
      const bool any = std::ranges::any_of(report.cells, [&](const Cell& cell) {
        const Times* times = times_of(cell, quantity);
        return quantity == Quantity::model ? cell.model.has_value()
                                           : times != nullptr && !times->samples_us.empty();
      });
      return fmt::format("{} {} times", any ? "some" : "no", name_of(quantity));
    };
    refuse("reports without times of the same cells", held(a), held(b));
  }

  std::vector<double> p_values;
  for (const ComparedCell& cell : out.cells)
    if (cell.test) p_values.push_back(cell.test->p);
  const std::vector<double> adjusted = holm(p_values);
  size_t next = 0;
  for (ComparedCell& cell : out.cells)
    if (cell.test) cell.adjusted_p = adjusted[next++];
  return out;
}

std::string table(const ReportComparison& comparison, unsigned columns) {
  const size_t width = std::clamp(columns, kFewestColumns, kMostColumns);
  std::string text = wrapped(comparison.conclusion(), width) + '\n';
  text += wrapped(fmt::format("old: {}; new: {}", comparison.name_a, comparison.name_b), width, 2);
  text += comparison.quantity == Quantity::model
              ? std::string("modelled times, not measured\n")
              : wrapped(fmt::format("{} times; {}; Timing::{}", name_of(comparison.quantity),
                                    kind_text(comparison.time_kind), name_of(comparison.timing)),
                        width, 2);
  for (const std::string& difference : comparison.differences)
    text += wrapped("differs: " + difference, width, 2);

  std::vector<std::pair<Section, std::vector<const ComparedCell*>>> sections;
  for (const ComparedCell& cell : comparison.cells) {
    auto found = std::ranges::find_if(
        sections, [&](const auto& each) { return each.first.workload == cell.b->workload; });
    if (found == sections.end())
      found = sections.insert(found, {Section{cell.b->workload, {}}, {}});
    found->first.cells.push_back(cell.b);
    found->second.push_back(&cell);
  }
  for (const auto& [section, cells] : sections)
    text += fmt::format("\n{}\n\n{}", section.workload,
                        section_table(comparison, cells, section, width));
  const auto list = [&](const std::vector<const Cell*>& cells, const std::string& name) {
    if (cells.empty()) return;
    text += '\n' +
            wrapped(fmt::format("Only in {}: {}.", name, counted(cells.size(), "cell")), width, 2);
  };
  list(comparison.only_in_a, comparison.name_a);
  list(comparison.only_in_b, comparison.name_b);
  if (comparison.quantity != Quantity::model)
    text += '\n' + wrapped(
                       "Slower and faster: Mann-Whitney rank test, p < 0.05 after Holm's "
                       "correction for the number of "
                       "cells. The reports are from different runs: every other change between "
                       "them is part of a "
                       "difference.",
                       width);
  return text;
}

nlohmann::ordered_json json(const ReportComparison& comparison) {
  using nlohmann::ordered_json;
  const auto number = [](double value) {
    return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr);
  };
  const auto identified = [](const Cell& cell) {
    return ordered_json{{"workload", cell.workload},
                        {"label", cell.label},
                        {"position", name_of(cell.position)},
                        {"kernels", cell.kernels},
                        {"bytes_per_kernel", cell.bytes_per_kernel},
                        {"working_set_bytes", cell.working_set_bytes}};
  };
  ordered_json cells = ordered_json::array();
  for (const ComparedCell& cell : comparison.cells) {
    ordered_json out = identified(*cell.b);
    out["verdict_a"] = name_of(cell.a->judgement.verdict);
    out["verdict_b"] = name_of(cell.b->judgement.verdict);
    out["a_us"] = number(cell.a_us);
    out["b_us"] = number(cell.b_us);
    out["ratio"] = number(cell.ratio);
    out["low"] = number(cell.low);
    out["high"] = number(cell.high);
    out["coverage"] = number(cell.coverage);
    out["u"] = cell.test ? ordered_json(cell.test->u) : ordered_json(nullptr);
    out["p"] = cell.test ? ordered_json(cell.test->p) : ordered_json(nullptr);
    out["p_exact"] = cell.test ? ordered_json(cell.test->exact) : ordered_json(nullptr);
    out["p_adjusted"] = cell.test ? ordered_json(cell.adjusted_p) : ordered_json(nullptr);
    out["result"] = slower(cell) ? "slower" : faster(cell) ? "faster" : "not told apart";
    cells.push_back(std::move(out));
  }
  const auto list = [&](const std::vector<const Cell*>& from) {
    ordered_json out = ordered_json::array();
    for (const Cell* cell : from) out.push_back(identified(*cell));
    return out;
  };
  return {{"format", "fence_scope comparison"},
          {"schema", 1},
          {"conclusion", comparison.conclusion()},
          {"a", comparison.name_a},
          {"b", comparison.name_b},
          {"quantity", name_of(comparison.quantity)},
          {"time_kind", name_of(comparison.time_kind)},
          {"timing", name_of(comparison.timing)},
          {"test", "Mann-Whitney, two-sided; p_adjusted by Holm over all cells"},
          {"worse", comparison.worse()},
          {"differences", comparison.differences},
          {"cells", std::move(cells)},
          {"only_in_a", list(comparison.only_in_a)},
          {"only_in_b", list(comparison.only_in_b)}};
}

}  // namespace uptempo::fence_scope
