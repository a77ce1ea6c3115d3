#include "tools/fence_scope/experiment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <tuple>

#include "tools/fence_scope/report/report_words.hpp"
#include "tools/support/program.hpp"
#include "tools/support/statistics.hpp"
#include "tools/support/table.hpp"

namespace uptempo::fence_scope {
namespace {

using aql::Barrier;
using aql::FenceScope;

constexpr FenceScope kScopes[] = {FenceScope::none, FenceScope::agent, FenceScope::system};
constexpr const char* kBaseline = "a barrier bit and system scopes on every packet";

Cell cell_of(const Sequence& sequence, std::string label, Headers headers) {
  Cell cell;
  cell.workload = sequence.name;
  cell.label = std::move(label);
  cell.headers = std::move(headers);
  std::vector<bool> touched(sequence.buffers.size());
  uint64_t bytes = 0;
  for (const Step& step : sequence.steps) {
    if (step.kind != Step::Kind::dispatch) continue;
    ++cell.kernels;
    for (const Access& access : step.accesses) {
      if (access.writes) bytes += access.bytes;
      touched[access.buffer] = true;
    }
  }
  cell.bytes_per_kernel = cell.kernels == 0 ? 0 : bytes / cell.kernels;
  for (size_t i = 0; i < touched.size(); ++i)
    if (touched[i]) cell.working_set_bytes += sequence.buffers[i].bytes;
  return cell;
}

Cell baseline_of(const Sequence& sequence) {
  constexpr aql::HeaderFlags flags{Barrier::on, FenceScope::system, FenceScope::system};
  Cell cell = cell_of(sequence, flags_label(flags), everywhere(sequence));
  cell.flags = flags;
  cell.baseline = true;
  return cell;
}

bool same_headers(const Sequence& sequence, const Headers& a, const Headers& b) {
  for (size_t i = 0; i < sequence.steps.size(); ++i)
    if (sequence.steps[i].kind == Step::Kind::dispatch && a[i] != b[i]) return false;
  return true;
}

bool usable(const Cell& cell) {
  return cell.judgement.verdict == Verdict::correct && cell.judgement.wrong_runs == 0;
}

bool is_timed(const Cell& cell) { return !cell.gated.samples_us.empty(); }

// The time that shows the device's cost of fences.
const Times& device_time(const Cell& cell) { return cell.device ? *cell.device : cell.gated; }

// No value if the two were not timed in the same rounds.
std::optional<support::MedianInterval> ratio_of(const Times& times, const Times& to) {
  if (times.samples_us.empty() || times.samples_us.size() != to.samples_us.size())
    return std::nullopt;
  return support::median_ratio(times.samples_us, to.samples_us);
}

bool differs(const Times& times, const Times& from) {
  const auto ratio = ratio_of(times, from);
  return ratio && ratio->coverage >= 0.95 && (ratio->low > 1 || ratio->high < 1);
}

FenceCost cost_of(const Cell& cell) {
  const DeviceCounts& counts = cell.counts;
  return {.system_fences = counts.system_acquires + counts.system_releases,
          .barrier_bits = counts.barrier_bits,
          .agent_fences = counts.agent_acquires + counts.agent_releases};
}

std::optional<size_t> fastest(std::span<const Cell> cells, std::span<const size_t> candidates) {
  const auto median = [&](size_t i) { return device_time(cells[i]).median_us; };
  const auto first = std::ranges::min_element(candidates, {}, median);
  if (first == candidates.end()) return std::nullopt;
  std::vector<size_t> tied;
  for (const size_t i : candidates)
    if (i == *first || !differs(device_time(cells[i]), device_time(cells[*first])))
      tied.push_back(i);
  return *std::ranges::min_element(
      tied, {}, [&](size_t i) { return std::tuple(cost_of(cells[i]), median(i)); });
}

std::optional<size_t> cheapest(std::span<const Cell> cells, std::span<const size_t> candidates) {
  const bool modelled =
      std::ranges::all_of(candidates, [&](size_t i) { return cells[i].model.has_value(); });
  const auto found = std::ranges::min_element(candidates, {}, [&](size_t i) {
    return std::tuple(modelled ? cells[i].model->us : 0, cost_of(cells[i]));
  });
  return found == candidates.end() ? std::nullopt : std::optional(*found);
}

std::string fewer(uint64_t here, uint64_t baseline, const char* what) {
  return here >= baseline ? std::string()
                          : fmt::format("{} of {} {}", baseline - here, baseline, what);
}

std::string saved_fences(const Cell& cell, const Cell& baseline) {
  const FenceCost here = cost_of(cell), there = cost_of(baseline);
  std::string text;
  for (const std::string& part : {fewer(here.system_fences, there.system_fences, "system fences"),
                                  fewer(here.barrier_bits, there.barrier_bits, "barrier bits"),
                                  fewer(here.agent_fences, there.agent_fences, "agent fences")})
    if (!part.empty()) text += (text.empty() ? "" : ", ") + part;
  return text.empty() ? "nothing" : text;
}

struct Saving {
  double share = 0;  // share of the baseline's time
  const char* of;    // name of that time
  bool certain = true;
};

double system_fences(const Cell& cell) { return static_cast<double>(cost_of(cell).system_fences); }

// On the virtual GPU by the model, since its own times say nothing about a device; no value without
// a model.
std::optional<Saving> saving_of(const Cell& cell, const Cell& baseline, TimeKind kind) {
  if (kind == TimeKind::virtual_gpu) {
    if (!cell.model || !baseline.model || baseline.model->us <= 0) return std::nullopt;
    return Saving{1 - cell.model->us / baseline.model->us, "model time"};
  }
  const Times& here = device_time(cell);
  const Times& there = device_time(baseline);
  const auto ratio = ratio_of(here, there);
  if (!ratio) return std::nullopt;
  return Saving{1 - ratio->median, cell.device ? "time by the packets' timestamps" : "time",
                differs(here, there)};
}

const Cell* find(std::span<const Cell> cells, bool Cell::*mark) {
  const auto found = std::ranges::find(cells, true, mark);
  return found == cells.end() ? nullptr : &*found;
}

std::string where(const Cell& cell) {
  switch (cell.position) {
    case Position::first:
      return " on the first packet, others as planned";
    case Position::interior:
      return " on packets between the first and the last, others as planned";
    case Position::last:
      return " on the last packet, others as planned";
    case Position::all:
      break;
  }
  return "";
}

// for example "of 33 % of the model time", or fences if times are not conclusive.
std::string saved(const Cell& cell, const Cell& baseline, TimeKind kind) {
  const std::optional<Saving> saving = saving_of(cell, baseline, kind);
  if (!saving) return saved_fences(cell, baseline);
  if (!saving->certain)
    return fmt::format("{}; the difference in time is below this machine's noise",
                       saved_fences(cell, baseline));
  return fmt::format("{:.0f} % of the {}", 100 * saving->share, saving->of);
}

// Whether a cell was measured faster than the one that the model recommends; "" if none was.
std::string measured_faster(std::span<const Cell> cells, std::span<const size_t> group) {
  const auto chosen = std::ranges::find_if(group, [&](size_t i) { return cells[i].recommended; });
  if (chosen == group.end() || !cells[*chosen].model) return {};
  const Cell& recommended = cells[*chosen];
  const Cell* fastest = nullptr;
  for (const size_t i : group)
    if (usable(cells[i]) && differs(cells[i].gated, recommended.gated) &&
        cells[i].gated.median_us < recommended.gated.median_us &&
        (fastest == nullptr || cells[i].gated.median_us < fastest->gated.median_us))
      fastest = &cells[i];
  if (fastest == nullptr) return {};
  return fmt::format(
      "{}: '{}' is recommended by the model; the virtual GPU executed '{}', which is also correct, "
      "in {:.0f} % less time. Its own times say nothing about a device; the model is an estimate",
      recommended.workload, recommended.label, fastest->label,
      100 * (1 - ratio_of(fastest->gated, recommended.gated)->median));
}

std::string size_of(const Cell& cell) {
  return support::counted(cell.kernels, "kernel") + " of " + bytes_text(cell.bytes_per_kernel);
}

}  // namespace

std::vector<aql::HeaderFlags> all_flags() {
  std::vector<aql::HeaderFlags> all;
  for (const Barrier barrier : {Barrier::on, Barrier::off})
    for (const FenceScope acquire : kScopes)
      for (const FenceScope release : kScopes) all.push_back({barrier, acquire, release});
  return all;
}

std::vector<size_t> steps_at(const Sequence& sequence, Position position) {
  std::vector<size_t> steps;
  for (const uint32_t queue : {0u, 1u}) {
    const std::vector<size_t> packets = sequence.dispatches(queue);
    for (size_t i = 0; i < packets.size(); ++i) {
      const bool first = i == 0, last = i + 1 == packets.size();
      if (position == Position::all || (position == Position::first && first) ||
          (position == Position::last && last) ||
          (position == Position::interior && !first && !last))
        steps.push_back(packets[i]);
    }
  }
  return steps;
}

std::vector<Cell> scopes_cells(const Sequence& sequence, const Headers& planned,
                               std::span<const Position> positions) {
  std::vector<Cell> cells{baseline_of(sequence)};
  bool has_plan = same_headers(sequence, everywhere(sequence), planned);
  for (const Position position : positions) {
    const std::vector<size_t> steps = steps_at(sequence, position);
    if (steps.empty())
      throw support::UsageError(fmt::format(
          "{}: no packet is {}; choose another --position or more kernels", sequence.name,
          position == Position::interior ? "between the first and the last" : name_of(position)));
    for (const aql::HeaderFlags& flags : all_flags()) {
      Headers headers = planned;
      for (const size_t step : steps) headers[step] = flags;
      has_plan = has_plan || same_headers(sequence, headers, planned);
      cells.push_back(cell_of(sequence, flags_label(flags), std::move(headers)));
      cells.back().position = position;
      cells.back().flags = flags;
    }
  }
  if (!has_plan) cells.push_back(cell_of(sequence, "as planned", planned));
  return cells;
}

std::vector<Cell> comparison_cells(const Sequence& sequence, const Headers& planned) {
  Headers agent = everywhere(sequence);
  for (const size_t step : steps_at(sequence, Position::interior))
    agent[step] = {Barrier::on, FenceScope::agent, FenceScope::agent};
  std::vector<Cell> cells{baseline_of(sequence),
                          cell_of(sequence, "agent in between", std::move(agent)),
                          cell_of(sequence, "as planned", planned)};
  cells[0].label = "system everywhere";
  return cells;
}

std::vector<PlannedPacket> planned_packets(const Sequence& sequence, const PlannedHeaders& plan,
                                           const Headers* checker) {
  std::vector<PlannedPacket> packets;
  for (const uint32_t queue : {0u, 1u}) {
    uint32_t number = 0;
    for (const size_t step : sequence.dispatches(queue)) {
      const PlanReasons& reasons = plan.reasons[step];
      packets.push_back({.step = step,
                         .queue = queue,
                         .packet = number++,
                         .flags = plan.headers[step],
                         .barrier = reasons.barrier,
                         .acquire = reasons.acquire,
                         .release = reasons.release});
      if (checker != nullptr) packets.back().checker = checker->at(step);
    }
  }
  return packets;
}

void keep_matching(std::vector<Cell>& cells, const std::string& filter) {
  const auto matches = [&](const Cell& cell) {
    return cell.label.find(filter) != std::string::npos;
  };
  if (std::ranges::none_of(cells, matches))
    throw support::UsageError("--filter: no cell has '" + filter + "' in its label (see --list)");
  std::erase_if(cells, [&](const Cell& cell) { return !cell.baseline && !matches(cell); });
}

const Cell& cell_to_trace(std::span<const Cell> cells, const std::string& wanted) {
  std::vector<const Cell*> exact, similar;
  for (const Cell& cell : cells) {
    if (wanted.empty() ? cell.recommended : cell.label == wanted) exact.push_back(&cell);
    if (!wanted.empty() && cell.label.find(wanted) != std::string::npos) similar.push_back(&cell);
  }
  const std::vector<const Cell*>& found = exact.empty() ? similar : exact;
  if (found.size() == 1) return *found[0];
  if (wanted.empty())
    throw support::UsageError(
        "--trace: no cell is recommended; choose the cell to trace with --cell");
  if (found.empty())
    throw support::UsageError("--cell: no cell has '" + wanted + "' in its label (see --list)");
  throw support::UsageError(fmt::format(
      "--cell: {} cells have '{}' in their label, among them '{}' and '{}'; give a longer text, or "
      "one --position",
      found.size(), wanted, found[0]->label, found[1]->label));
}

void carry_out(std::vector<Cell>& cells, const Instruments& instruments, const Method& method,
               const Clock& now) {
  std::vector<Measured> measured = measure(cells.size(), method, instruments.run, now);
  for (size_t i = 0; i < cells.size(); ++i) {
    Cell& cell = cells[i];
    cell.gated = std::move(measured[i].gated);
    cell.ungated = std::move(measured[i].ungated);
    cell.device = std::move(measured[i].device);
    cell.counts = instruments.counts(i);
    cell.model = instruments.model(i);

    Judgement& judgement = cell.judgement = instruments.judge(i);
    judgement.runs += measured[i].runs;
    judgement.wrong_runs += measured[i].wrong_runs;
    if (judgement.wrong_runs > 0 && judgement.verdict == Verdict::unknown) {
      judgement.verdict = Verdict::stale;
    } else if (judgement.wrong_runs > 0 && judgement.verdict == Verdict::correct) {
      judgement.verdict = Verdict::unknown;
      judgement.reason = "the rules promise right results, and some were wrong";
    }
  }
  for (const std::vector<size_t>& group : groups_of(cells)) {
    const auto baseline = std::ranges::find_if(group, [&](size_t i) { return cells[i].baseline; });
    if (baseline == group.end()) continue;
    for (const size_t i : group)
      if (const auto ratio = ratio_of(cells[i].gated, cells[*baseline].gated))
        cells[i].relative = ratio->median;
  }
}

std::vector<std::vector<size_t>> groups_of(std::span<const Cell> cells) {
  const auto key = [&](size_t i) {
    return std::tie(cells[i].workload, cells[i].kernels, cells[i].bytes_per_kernel,
                    cells[i].working_set_bytes);
  };
  std::vector<std::vector<size_t>> groups;
  for (size_t i = 0; i < cells.size(); ++i) {
    const auto group =
        std::ranges::find_if(groups, [&](const auto& each) { return key(each[0]) == key(i); });
    if (group == groups.end())
      groups.push_back({i});
    else
      group->push_back(i);
  }
  return groups;
}

void recommend(std::vector<Cell>& cells, TimeKind kind) {
  for (Cell& cell : cells) cell.recommended = false;
  for (const std::vector<size_t>& group : groups_of(cells)) {
    // A run that ended early may have timed some cells and not others. A model needs no times.
    const bool has_times = std::ranges::any_of(group, [&](size_t i) { return is_timed(cells[i]); });
    std::vector<size_t> candidates;
    std::ranges::copy_if(group, std::back_inserter(candidates), [&](size_t i) {
      const bool by_model = kind == TimeKind::virtual_gpu && cells[i].model.has_value();
      return usable(cells[i]) && (is_timed(cells[i]) || !has_times || by_model);
    });
    const auto chosen =
        kind == TimeKind::hardware ? fastest(cells, candidates) : cheapest(cells, candidates);
    if (chosen) cells[*chosen].recommended = true;
  }
}

std::string conclusion_of(std::span<const Cell> group, TimeKind kind) {
  const auto broken = std::ranges::count_if(group, contradicts_rules);
  if (broken > 0)
    return fmt::format(
        "Broken: {} of {} cells gave wrong results although the rules promise right ones.", broken,
        group.size());
  const Cell* cell = find(group, &Cell::recommended);
  if (cell == nullptr) return "No recommendation: no cell is known to be correct.";
  const Cell* baseline = find(group, &Cell::baseline);
  const char* superlative = kind == TimeKind::hardware ? "Fastest" : "Cheapest";
  if (baseline == nullptr || cell == baseline)
    return fmt::format("{} correct: {}{}.", superlative, cell->label, where(*cell));
  return fmt::format("{} correct: {}{}; saves {} against {}.", superlative, cell->label,
                     where(*cell), saved(*cell, *baseline, kind), kBaseline);
}

std::string conclusion_of_sweep(std::span<const Cell> cells, TimeKind kind) {
  struct Point {
    const Cell* cell;
    double share;
    const char* of;
  };
  std::vector<Point> points;
  size_t groups = 0;
  for (const std::vector<size_t>& group : groups_of(cells)) {
    ++groups;
    const Cell *chosen = nullptr, *baseline = nullptr;
    for (const size_t i : group) {
      if (contradicts_rules(cells[i]))
        return fmt::format(
            "Broken: {}, {} gave wrong results although the rules promise right ones.",
            cells[i].label, size_of(cells[i]));
      if (cells[i].recommended) chosen = &cells[i];
      if (cells[i].baseline) baseline = &cells[i];
    }
    if (chosen == nullptr || baseline == nullptr) continue;
    const auto saving = saving_of(*chosen, *baseline, kind);
    if (saving && saving->certain) points.push_back({chosen, saving->share, saving->of});
    if (!saving && system_fences(*baseline) > 0)
      points.push_back(
          {chosen, 1 - system_fences(*chosen) / system_fences(*baseline), "system fences"});
  }
  if (points.empty())
    return fmt::format("None of {} sizes is known to save time against {}.", groups, kBaseline);
  const auto [least, most] = std::ranges::minmax_element(points, {}, &Point::share);
  return fmt::format(
      "The cheapest correct choice saves from {:.0f} % ({}) to {:.0f} % ({}) of the {} against {}.",
      100 * least->share, size_of(*least->cell), 100 * most->share, size_of(*most->cell), most->of,
      kBaseline);
}

std::vector<std::string> warnings_of(std::span<const Cell> cells, const Method& method,
                                     TimeKind kind) {
  std::vector<std::string> warnings;
  for (const Cell& cell : cells)
    if (contradicts_rules(cell))
      warnings.push_back(
          fmt::format("{}: {} of {} runs were wrong although the rules promise right results",
                      cell.label, cell.judgement.wrong_runs, cell.judgement.runs));
  if (const auto untimed = std::ranges::count_if(cells, std::not_fn(is_timed)); untimed > 0)
    warnings.push_back(
        fmt::format("{} of {} cells have no time, because the run ended during its first round",
                    untimed, cells.size()));
  const auto noisy = std::ranges::count_if(cells, [](const Cell& cell) {
    return cell.gated.noisy || cell.ungated.noisy || (cell.device && cell.device->noisy);
  });
  if (noisy > 0)
    warnings.push_back(fmt::format(
        "noisy: {} of {} cells are not known to {:g} % after {} rounds; use a quieter machine, "
        "more --rounds or a larger --precision",
        noisy, cells.size(), 100 * method.precision, cells[0].gated.samples_us.size()));
  if (kind == TimeKind::virtual_gpu) {
    for (const std::vector<size_t>& group : groups_of(cells))
      if (std::string text = measured_faster(cells, group); !text.empty())
        warnings.push_back(std::move(text));
    return warnings;
  }
  for (const std::vector<size_t>& group : groups_of(cells)) {
    const auto chosen = std::ranges::find_if(group, [&](size_t i) { return cells[i].recommended; });
    if (chosen == group.end()) continue;
    const auto tied = std::ranges::count_if(group, [&](size_t i) {
      return i != *chosen && usable(cells[i]) &&
             !differs(device_time(cells[i]), device_time(cells[*chosen]));
    });
    if (tied > 0)
      warnings.push_back(fmt::format(
          "{}: the times of {} other correct cells do not differ from the recommended cell's, "
          "which has the fewest fences",
          cells[*chosen].workload, tied));
  }
  return warnings;
}

bool contradicts_rules(const Cell& cell) {
  return cell.judgement.verdict == Verdict::unknown && cell.judgement.wrong_runs > 0;
}

}  // namespace uptempo::fence_scope
