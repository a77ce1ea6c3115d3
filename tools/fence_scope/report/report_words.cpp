#include "tools/fence_scope/report/report_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <uptempo/aql/text.hpp>

namespace uptempo::fence_scope {
namespace {

// Signs and meanings of the verdicts, in the order of the enumeration.
struct VerdictWords {
  const char *sign, *meaning;
};
constexpr VerdictWords kVerdictWords[] = {
    {"✓", "promised by the rules, and right in every run"},
    {"✗", "ordered, but a fence between writer and reader is missing or too narrow"},
    {"⇄", "nothing orders writer and reader"},
    {"?", "not promised by the rules, but no run was wrong: only hardware could tell"}};

std::string step_text(size_t step) {
  return step == Judgement::kNoStep ? "host" : std::to_string(step);
}

}  // namespace

const char* sign_of(Verdict verdict) noexcept {
  return kVerdictWords[static_cast<size_t>(verdict)].sign;
}
std::string_view meaning_of(Verdict verdict) noexcept {
  return kVerdictWords[static_cast<size_t>(verdict)].meaning;
}

std::string flags_label(aql::HeaderFlags flags) {
  return fmt::format("{}, acquire {}, release {}",
                     flags.barrier == aql::Barrier::on ? "barrier" : "no barrier",
                     aql::scope_name(flags.acquire), aql::scope_name(flags.release));
}

std::string verdict_text(const Judgement& judgement) {
  std::string text(name_of(judgement.verdict));
  if (judgement.writer != Judgement::kNoStep || judgement.reader != Judgement::kNoStep)
    text += ' ' + step_text(judgement.writer) + '>' + step_text(judgement.reader);
  return text;
}

bool timed(const Times& times) noexcept {
  return !times.samples_us.empty() || times.median_us != 0;
}

std::string microseconds_text(double us) {
  if (!std::isfinite(us)) return "-";
  const double magnitude = std::abs(us);
  const int decimals = magnitude >= 999.5    ? 0
                       : magnitude >= 9.995  ? 1
                       : magnitude >= 0.9995 ? 2
                                             : 3;
  return fmt::format("{:.{}f}", us, decimals);
}

std::string times_text(const Times& times, std::string_view unit) {
  if (!timed(times)) return "-";
  std::string text = microseconds_text(times.median_us).append(unit);
  const double half = std::max(times.high_us - times.median_us, times.median_us - times.low_us);
  if (times.median_us > 0 && std::isfinite(half))
    text += fmt::format(" +-{:.0f}%", 100 * half / times.median_us);
  return text + (times.noisy ? "?" : "");
}

bool is_noisy(const Cell& cell) noexcept {
  return cell.gated.noisy || cell.ungated.noisy || (cell.device && cell.device->noisy);
}

std::string relative_text(double relative) {
  return std::isfinite(relative) ? fmt::format("{:.2f}x", relative) : "-";
}

std::string_view about_ratios() noexcept {
  return "A ratio by round is the median of the quotients of a cell's and the baseline's times in "
         "the same round, which a drift of the machine's speed does not affect; it is not the "
         "quotient of the two medians.";
}

std::string bytes_text(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (; bytes != 0 && bytes % 1024 == 0 && unit + 1 < std::size(kUnits); ++unit) bytes /= 1024;
  return fmt::format("{} {}", bytes, kUnits[unit]);
}

std::string_view kind_text(TimeKind kind) noexcept {
  return kind == TimeKind::hardware ? "times of hardware"
                                    : "times of a virtual GPU, not of hardware";
}

std::string model_text(const ModelTime& model) {
  return fmt::format("model {}: {}", model.profile,
                     model.restated ? "restated, not reproduced" : "predicted");
}

std::vector<HeaderRun> runs_of(std::span<const aql::HeaderFlags> headers) {
  std::vector<HeaderRun> runs;
  for (size_t step = 0; step < headers.size(); ++step) {
    if (runs.empty() || runs.back().flags != headers[step])
      runs.push_back({step, 0, headers[step]});
    ++runs.back().count;
  }
  return runs;
}

std::vector<const Cell*> cells_of(const Report& report) {
  std::vector<const Cell*> cells;
  for (const Cell& cell : report.cells) cells.push_back(&cell);
  return cells;
}

std::vector<Section> sections_of(const Report& report) {
  std::vector<Section> sections;
  for (const Cell& cell : report.cells) {
    auto section = std::ranges::find(sections, cell.workload, &Section::workload);
    if (section == sections.end()) section = sections.insert(section, {cell.workload, {}});
    section->cells.push_back(&cell);
  }
  return sections;
}

std::string title_of(const Report& report, const Section& section) {
  return fmt::format("{} {}{}{}", report.experiment, section.workload,
                     report.description.empty() ? "" : ": ", report.description);
}

bool is_gated(const Section& section) {
  return std::ranges::any_of(section.cells, [](const Cell* cell) { return timed(cell->gated); });
}

std::vector<Reason> reasons_of(const std::vector<const Cell*>& cells) {
  std::vector<Reason> reasons;
  for (const Cell* cell : cells) {
    const Judgement& judgement = cell->judgement;
    if (judgement.verdict == Verdict::correct || judgement.reason.empty()) continue;
    auto reason = std::ranges::find(reasons, judgement.reason, &Reason::text);
    if (reason == reasons.end()) reason = reasons.insert(reason, {judgement.reason, {}});
    reason->cells.push_back(cell);
  }
  std::ranges::stable_sort(reasons, std::ranges::greater{},
                           [](const Reason& reason) { return reason.cells.size(); });
  return reasons;
}

double model_relative(const Section& section, const Cell& cell) {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  if (!cell.model) return kUnknown;
  for (const Cell* each : section.cells) {
    // A sweep has a baseline for each of its sizes.
    if (each->baseline && each->model && each->model->profile == cell.model->profile &&
        each->kernels == cell.kernels && each->bytes_per_kernel == cell.bytes_per_kernel &&
        each->working_set_bytes == cell.working_set_bytes)
      return each->model->us > 0 ? cell.model->us / each->model->us : kUnknown;
  }
  return kUnknown;
}

}  // namespace uptempo::fence_scope
