#include "tools/bench/dispatch/bars.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tools/support/table.hpp"

namespace uptempo::bench {
namespace {

enum class Bound : uint8_t { at_most, at_least };

// Limits the ratio of two rows' host time per dispatch, in the phase submit.
struct RatioBar {
  const char* row;
  uint32_t batch;
  Bound bound;
  double limit;  // ratio
  const char* other;
  uint32_t other_batch;
};

constexpr RatioBar kRatios[] = {
    {"uptempo-batch", 120, Bound::at_most, 1.2, "hsa-careful", 120},
    {"hip-launch", 120, Bound::at_least, 30, "uptempo-batch", 120},
    {"hip-launch", 120, Bound::at_least, 30, "uptempo-dispatch", 120},
    {"uptempo-replay", 120, Bound::at_most, 1.15, "floor-packets", 120},
    {"uptempo-replay", 1024, Bound::at_most, 1.15, "floor-packets", 1024},
    {"uptempo-replay", 8192, Bound::at_most, 1.15, "floor-packets", 8192},
    {"hip-graph", 120, Bound::at_least, 25, "uptempo-replay", 120},
    {"hip-graph", 1024, Bound::at_least, 25, "uptempo-replay", 1024},
    {"hip-graph", 8192, Bound::at_least, 25, "uptempo-replay", 8192},
    // The time is flat from 120 to 8,192.
    {"uptempo-batch", 8192, Bound::at_most, 1.25, "uptempo-batch", 120},
    {"uptempo-replay", 8192, Bound::at_most, 1.25, "uptempo-replay", 120},
};

// HIP 6 launches graphs faster than HIP 5.
double imported_graph_limit(int hip_major) { return hip_major >= 6 ? 10 : 25; }
constexpr uint32_t kImportedGraphBatches[] = {120, 1024};

// Limits the difference of two rows' host time per dispatch, in the phase submit.
struct DifferenceBar {
  const char* row;
  const char* other;
  uint32_t batch;
  double limit_ns;
};

constexpr double kPlanningNs = 20;
constexpr double kRunTimeArgumentsNs = 2;
constexpr double kPointersNs = kRunTimeArgumentsNs + 1;  // and to load two values where they are
constexpr DifferenceBar kDifferences[] = {
    {"uptempo-dispatch-packed", "uptempo-dispatch", 120, kRunTimeArgumentsNs},
    {"uptempo-dispatch-packed", "uptempo-dispatch", 1024, kRunTimeArgumentsNs},
    {"uptempo-dispatch-params", "uptempo-dispatch", 120, kPointersNs},
    {"uptempo-dispatch-params", "uptempo-dispatch", 1024, kPointersNs},
    {"uptempo-planned", "uptempo-prepared", 8, kPlanningNs},
    {"uptempo-planned", "uptempo-prepared", 120, kPlanningNs},
    {"uptempo-planned", "uptempo-prepared", 1024, kPlanningNs},
    {"uptempo-planned-slices", "uptempo-prepared", 8, kPlanningNs},
    {"uptempo-planned-slices", "uptempo-prepared", 120, kPlanningNs},
    {"uptempo-planned-slices", "uptempo-prepared", 1024, kPlanningNs},
};

// These rows must have a count of 0 in the steady state.
struct FreeBar {
  const char* row;
  const CountKind& kind;
};
constexpr const CountKind& kAllocations = kCountKinds[0];
constexpr const CountKind& kSystemCalls = kCountKinds[1];
constexpr FreeBar kFree[] = {
    {"uptempo-single", kAllocations},         {"uptempo-single", kSystemCalls},
    {"uptempo-dispatch", kAllocations},       {"uptempo-dispatch", kSystemCalls},
    {"uptempo-prepared", kAllocations},       {"uptempo-prepared", kSystemCalls},
    {"uptempo-batch", kAllocations},          {"uptempo-batch", kSystemCalls},
    {"uptempo-planned", kAllocations},        {"uptempo-planned", kSystemCalls},
    {"uptempo-planned-slices", kAllocations}, {"uptempo-planned-slices", kSystemCalls},
    {"uptempo-stream", kAllocations},         {"uptempo-stream", kSystemCalls},
    {"uptempo-launcher", kAllocations},       {"uptempo-launcher", kSystemCalls},
    {"uptempo-replay", kAllocations},         {"uptempo-replay", kSystemCalls},
    {"uptempo-replay-patched", kAllocations}, {"uptempo-replay-patched", kSystemCalls},
    {"uptempo-hip-graph", kAllocations},      {"uptempo-hip-graph", kSystemCalls},
};

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

Judgement judge(const RatioBar& bar, const Results& results) {
  Judgement judgement{.bar = fmt::format("{} of {}: {} {} times {} of {}", bar.row, bar.batch,
                                         bar.bound == Bound::at_most ? "at most" : "at least",
                                         bar.limit, bar.other, bar.other_batch),
                      .found = {}};
  const Series* const row = results.find(bar.row, bar.batch, Phase::submit);
  const Series* const other = results.find(bar.other, bar.other_batch, Phase::submit);
  if (row == nullptr || other == nullptr) {
    judgement.found = row == nullptr ? no_row(bar.row, bar.batch, Phase::submit)
                                     : no_row(bar.other, bar.other_batch, Phase::submit);
    return judgement;
  }
  const support::MedianInterval times = ratio(*row, *other);
  judgement.found = text(times);
  const bool met = bar.bound == Bound::at_most ? times.high <= bar.limit : times.low >= bar.limit;
  judgement.verdict = met ? Verdict::met : Verdict::missed;
  return judgement;
}

Judgement judge(const DifferenceBar& bar, const Results& results) {
  Judgement judgement{.bar = fmt::format("{} of {}: at most {} ns more than {}", bar.row, bar.batch,
                                         bar.limit_ns, bar.other),
                      .found = {}};
  const Series* const row = results.find(bar.row, bar.batch, Phase::submit);
  const Series* const other = results.find(bar.other, bar.batch, Phase::submit);
  if (row == nullptr || other == nullptr) {
    judgement.found = no_row(row == nullptr ? bar.row : bar.other, bar.batch, Phase::submit);
    return judgement;
  }
  const support::MedianInterval ns = difference(*row, *other);
  judgement.found = text(ns) + " ns";
  judgement.verdict = ns.high <= bar.limit_ns ? Verdict::met : Verdict::missed;
  return judgement;
}

Judgement judge(const FreeBar& bar, const Results& results) {
  Judgement judgement{.bar = fmt::format("{}: no {}", bar.row, bar.kind.name),
                      .found = fmt::format("no figure of {}", bar.row)};
  double most = 0;
  for (const Series& series : results.all) {
    if (series.name != bar.row) continue;
    const std::optional<double> count = series.counts.*bar.kind.value;
    if (!count) {
      judgement.found = fmt::format("{} were not counted", bar.kind.name);
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
    add(RatioBar{"hip-graph", batch, Bound::at_least, imported_graph_limit(hip_major),
                 "uptempo-hip-graph", batch});
  std::ranges::for_each(kDifferences, add);
  std::ranges::for_each(kFree, add);
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
