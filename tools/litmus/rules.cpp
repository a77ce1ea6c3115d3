#include "tools/litmus/rules.hpp"

#include <algorithm>

namespace uptempo::litmus {
namespace {

using aql::Barrier;
using aql::FenceScope;

// The begin and end of each step of a test, and the "before" relation between them.
class Order {
 public:
  explicit Order(const Test& test)
      : moments_(2 * test.steps.size()), row_((moments_ + 63) / 64), before_(moments_ * row_, 0) {
    for (StepId i = 0; i < test.steps.size(); ++i) {
      add(begin(i), end(i));
      for (StepId earlier = 0; earlier < i; ++earlier) add_pair(test.steps, earlier, i);
      const std::vector<StepId>& after = test.steps[i].after;
      if (test.steps[i].kind != Step::Kind::barrier_or || after.size() == 1)
        for (const StepId dependency : after) add(end(dependency), begin(i));
    }
    // Warshall's closure.
    for (size_t via = 0; via < moments_; ++via)
      for (size_t from = 0; from < moments_; ++from)
        if (before(from, via))
          for (size_t to = 0; to < row_; ++to)
            before_[from * row_ + to] |= before_[via * row_ + to];
  }

  static size_t begin(StepId step) { return 2 * step; }
  static size_t end(StepId step) { return 2 * step + 1; }
  bool before(size_t a, size_t b) const { return (before_[a * row_ + b / 64] >> b % 64 & 1) != 0; }
  bool ended_before(StepId a, StepId b) const { return before(end(a), begin(b)); }

 private:
  void add(size_t a, size_t b) { before_[a * row_ + b / 64] |= uint64_t{1} << b % 64; }
  void add_pair(const std::vector<Step>& steps, StepId earlier, StepId later) {
    const Step& a = steps[earlier];
    const Step& b = steps[later];
    if (!a.is_on_device()) {
      add(end(earlier), begin(later));  // orders the host, and everything that it publishes later
    } else if (a.is_packet() && b.is_packet() && a.queue == b.queue) {
      add(begin(earlier), begin(later));
      if (b.flags.barrier == Barrier::on || a.kind != Step::Kind::dispatch)
        add(end(earlier), begin(later));
    }
  }

  size_t moments_, row_;          // of 64 moments each
  std::vector<uint64_t> before_;  // [moment][moment], a bit each
};

bool is_dispatch(const Step& step) { return step.kind == Step::Kind::dispatch; }

bool is_sort_pass(const Step& step) {
  return is_dispatch(step) && !step.is_declared && step.kernel == Step::Kernel::sort_pass;
}
// The XCD on which a pass of the sort accesses a word: a queue's workgroups are dealt to its eight
// XCDs in turn, from the same one in each dispatch.
uint32_t xcd_of(const Step& pass, uint32_t word) {
  constexpr uint32_t xcds = 8;
  const uint32_t distance_log2 = pass.stage - pass.pass;
  const uint32_t item =
      word >> (distance_log2 + 1) << distance_log2 | (word & ((1u << distance_log2) - 1));
  return item / kSortWorkgroup % xcds;
}
// Whether `later` may access a word on another XCD than `earlier`.
bool changes_xcd(const Test& test, const Step& earlier, const Step& later) {
  if (!is_sort_pass(earlier) || !is_sort_pass(later) || earlier.queue != later.queue) return true;
  for (uint32_t word = 0; word < test.words; ++word)
    if (xcd_of(earlier, word) != xcd_of(later, word)) return true;
  return false;
}

class Judge {
 public:
  Judge(const Test& test, CacheRules rules) : test_(test), rules_(rules), order_(test) {
    for (const Step& step : test.steps) accesses_.push_back(accesses_of(test, step));
  }

  std::vector<Hazard> all() const {
    std::vector<Hazard> found;
    for (StepId later = 0; later < test_.steps.size(); ++later)
      for (StepId earlier = 0; earlier < later; ++earlier)
        for (const Access& a : accesses_[earlier])
          for (const Access& b : accesses_[later])
            if (a.cell == b.cell && (a.write || b.write))
              if (const auto hazard = judge(earlier, a, later, b)) found.push_back(*hazard);
    return found;
  }

 private:
  std::optional<Hazard> judge(StepId earlier, const Access& a, StepId later,
                              const Access& b) const {
    const auto conflict = !b.write  ? Hazard::Conflict::read_after_write
                          : a.write ? Hazard::Conflict::write_after_write
                                    : Hazard::Conflict::write_after_read;
    if (!order_.ended_before(earlier, later)) return Hazard{earlier, later, conflict, false, true};
    if (!a.write || overwritten_between(earlier, later, a.cell)) return std::nullopt;
    const bool from_dispatch = is_dispatch(test_.steps[earlier]),
               to_dispatch = is_dispatch(test_.steps[later]);
    if (from_dispatch && !to_dispatch && !released(earlier, later, FenceScope::system))
      return Hazard{earlier, later, conflict, true, is_hidden(earlier, later, a.cell)};
    if (from_dispatch && to_dispatch && b.write && rules_ == CacheRules::gfx942 &&
        is_hidden(earlier, later, a.cell))
      return Hazard{earlier, later, conflict, true, true};
    if (b.write || !to_dispatch) return std::nullopt;
    if (from_dispatch ? handed_over(earlier, later) : acquired(earlier, later, FenceScope::system))
      return std::nullopt;
    const bool stale_in_l1 = held(earlier, later, b, FenceScope::agent);
    const bool stale_in_l2 =
        rules_ == CacheRules::gfx942
            ? from_dispatch && is_hidden(earlier, later, a.cell)
            : !from_dispatch && is_in_l2(a.cell) && held(earlier, later, b, FenceScope::system);
    return Hazard{earlier, later, conflict, true, stale_in_l1 || stale_in_l2};
  }

  // If so, the data of `earlier` is irrelevant at `later`. A write that is not ordered between the
  // two may execute before `earlier` or after `later`.
  bool overwritten_between(StepId earlier, StepId later, size_t cell) const {
    for (StepId step = earlier + 1; step < later; ++step)
      for (const Access& access : accesses_[step])
        if (access.cell == cell && access.write && order_.ended_before(earlier, step) &&
            order_.ended_before(step, later))
          return true;
    return false;
  }

  bool is_release(StepId step, FenceScope least) const {
    return test_.steps[step].is_packet() && test_.steps[step].flags.release >= least;
  }
  // Whether `step` acquires with at least scope `least`, at the latest when `reader` begins.
  bool is_acquire_for(StepId step, StepId reader, FenceScope least) const {
    return test_.steps[step].is_packet() && test_.steps[step].flags.acquire >= least &&
           (step == reader || order_.before(Order::begin(step), Order::begin(reader)));
  }
  bool covers(StepId release, StepId writer) const {
    return release == writer || order_.before(Order::end(writer), Order::end(release));
  }

  bool is_in_l2(size_t cell) const {
    if (cell >= test_.cells.size()) return false;
    const CellKind kind = test_.cells[cell].kind;
    return kind == CellKind::device_local ||
           (kind == CellKind::coarse_grained && rules_ == CacheRules::gfx9);
  }
  // Whether L2 may still keep the write from `later`.
  bool is_hidden(StepId writer, StepId later, size_t cell) const {
    const FenceScope least = rules_ == CacheRules::gfx942 ? FenceScope::agent : FenceScope::system;
    return is_in_l2(cell) && !released(writer, later, least) &&
           (rules_ == CacheRules::gfx9 ||
            changes_xcd(test_, test_.steps[writer], test_.steps[later]));
  }
  bool released(StepId writer, StepId reader, FenceScope least) const {
    for (StepId step = 0; step < test_.steps.size(); ++step)
      if (is_release(step, least) && covers(step, writer) && order_.ended_before(step, reader))
        return true;
    return false;
  }
  bool acquired(StepId writer, StepId reader, FenceScope least) const {
    for (StepId step = 0; step < test_.steps.size(); ++step)
      if (is_acquire_for(step, reader, least) && order_.ended_before(writer, step)) return true;
    return false;
  }
  bool handed_over(StepId writer, StepId reader) const {
    for (StepId step = 0; step < test_.steps.size(); ++step)
      if (is_release(step, FenceScope::agent) && covers(step, writer) &&
          acquired(step, reader, FenceScope::agent))
        return true;
    return false;
  }
  // Whether a cache that acquires of scope `least` invalidate may hold the cell's value from before
  // `writer` when `reader` reads it.
  bool held(StepId writer, StepId reader, const Access& read, FenceScope least) const {
    for (StepId user = 0; user < test_.steps.size(); ++user) {
      if (user == writer || user == reader || !is_dispatch(test_.steps[user])) continue;
      if (order_.ended_before(writer, user) || acquired(user, reader, least)) continue;
      for (const Access& access : accesses_[user]) {
        // L1 keeps what the same path has read; L2 keeps everything read or written.
        if (access.cell == read.cell &&
            (least == FenceScope::system || (!access.write && access.path == read.path)))
          return true;
      }
    }
    return false;
  }

  const Test& test_;
  const CacheRules rules_;
  const Order order_;
  std::vector<std::vector<Access>> accesses_;
};

}  // namespace

std::vector<Hazard> hazards_of(const Test& test, CacheRules rules) {
  return Judge(test, rules).all();
}

const char* name_of(Verdict verdict) noexcept {
  constexpr const char* names[] = {"correct", "harmless", "possible"};
  return names[static_cast<size_t>(verdict)];
}

Verdict verdict_of(const std::vector<Hazard>& hazards) noexcept {
  if (hazards.empty()) return Verdict::correct;
  const bool possible =
      std::ranges::any_of(hazards, [](const Hazard& hazard) { return hazard.possible_on_target; });
  return possible ? Verdict::possible : Verdict::harmless;
}

std::optional<CacheRules> cache_rules_of(std::string_view target) noexcept {
  if (target == "gfx900" || target == "gfx906" || target == "gfx908" || target == "gfx90a")
    return CacheRules::gfx9;
  if (target == "gfx942") return CacheRules::gfx942;
  return std::nullopt;
}

}  // namespace uptempo::litmus
