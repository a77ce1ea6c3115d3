// Two reports side by side, cell by cell: `fence_scope compare a.json b.json`.
//
// A ratio is that of the medians, b to a; its interval is that of two intervals of medians, each wide enough that together they hold with 95 %, whatever the distribution. Whether a cell
// differs is said by the test of Mann and Whitney, its p values adjusted by Holm for as many cells as there are. The runs were not interleaved: what changed between them beside what was
// meant to is in any difference, so `differences` names what the reports themselves say of that.
//
// Thread safety: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/fence_scope/report/rank_test.hpp"
#include "tools/fence_scope/report/report.hpp"

namespace uptempo::fence_scope {

// Which of a cell's times are compared. A model's are single figures: their ratio has no interval and needs no test.
enum class Quantity : uint8_t { gated, ungated, device, model };
std::string_view name_of(Quantity quantity) noexcept;

struct ComparedCell {
  const Cell *a = nullptr, *b = nullptr;  // of the reports, which must live as long
  // Medians in microseconds, or the model's figures; NaN where a cell has none.
  double a_us = 0, b_us = 0;
  double ratio = 0, low = 0, high = 0, coverage = 0;  // b to a
  std::optional<RankTest> test{};                     // nothing where either has no samples
  double adjusted_p = 1;

  bool differs() const noexcept { return test && adjusted_p < 0.05; }
};

struct ReportComparison {
  std::string name_a{}, name_b{};  // files
  Quantity quantity = Quantity::gated;
  TimeKind time_kind = TimeKind::virtual_gpu;
  TimingMode timing = TimingMode::none;
  std::vector<ComparedCell> cells{};  // in the order of `a`
  std::vector<const Cell*> only_in_a{}, only_in_b{};
  std::vector<std::string> differences{};  // "device: X in a.json, Y in b.json"

  // Cells whose verdict was correct in `a` and is not in `b`, or that have become slower: what a gate asks for.
  bool worse() const noexcept;
  // One sentence.
  std::string conclusion() const;
};

// Cells are the same when workload, label, position, flags, kernels and sizes are; of several alike, the first of one is compared with the first of the other, and so on.
// Throws support::UsageError naming both files and both values when their times must not be compared: another schema, hardware and virtual GPU, another mode of Timing, models of
// other profiles; and when they have no cell in common, or none has times of that quantity.
ReportComparison compare(const Report& a, const std::string& name_a, const Report& b,
                         const std::string& name_b, Quantity quantity = Quantity::gated);

// As table() of report_table.hpp: the conclusion first, no line longer than `columns`, at least 80.
std::string table(const ReportComparison& comparison, unsigned columns = 80);
nlohmann::ordered_json json(const ReportComparison& comparison);

}  // namespace uptempo::fence_scope
