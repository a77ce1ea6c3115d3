// Names and texts of reports, the same in tables, JSON, CSV and HTML, and read back from JSON.
//
// Thread safety: pure functions.
#pragma once

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/fence_scope/report/report.hpp"

namespace uptempo::fence_scope {

// The values of an enumeration, by their names in reports and options.
template <class Enum>
extern const std::map<std::string, Enum> kByName;
template <>
inline const std::map<std::string, TimeKind> kByName<TimeKind>{
    {"hardware", TimeKind::hardware}, {"virtual_gpu", TimeKind::virtual_gpu}};
template <>
inline const std::map<std::string, TimingMode> kByName<TimingMode>{
    {"none", TimingMode::none}, {"batch", TimingMode::batch}, {"each", TimingMode::each}};
template <>
inline const std::map<std::string, Position> kByName<Position>{{"all", Position::all},
                                                               {"first", Position::first},
                                                               {"interior", Position::interior},
                                                               {"last", Position::last}};
template <>
inline const std::map<std::string, Verdict> kByName<Verdict>{{"correct", Verdict::correct},
                                                             {"stale", Verdict::stale},
                                                             {"unordered", Verdict::unordered},
                                                             {"unknown", Verdict::unknown}};
template <>
inline const std::map<std::string, aql::FenceScope> kByName<aql::FenceScope>{
    {"none", aql::FenceScope::none},
    {"agent", aql::FenceScope::agent},
    {"system", aql::FenceScope::system}};

// The name of a value that `kByName` holds.
template <class Enum>
const std::string& name_of(Enum value) {
  return std::ranges::find_if(kByName<Enum>, [=](const auto& each) { return each.second == value; })
      ->first;
}

// A sign in UTF-8 for readers who do not see the colour: "✓".
const char* sign_of(Verdict verdict) noexcept;

// for example "barrier, acquire agent, release none" or "no barrier, ...". The label of cells that
// differ in their flags only.
std::string flags_label(aql::HeaderFlags flags);
// for example "stale 2>3": the verdict, then writer and reader if known; "host" for an access by
// the host.
std::string verdict_text(const Judgement& judgement);
// The meaning of a verdict, for new readers.
std::string_view meaning_of(Verdict verdict) noexcept;

// False if the times are those of a cell that was not timed.
bool timed(const Times& times) noexcept;
// for example "1221", "35.2", "4.07", at least three digits; "-" for an unknown time (NaN).
std::string microseconds_text(double us);
// for example "1221 +-3%", followed by "?" if it was too noisy; "-" if not timed.
std::string times_text(const Times& times, std::string_view unit = {});
bool is_noisy(const Cell& cell) noexcept;
// for example "2.10x"; "-" if unknown.
std::string relative_text(double relative);
// The meaning of Cell::relative, called "ratio by round", for readers of the medians beside it.
std::string_view about_ratios() noexcept;
// "131072" becomes "128 KiB"; a size that is not a multiple of a unit stays in bytes.
std::string bytes_text(uint64_t bytes);
// "times of a virtual GPU, not of hardware" or "times of hardware".
std::string_view kind_text(TimeKind kind) noexcept;
// "model fiji: restated, not reproduced" or "model fiji: predicted".
std::string model_text(const ModelTime& model);

// A run of equal headers: steps [first, first + count) have `flags`.
struct HeaderRun {
  size_t first = 0, count = 0;
  aql::HeaderFlags flags{};
};
std::vector<HeaderRun> runs_of(std::span<const aql::HeaderFlags> headers);

std::vector<const Cell*> cells_of(const Report& report);
// Cells to be shown together: of one workload, in their original order.
struct Section {
  std::string workload;
  std::vector<const Cell*> cells;
};
std::vector<Section> sections_of(const Report& report);
// for example "scopes chain: each kernel reads all output of the previous one".
std::string title_of(const Report& report, const Section& section);
// Whether any cell has gated times. Those of the ladder have only ungated ones.
bool is_gated(const Section& section);

// A reason why cells are not correct, and these cells.
struct Reason {
  std::string text;
  std::vector<const Cell*> cells;
};
// Each reason once, the most frequent first.
std::vector<Reason> reasons_of(const std::vector<const Cell*>& cells);

// The modelled time of a cell relative to that of its section's baseline, by the same profile; NaN
// without one.
double model_relative(const Section& section, const Cell& cell);

}  // namespace uptempo::fence_scope
