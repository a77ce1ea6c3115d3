// The words that reports have for things, the same in tables, JSON, CSV and HTML, and read back from JSON.
//
// Thread safety: pure functions.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/fence_scope/report/report.hpp"

namespace uptempo::fence_scope {

std::string_view name_of(TimeKind kind) noexcept;    // "hardware", "virtual_gpu"
std::string_view name_of(TimingMode mode) noexcept;  // "none", "batch", "each"
std::string_view name_of(Position position) noexcept;
std::string_view name_of(Verdict verdict) noexcept;
// For those who do not see its colour, in UTF-8: "✓".
const char* sign_of(Verdict verdict) noexcept;

// The value of that name, or nothing.
template <class Enum>
std::optional<Enum> named(std::string_view name) noexcept;
template <>
std::optional<TimeKind> named(std::string_view name) noexcept;
template <>
std::optional<TimingMode> named(std::string_view name) noexcept;
template <>
std::optional<Position> named(std::string_view name) noexcept;
template <>
std::optional<Verdict> named(std::string_view name) noexcept;
template <>
std::optional<aql::FenceScope> named(std::string_view name) noexcept;

// "barrier, acquire agent, release none"; "no barrier, ...". The label of cells that are no more than their flags.
std::string flags_label(aql::HeaderFlags flags);
// "stale 2>3": the verdict, and writer and reader where it has them; "host" for an access by the host.
std::string verdict_text(const Judgement& judgement);
// What a verdict means, for people who see it the first time.
std::string_view meaning_of(Verdict verdict) noexcept;

// "1221", "35.2", "4.07", of not less than three digits; "-" for what is not known (NaN).
std::string microseconds_text(double us);
// "2.10x"; "-" for what is not known.
std::string relative_text(double relative);
// "131072" is "128 KiB"; what is no whole number of a unit stays in bytes.
std::string bytes_text(uint64_t bytes);
// "times of a virtual GPU, not of hardware", "times of hardware".
std::string_view kind_text(TimeKind kind) noexcept;
// "model fiji: restated, not reproduced", "model fiji: predicted".
std::string model_text(const ModelTime& model);

// Runs of equal headers: steps [first, first + count) have `flags`.
struct HeaderRun {
  size_t first = 0, count = 0;
  aql::HeaderFlags flags{};
};
std::vector<HeaderRun> runs_of(std::span<const aql::HeaderFlags> headers);

// Cells that belong side by side: of one workload, in the order in which they came.
struct Section {
  std::string workload;
  std::vector<const Cell*> cells;
};
std::vector<Section> sections_of(const Report& report);

// The model's time of a cell over that of its section's baseline, by the same profile; NaN where there is none.
double model_relative(const Section& section, const Cell& cell);

// One count of DeviceCounts: its key in JSON and CSV, and its title in tables, where '\n' starts a further line.
struct CountInfo {
  const char* key;
  const char* title;
  uint64_t DeviceCounts::*member;
};
struct LineCountInfo {
  const char* key;
  const char* title;
  std::optional<uint64_t> DeviceCounts::*member;
};
std::span<const CountInfo> counts_info() noexcept;
std::span<const LineCountInfo> line_counts_info() noexcept;

}  // namespace uptempo::fence_scope
