#include "tools/fence_scope/sequence/sequence_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <tuple>

#include "tools/litmus/rules.hpp"

namespace uptempo::fence_scope {
namespace {

using aql::Barrier;
using aql::FenceScope;
using litmus::CellId;
using litmus::Path;
using litmus::StepId;

constexpr size_t kHost = Judgement::kNoStep;
constexpr aql::HeaderFlags kNothing{Barrier::off, FenceScope::none, FenceScope::none};
constexpr aql::HeaderFlags kEverything{Barrier::on, FenceScope::system, FenceScope::system};

class Translation {
 public:
  Translation(const Sequence& sequence, const Headers& headers) : sequence_(sequence) {
    test_.name = sequence.name;
    cut();
    if (test_.cells.empty()) return;
    // Bench's preparation: kernels touch all bytes, then the host writes them.
    push({.flags = kEverything, .declared = all_cells(true, Path::vector)}, kHost);
    host_waits_for({0});
    push({.kind = litmus::Step::Kind::host_store, .declared = all_cells(true, Path::host)}, kHost);
    for (size_t number = 0; number < sequence.steps.size(); ++number)
      add_step(sequence.steps[number], headers[number], number);
    // Bench's completion: a closing packet in each queue, for which the host waits, as it does for
    // copies.
    std::vector<StepId> awaited;
    for (const uint32_t queue : {0u, 1u}) {
      if (std::ranges::none_of(sequence.steps, [queue](const Step& step) {
            return step.kind == Step::Kind::dispatch && step.queue == queue;
          }))
        continue;
      awaited.push_back(push({.kind = litmus::Step::Kind::barrier_and,
                              .queue = queue,
                              .flags = {Barrier::on, FenceScope::none, FenceScope::none}},
                             kHost));
    }
    for (size_t number = 0; number < sequence.steps.size(); ++number)
      if (sequence.steps[number].kind == Step::Kind::copy) awaited.push_back(place_[number]);
    host_waits_for(std::move(awaited));
    push({.kind = litmus::Step::Kind::host_load, .declared = all_cells(false, Path::host)}, kHost);
  }

  const litmus::Test& test() const noexcept { return test_; }
  size_t step_of(StepId id) const noexcept { return origin_[id]; }
  // The buffer in which two steps of the test meet and one of them writes.
  size_t common_buffer(const litmus::Hazard& hazard) const {
    for (const litmus::Access& a : test_.steps[hazard.earlier].declared)
      for (const litmus::Access& b : test_.steps[hazard.later].declared)
        if (a.cell == b.cell && a.write == earlier_writes(hazard) &&
            b.write == !later_reads(hazard))
          return buffer_of_[a.cell];
    return 0;
  }
  static bool earlier_writes(const litmus::Hazard& hazard) noexcept {
    return hazard.conflict != litmus::Hazard::Conflict::write_after_read;
  }
  static bool later_reads(const litmus::Hazard& hazard) noexcept {
    return hazard.conflict == litmus::Hazard::Conflict::read_after_write;
  }

 private:
  void cut() {
    std::vector<std::set<uint64_t>> edges(sequence_.buffers.size());
    for (const Step& step : sequence_.steps)
      for (const Access& access : accesses_of(step))
        if (access.bytes != 0)
          edges.at(access.buffer).insert({access.begin, access.begin + access.bytes});
    first_cell_.resize(edges.size());
    for (size_t buffer = 0; buffer < edges.size(); ++buffer) {
      first_cell_[buffer] = test_.cells.size();
      edges_.emplace_back(edges[buffer].begin(), edges[buffer].end());
      for (size_t piece = 0; piece + 1 < edges_[buffer].size(); ++piece) {
        test_.cell(sequence_.buffers[buffer].name, sequence_.buffers[buffer].kind);
        buffer_of_.push_back(buffer);
      }
    }
  }

  // Cells between two edges are consecutive.
  void add_cells(const Access& access, Path path, std::vector<litmus::Access>& to) const {
    const std::vector<uint64_t>& edges = edges_[access.buffer];
    const auto begin = std::ranges::lower_bound(edges, access.begin);
    const auto end = std::ranges::lower_bound(edges, access.begin + access.bytes);
    for (auto edge = begin; edge != end; ++edge)
      to.push_back({first_cell_[access.buffer] + static_cast<size_t>(edge - edges.begin()),
                    access.writes, path});
  }

  std::vector<litmus::Access> all_cells(bool write, Path path) const {
    std::vector<litmus::Access> all;
    for (CellId cell = 0; cell < test_.cells.size(); ++cell) {
      if (path == Path::vector) all.push_back({cell, false, path});
      all.push_back({cell, write, path});
    }
    return all;
  }

  StepId push(litmus::Step step, size_t origin) {
    step.is_declared = true;
    test_.steps.push_back(std::move(step));
    origin_.push_back(origin);
    return test_.steps.size() - 1;
  }
  void host_waits_for(std::vector<StepId> steps) {
    push({.kind = litmus::Step::Kind::host_wait, .after = std::move(steps)}, kHost);
  }

  void add_step(const Step& step, aql::HeaderFlags flags, size_t number) {
    std::vector<StepId> after;
    for (const size_t earlier : step.after) {
      if (earlier >= number)
        throw std::invalid_argument(
            fmt::format("step {} ('{}') comes after step {}, which is not an earlier one", number,
                        step.name, earlier));
      after.push_back(place_[earlier]);
    }
    std::vector<litmus::Access> accesses;
    const bool is_copy = step.kind == Step::Kind::copy;
    for (const Access& access : accesses_of(step))
      add_cells(access, is_copy ? Path::engine : Path::vector, accesses);
    if (is_copy) {
      place_.push_back(
          push({.kind = litmus::Step::Kind::copy, .after = std::move(after), .declared = accesses},
               number));
      return;
    }
    if (!after.empty())
      push({.kind = litmus::Step::Kind::barrier_and,
            .queue = step.queue,
            .flags = kNothing,
            .after = std::move(after)},
           number);
    place_.push_back(push({.queue = step.queue, .flags = flags, .declared = accesses}, number));
  }

  const Sequence& sequence_;
  litmus::Test test_;
  std::vector<size_t> origin_;                // [step of the test]
  std::vector<StepId> place_;                 // [step of the sequence]
  std::vector<std::vector<uint64_t>> edges_;  // [buffer]
  std::vector<CellId> first_cell_;            // [buffer]
  std::vector<size_t> buffer_of_;             // [cell]
};

bool has(const std::vector<Hazard>& hazards, const Hazard& wanted) {
  return std::ranges::any_of(hazards, [&](const Hazard& hazard) {
    return hazard.earlier == wanted.earlier && hazard.later == wanted.later &&
           hazard.later_reads == wanted.later_reads &&
           hazard.earlier_writes == wanted.earlier_writes;
  });
}

}  // namespace

std::vector<Hazard> hazards_of(const Sequence& sequence, const Headers& headers) {
  if (headers.size() != sequence.steps.size())
    throw std::invalid_argument(fmt::format("{} headers for a sequence of {} steps", headers.size(),
                                            sequence.steps.size()));
  const Translation translation(sequence, headers);
  std::vector<Hazard> all;
  for (const litmus::Hazard& found : litmus::hazards_of(translation.test(), sequence.caches)) {
    const Hazard hazard{.earlier = translation.step_of(found.earlier),
                        .later = translation.step_of(found.later),
                        .ordered = found.ordered,
                        .possible_on_target = found.possible_on_target,
                        .buffer = translation.common_buffer(found),
                        .later_reads = Translation::later_reads(found),
                        .earlier_writes = Translation::earlier_writes(found)};
    // Cells of one buffer repeat the same hazard.
    if (all.empty() || !(all.back() == hazard)) all.push_back(hazard);
  }
  return all;
}

const Hazard* worst_of(const std::vector<Hazard>& hazards) noexcept {
  const auto rank = [](const Hazard& hazard) {
    return std::tuple(hazard.ordered, !hazard.possible_on_target);
  };
  const auto worst = std::ranges::min_element(hazards, {}, rank);
  return worst == hazards.end() ? nullptr : &*worst;
}

std::string name_of(size_t step, const Sequence& sequence) {
  return step == kHost ? "the host" : fmt::format("'{}' ({})", sequence.steps[step].name, step);
}

std::string in_words(const Hazard& hazard, const Sequence& sequence, const Headers& headers) {
  std::string text = fmt::format(
      "{} {} what {} {} {}, and ", name_of(hazard.later, sequence),
      hazard.later_reads ? "reads" : "overwrites", name_of(hazard.earlier, sequence),
      hazard.earlier_writes ? "wrote to" : "reads of", sequence.buffers[hazard.buffer].name);
  if (!hazard.ordered) return text + "nothing orders the two";
  const auto is_dispatch = [&](size_t step) {
    return step != kHost && sequence.steps[step].kind == Step::Kind::dispatch;
  };
  if (!is_dispatch(hazard.later)) return text + "nothing releases it to the system in between";
  if (!is_dispatch(hazard.earlier)) return text + "nothing acquires it from the system in between";
  // Find the missing fence: the one that removes the hazard.
  Headers wider = headers;
  wider[hazard.later].acquire = std::max(wider[hazard.later].acquire, FenceScope::agent);
  if (!has(hazards_of(sequence, wider), hazard))
    return text + "nothing acquires at agent scope in between";
  wider = headers;
  wider[hazard.earlier].release = std::max(wider[hazard.earlier].release, FenceScope::agent);
  if (!has(hazards_of(sequence, wider), hazard))
    return text + "nothing releases at agent scope in between";
  return text + "nothing releases and acquires at agent scope in between";
}

}  // namespace uptempo::fence_scope
