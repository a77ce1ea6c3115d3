#include "tools/bench/dispatch/bars.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tools/support/table.hpp"

namespace uptempo::bench {
namespace {

// Limits the ratio or the difference of two rows' host time per dispatch, in the phase submit.
struct Bar {
  enum class Kind : uint8_t { ratio_at_most, ratio_at_least, most_ns_more };
  const char* row;
  uint32_t batch;
  Kind kind;
  double limit;  // ratio, or nanoseconds
  const char* other;
  uint32_t other_batch;
};

constexpr auto kAtMost = Bar::Kind::ratio_at_most, kAtLeast = Bar::Kind::ratio_at_least,
               kNsMore = Bar::Kind::most_ns_more;
constexpr Bar kRatios[] = {
    {"uptempo-batch", 120, kAtMost, 1.2, "hsa-careful", 120},
    {"hip-launch", 120, kAtLeast, 30, "uptempo-batch", 120},
    {"hip-launch", 120, kAtLeast, 30, "uptempo-dispatch", 120},
    {"uptempo-replay", 120, kAtMost, 1.15, "floor-packets", 120},
    {"uptempo-replay", 1024, kAtMost, 1.15, "floor-packets", 1024},
    {"uptempo-replay", 8192, kAtMost, 1.15, "floor-packets", 8192},
    {"hip-graph", 120, kAtLeast, 25, "uptempo-replay", 120},
    {"hip-graph", 1024, kAtLeast, 25, "uptempo-replay", 1024},
    {"hip-graph", 8192, kAtLeast, 25, "uptempo-replay", 8192},
    // The time is flat from 120 to 8,192.
    {"uptempo-batch", 8192, kAtMost, 1.25, "uptempo-batch", 120},
    {"uptempo-replay", 8192, kAtMost, 1.25, "uptempo-replay", 120},
};

// HIP 6 launches graphs faster than HIP 5.
double imported_graph_limit(int hip_major) { return hip_major >= 6 ? 10 : 25; }
constexpr uint32_t kImportedGraphBatches[] = {120, 1024};

constexpr double kPlanningNs = 20;
constexpr double kRunTimeArgumentsNs = 2;
constexpr double kPointersNs = kRunTimeArgumentsNs + 1;  // and to load two values where they are
constexpr double kCInterfaceNs = 5;
constexpr Bar kDifferences[] = {
    {"uptempo-dispatch-packed", 120, kNsMore, kRunTimeArgumentsNs, "uptempo-dispatch", 120},
    {"uptempo-dispatch-packed", 1024, kNsMore, kRunTimeArgumentsNs, "uptempo-dispatch", 1024},
    {"uptempo-dispatch-params", 120, kNsMore, kPointersNs, "uptempo-dispatch", 120},
    {"uptempo-dispatch-params", 1024, kNsMore, kPointersNs, "uptempo-dispatch", 1024},
    {"uptempo-c-packed", 120, kNsMore, kCInterfaceNs, "uptempo-dispatch-packed", 120},
    {"uptempo-c-packed", 1024, kNsMore, kCInterfaceNs, "uptempo-dispatch-packed", 1024},
    {"uptempo-c-params", 120, kNsMore, kCInterfaceNs, "uptempo-dispatch-params", 120},
    {"uptempo-c-params", 1024, kNsMore, kCInterfaceNs, "uptempo-dispatch-params", 1024},
    {"uptempo-c-stream", 120, kNsMore, kCInterfaceNs, "uptempo-stream-packed", 120},
    {"uptempo-c-stream", 1024, kNsMore, kCInterfaceNs, "uptempo-stream-packed", 1024},
    {"uptempo-planned", 8, kNsMore, kPlanningNs, "uptempo-prepared", 8},
    {"uptempo-planned", 120, kNsMore, kPlanningNs, "uptempo-prepared", 120},
    {"uptempo-planned", 1024, kNsMore, kPlanningNs, "uptempo-prepared", 1024},
    {"uptempo-planned-slices", 8, kNsMore, kPlanningNs, "uptempo-prepared", 8},
    {"uptempo-planned-slices", 120, kNsMore, kPlanningNs, "uptempo-prepared", 120},
    {"uptempo-planned-slices", 1024, kNsMore, kPlanningNs, "uptempo-prepared", 1024},
};

// These rows must have none of these counts in the steady state.
constexpr const char* kFreeRows[] = {
    "uptempo-single",   "uptempo-dispatch",       "uptempo-prepared", "uptempo-batch",
    "uptempo-planned",  "uptempo-planned-slices", "uptempo-c-packed", "uptempo-c-stream",
    "uptempo-stream",   "uptempo-launcher",       "uptempo-replay",   "uptempo-replay-patched",
    "uptempo-hip-graph"};
constexpr const CountKind* kFreeKinds[] = {&kCountKinds[0], &kCountKinds[1]};
static_assert(kFreeKinds[0]->value == &Counts::allocations &&
              kFreeKinds[1]->value == &Counts::system_calls);

// No row that does the floor's work may be cheaper than the floor.
struct FloorBar {
  const char* floor;
  std::vector<std::string_view> others;  // rows that do not do that work
};
const FloorBar kFloors[] = {
    {"floor-packets", {}},
    // These write no kernargs, or not all of them.
    {"floor-packets-kernargs",
     {"floor-packets", "uptempo-launcher", "uptempo-replay", "uptempo-replay-patched",
      "uptempo-hip-graph"}},
};

std::string no_row(std::string_view row, uint32_t batch, Phase phase) {
  return fmt::format("no figure of {} for batches of {}, phase {}", row, batch, phase_name(phase));
}

std::string text(const support::MedianInterval& interval) {
  return fmt::format("{:.2f} ({:.2f} .. {:.2f})", interval.median, interval.low, interval.high);
}

Judgement judge(const Bar& bar, const Results& results) {
  Judgement judgement;
  if (bar.kind == kNsMore)
    judgement.bar = fmt::format("{} of {}: at most {} ns more than {}", bar.row, bar.batch,
                                bar.limit, bar.other);
  else
    judgement.bar = fmt::format("{} of {}: {} {} times {} of {}", bar.row, bar.batch,
                                bar.kind == kAtMost ? "at most" : "at least", bar.limit, bar.other,
                                bar.other_batch);
  const Series* const row = results.find(bar.row, bar.batch, Phase::submit);
  const Series* const other = results.find(bar.other, bar.other_batch, Phase::submit);
  if (row == nullptr || other == nullptr) {
    judgement.found = row == nullptr ? no_row(bar.row, bar.batch, Phase::submit)
                                     : no_row(bar.other, bar.other_batch, Phase::submit);
    return judgement;
  }
  const support::MedianInterval found =
      bar.kind == kNsMore ? difference(*row, *other) : ratio(*row, *other);
  judgement.found = text(found) + (bar.kind == kNsMore ? " ns" : "");
  const bool met = bar.kind == kAtLeast ? found.low >= bar.limit : found.high <= bar.limit;
  judgement.verdict = met ? Verdict::met : Verdict::missed;
  return judgement;
}

Judgement judge_free(const char* row, const CountKind& kind, const Results& results) {
  Judgement judgement{.bar = fmt::format("{}: no {}", row, kind.name),
                      .found = fmt::format("no figure of {}", row)};
  double most = 0;
  for (const Series& series : results.all) {
    if (series.name != row) continue;
    const std::optional<double> count = series.counts.*kind.value;
    if (!count) {
      judgement.found = fmt::format("{} were not counted", kind.name);
      judgement.verdict = Verdict::not_judged;
      return judgement;
    }
    if (judgement.verdict == Verdict::not_judged || *count > most) {
      most = *count;
      judgement.found = fmt::format("{:.3g} per batch of {}, phase {}", *count, series.batch,
                                    phase_name(series.phase));
    }
    judgement.verdict = most > 0 ? Verdict::missed : Verdict::met;
  }
  if (judgement.verdict == Verdict::met) judgement.found = "0";
  return judgement;
}

Judgement judge(const FloorBar& bar, const Results& results) {
  Judgement judgement{
      .bar = fmt::format("{}: no row is cheaper", bar.floor),
      .found = fmt::format("no figure of {} and another row to compare", bar.floor)};
  support::MedianInterval least;
  for (const Series& series : results.all) {
    if (series.phase != Phase::submit || series.name == bar.floor ||
        std::ranges::find(bar.others, series.name) != bar.others.end())
      continue;
    const Series* const floor = results.find(bar.floor, series.batch, Phase::submit);
    if (floor == nullptr) {
      judgement.found = no_row(bar.floor, series.batch, Phase::submit);
      judgement.verdict = Verdict::not_judged;
      return judgement;
    }
    const support::MedianInterval times = ratio(series, *floor);
    if (judgement.verdict == Verdict::not_judged || times.high < least.high) {
      least = times;
      judgement.found = fmt::format("{} of {}: {} times", series.name, series.batch, text(times));
    }
    judgement.verdict = least.high < 1 ? Verdict::missed : Verdict::met;
  }
  return judgement;
}

const char* name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::met:
      return "met";
    case Verdict::missed:
      return "missed";
    case Verdict::not_judged:
      break;
  }
  return "not judged";
}

}  // namespace

std::vector<Judgement> judge(const Results& results, int hip_major) {
  std::vector<Judgement> judgements;
  const auto add = [&](const auto& bar) { judgements.push_back(judge(bar, results)); };
  std::ranges::for_each(kRatios, add);
  for (const uint32_t batch : kImportedGraphBatches)
    add(Bar{"hip-graph", batch, kAtLeast, imported_graph_limit(hip_major), "uptempo-hip-graph",
            batch});
  std::ranges::for_each(kDifferences, add);
  for (const char* const row : kFreeRows)
    for (const CountKind* const kind : kFreeKinds)
      judgements.push_back(judge_free(row, *kind, results));
  std::ranges::for_each(kFloors, add);
  return judgements;
}

std::string table(const std::vector<Judgement>& judgements) {
  constexpr size_t kIndent = 12;
  std::string text = "Bars:\n";
  for (const Judgement& judgement : judgements)
    text += support::wrapped(judgement.bar + "; found " + judgement.found, 80, kIndent,
                             fmt::format("{:<{}}", name_of(judgement.verdict), kIndent));
  return text;
}

nlohmann::ordered_json json(const std::vector<Judgement>& judgements) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const Judgement& judgement : judgements)
    out.push_back({{"bar", judgement.bar},
                   {"found", judgement.found},
                   {"verdict", name_of(judgement.verdict)}});
  return out;
}

void require_met(const std::vector<Judgement>& judgements) {
  std::string sentence;
  for (const Judgement& judgement : judgements)
    if (judgement.verdict != Verdict::met)
      sentence += fmt::format("{}{}: '{}', found {}", sentence.empty() ? "" : "; ",
                              name_of(judgement.verdict), judgement.bar, judgement.found);
  if (!sentence.empty()) throw std::runtime_error("--bars: " + sentence);
}

}  // namespace uptempo::bench
