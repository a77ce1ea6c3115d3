// Compares two reports cell by cell: `fence_scope compare a.json b.json`.
//
// Ratio: the ratio of the medians, b to a. Its interval comes from the intervals of both medians,
// which hold together with 95 % for any distribution. Difference: decided by the Mann-Whitney test,
// with p values adjusted by Holm for the number of cells. The runs were not interleaved, so every
// other change between them is part of the difference. `differences` lists the changes that the
// reports record.
//
// Thread safety: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/fence_scope/report/rank_test.hpp"
#include "tools/fence_scope/report/report_words.hpp"

namespace uptempo::fence_scope {

// The time to compare. A model's times are single figures: their ratio has no interval and needs no
// test.
enum class Quantity : uint8_t { gated, ungated, device, model };
template <>
inline const std::map<std::string, Quantity> kByName<Quantity>{{"gated", Quantity::gated},
                                                               {"ungated", Quantity::ungated},
                                                               {"device", Quantity::device},
                                                               {"model", Quantity::model}};

struct ComparedCell {
  const Cell *a = nullptr, *b = nullptr;  // cells of the reports, which must outlive this
  // Medians in microseconds, or the model's figures; NaN if a cell has none.
  double a_us = 0, b_us = 0;
  double ratio = 0, low = 0, high = 0, coverage = 0;  // b to a
  std::optional<RankTest> test{};                     // no value if either has no samples
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
  std::vector<std::string> differences{};  // for example "device: X in a.json, Y in b.json"

  // Whether a cell was correct in `a` and is not in `b`, or has become slower. A gate fails in that
  // case.
  bool worse() const noexcept;
  // One sentence.
  std::string conclusion() const;
};

// Cells match if workload, label, position, flags, kernels and sizes are equal. If several
// cells are equal, the first of one report is compared with the first of the other, and so on.
// Errors: support::UsageError naming both files and both values if times must not be compared
// (another schema, hardware and virtual GPU, another mode of Timing, models of other profiles), if
// no cell matches, or if no matching cell has times of that quantity.
ReportComparison compare(const Report& a, const std::string& name_a, const Report& b,
                         const std::string& name_b, Quantity quantity = Quantity::gated);

// Like table() of report_table.hpp: the conclusion first, no line longer than `columns`, at least
// 80.
std::string table(const ReportComparison& comparison, unsigned columns = 80);
nlohmann::ordered_json json(const ReportComparison& comparison);

}  // namespace uptempo::fence_scope
