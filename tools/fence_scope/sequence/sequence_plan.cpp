#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include <uptempo/fences/fence_plan.hpp>
#include <uptempo/runtime/agent.hpp>
#include "tools/fence_scope/sequence/sequence.hpp"
#include "tools/fence_scope/sequence/sequence_rules.hpp"

namespace uptempo::fence_scope {
namespace {

using aql::FenceScope;

bool conflict(const Access& a, const Access& b) {
  return (a.writes || b.writes) && a.buffer == b.buffer && a.begin < b.begin + b.bytes &&
         b.begin < a.begin + a.bytes;
}

class Planner {
 public:
  Planner(const Sequence& sequence, const Agent* agent)
      : sequence_(sequence),
        agent_(agent),
        waited_for_(sequence.steps.size()),
        overwrites_acquire_(agent == nullptr || !memory_model(*agent).rules().one_l2) {
    for (const Step& step : sequence.steps) accesses_.push_back(accesses_of(step));
    // Disjoint addresses for the buffers.
    uintptr_t at = kPageBytes;
    for (const Buffer& buffer : sequence.buffers) {
      bases_.push_back(at);
      at += (buffer.bytes + 2 * kPageBytes - 1) / kPageBytes * kPageBytes;
    }
    for (size_t i = 0; i < sequence.steps.size(); ++i)
      for (const size_t waited : sequence.steps[i].after) waited_for_[waited].push_back(i);
  }

  PlannedHeaders all() {
    PlannedHeaders result{everywhere(sequence_), std::vector<PlanReasons>(sequence_.steps.size())};
    for (const uint32_t queue : {0u, 1u}) {
      const std::vector<size_t> steps = sequence_.dispatches(queue);
      const std::vector<PacketPlan> plans = plan(steps);
      for (size_t i = 0; i < steps.size(); ++i) {
        result.headers[steps[i]] = plans[i].flags;
        result.reasons[steps[i]] = reasons(steps, i, plans[i]);
      }
    }
    return result;
  }

 private:
  static constexpr uintptr_t kPageBytes = 4096;
  using Set = std::vector<bool>;  // a set of steps

  bool is_dispatch(size_t step, uint32_t queue) const {
    return sequence_.steps[step].kind == Step::Kind::dispatch &&
           sequence_.steps[step].queue == queue;
  }

  // Adds `step` and the steps that cannot begin before it begins: later dispatches of its queue,
  // and steps that wait for any of them.
  void add_behind(size_t step, Set& found) const {
    if (found[step]) return;
    found[step] = true;
    for (const size_t waiting : waited_for_[step]) add_behind(waiting, found);
    if (sequence_.steps[step].kind != Step::Kind::dispatch) return;
    for (size_t later = step + 1; later < found.size(); ++later)
      if (is_dispatch(later, sequence_.steps[step].queue)) add_behind(later, found);
  }
  // Steps that begin after the end of `step` because something waits for it.
  Set behind_end(size_t step) const {
    Set found(sequence_.steps.size());
    for (const size_t waiting : waited_for_[step]) add_behind(waiting, found);
    return found;
  }
  // Adds `step` and the steps that a waiter for it may treat as complete: earlier dispatches of its
  // queue, and the steps that a copy has waited for.
  void add_ahead(size_t step, Set& found) const {
    if (found[step]) return;
    found[step] = true;
    const Step& of = sequence_.steps[step];
    if (of.kind == Step::Kind::copy)
      for (const size_t waited : of.after) add_ahead(waited, found);
    else
      for (size_t earlier = 0; earlier < step; ++earlier)
        if (is_dispatch(earlier, of.queue)) found[earlier] = true;
  }

  // Calls `use` for each step of `readers` that touches data written by one of `writers`. Skips
  // pairs of dispatches in one queue, which the queue's plan covers.
  template <class F>
  void for_each_use(const Set& writers, const Set& readers, F&& use) const {
    for (size_t w = 0; w < writers.size(); ++w) {
      if (!writers[w]) continue;
      for (size_t r = w + 1; r < readers.size(); ++r) {
        if (!readers[r]) continue;
        const Step& reader = sequence_.steps[r];
        if (reader.kind == Step::Kind::dispatch && is_dispatch(w, reader.queue)) continue;
        for (const Access& written : accesses_[w])
          for (const Access& used : accesses_[r])
            if (written.writes && conflict(written, used)) use(w, r, used.writes);
      }
    }
  }

  // The scope at which a dispatch must acquire for itself and later steps.
  FenceScope outside(size_t number) const {
    FenceScope scope = FenceScope::none;
    if (sequence_.steps[number].after.empty()) return scope;
    Set readers(sequence_.steps.size()), writers(sequence_.steps.size());
    add_behind(number, readers);
    for (const size_t waited : sequence_.steps[number].after) add_ahead(waited, writers);
    for_each_use(writers, readers, [&](size_t writer, size_t reader, bool overwrites) {
      const bool by_copy = sequence_.steps[writer].kind == Step::Kind::copy;
      if (sequence_.steps[reader].kind == Step::Kind::copy || (overwrites && !overwrites_acquire_))
        return;
      scope = std::max(scope, by_copy ? FenceScope::system : FenceScope::agent);
    });
    return scope;
  }

  // The observer of the writes of this dispatch and of earlier ones in its queue.
  Observer observer(size_t number) const {
    Observer observer = Observer::none;
    if (waited_for_[number].empty()) return observer;
    Set writers(sequence_.steps.size());
    add_ahead(number, writers);
    for_each_use(writers, behind_end(number), [&](size_t, size_t reader, bool) {
      const bool by_copy = sequence_.steps[reader].kind == Step::Kind::copy;
      observer = std::max(observer, by_copy ? Observer::system : Observer::agent);
    });
    return observer;
  }

  void declare(FencePlan::Dispatch& dispatch, const Access& access) const {
    std::byte* const at = reinterpret_cast<std::byte*>(bases_[access.buffer] + access.begin);
    if (access.writes)
      dispatch.writes(at, access.bytes);
    else
      dispatch.reads(at, access.bytes);
  }

  std::vector<PacketPlan> plan(const std::vector<size_t>& steps) const {
    FencePlan fence_plan = agent_ != nullptr ? FencePlan(*agent_) : FencePlan();
    std::vector<uint32_t> packets;     // of each dispatch: its packet in the plan
    std::vector<uint32_t> dispatches;  // of each packet of the plan: its dispatch
    std::vector<FenceScope> acquires;  // of each dispatch: scope for data from outside the queue
    std::vector<Set> behind;           // of each dispatch: steps that begin after its end
    for (size_t i = 0; i < steps.size(); ++i) {
      const size_t number = steps[i];
      // The first packet acquires at system scope in any case. For other dispatches an extra packet
      // represents the acquire from outside, so that the plan relies on it. That acquire is sent as
      // part of the dispatch, which follows directly and needs at least its scope.
      acquires.push_back(i == 0 ? FenceScope::none : outside(number));
      if (acquires.back() != FenceScope::none) {
        fence_plan.dispatch()
            .touches_nothing()
            .fences(acquires.back(), FenceScope::none)
            .without_barrier();
        dispatches.push_back(static_cast<uint32_t>(i));
      }
      packets.push_back(static_cast<uint32_t>(dispatches.size()));
      dispatches.push_back(static_cast<uint32_t>(i));

      FencePlan::Dispatch dispatch = fence_plan.dispatch();
      dispatch.touches_nothing();
      for (const Access& access : accesses_[number]) declare(dispatch, access);
      dispatch.observed_by(observer(number));
      behind.push_back(behind_end(number));
      // A step that waits for this one may touch data of an earlier step that it does not wait for.
      // This dispatch then waits and releases on its behalf.
      for (size_t other = 0; other < sequence_.steps.size(); ++other)
        if (behind[i][other] && !is_dispatch(other, sequence_.steps[number].queue))
          for (const Access& access : accesses_[other])
            if (relies(steps, i, other, access, behind)) declare(dispatch, access);
    }
    const auto in_dispatches = [&](PacketPair& pair) {
      pair = {dispatches[pair.earlier], dispatches[pair.later]};
    };
    std::vector<PacketPlan> plans;
    for (size_t i = 0; i < steps.size(); ++i) {
      PacketPlan& one = plans.emplace_back(fence_plan.packets()[packets[i]]);
      for (PacketPair* const pair : {&one.conflict, &one.acquired, &one.released})
        in_dispatches(*pair);
      if (acquires[i] == FenceScope::none || acquires[i] < one.flags.acquire) continue;
      one.flags.acquire = acquires[i];
      one.acquire = ScopeReason::caller;
    }
    return plans;
  }

  bool relies(const std::vector<size_t>& steps, size_t packet, size_t other, const Access& access,
              const std::vector<Set>& behind) const {
    for (size_t earlier = 0; earlier < packet; ++earlier) {
      if (behind[earlier][other]) continue;
      for (const Access& its : accesses_[steps[earlier]])
        if (conflict(its, access)) return true;
    }
    return false;
  }

  // "'add' of queue 1 and the copy 'out'"
  std::string names(const std::vector<size_t>& steps) const {
    std::vector<std::string> names;
    for (const size_t step : steps)
      names.push_back(sequence_.steps[step].kind == Step::Kind::copy
                          ? fmt::format("the copy '{}'", sequence_.steps[step].name)
                          : fmt::format("'{}' of queue {}", sequence_.steps[step].name,
                                        sequence_.steps[step].queue));
    const std::string last = names.back();
    names.pop_back();
    return names.empty() ? last : fmt::format("{} and {}", fmt::join(names, ", "), last);
  }

  // Describes a pair of packets of one queue, where `packet` is "it". Neighbours have no numbers,
  // so that equal relations have equal texts.
  std::string relation(const std::vector<size_t>& steps, size_t packet,
                       const PacketPair& pair) const {
    const auto name = [&](size_t number) {
      return number == packet       ? std::string("it")
             : number + 1 == packet ? std::string("the packet before it")
             : number == packet + 1
                 ? std::string("the next packet")
                 : fmt::format("packet {} ('{}')", number, sequence_.steps[steps[number]].name);
    };
    bool reads = false, overwrites = false, overwrites_read = false;
    for (const Access& earlier : accesses_[steps[pair.earlier]])
      for (const Access& later : accesses_[steps[pair.later]]) {
        if (!conflict(earlier, later)) continue;
        reads |= !later.writes;
        overwrites |= later.writes && earlier.writes;
        overwrites_read |= !earlier.writes;
      }
    const std::string later = name(pair.later), earlier = name(pair.earlier);
    if (reads) return fmt::format("{} reads what {} wrote", later, earlier);
    if (overwrites) return fmt::format("{} overwrites what {} wrote", later, earlier);
    if (overwrites_read) return fmt::format("{} overwrites what {} reads", later, earlier);
    return fmt::format("a step that waits for {} touches what {} touches", later, earlier);
  }

  PlanReasons reasons(const std::vector<size_t>& steps, size_t packet,
                      const PacketPlan& plan) const {
    PlanReasons reasons = reasons_of(plan, packet);
    if (plan.barrier == BarrierReason::conflict)
      reasons.barrier = relation(steps, packet, plan.conflict);
    if (plan.barrier == BarrierReason::first_of_batch)
      reasons.barrier = "first packet: earlier work may still run";
    if (plan.barrier == BarrierReason::completion)
      reasons.barrier = "last packet: its release covers only packets that are complete";
    if (plan.acquire == ScopeReason::hand_over)
      reasons.acquire = relation(steps, packet, plan.acquired);
    const std::vector<size_t>& after = sequence_.steps[steps[packet]].after;
    const std::string waits = after.empty() ? "" : "it waits for " + names(after);
    if (plan.acquire == ScopeReason::caller) reasons.acquire = waits;
    if (plan.acquire == ScopeReason::host_wrote && !waits.empty())
      reasons.acquire += ", and " + waits;

    if (plan.release == ScopeReason::hand_over)
      reasons.release = relation(steps, packet, plan.released);
    const std::vector<size_t>& waiting = waited_for_[steps[packet]];
    const std::string waited = waiting.empty() ? ""
                                               : fmt::format("{} wait{} for it", names(waiting),
                                                             waiting.size() == 1 ? "s" : "");
    if (plan.release == ScopeReason::observed) reasons.release = waited;
    if (plan.release == ScopeReason::host_reads)
      reasons.release =
          "last packet: the host reads the results" + (waited.empty() ? "" : ", and " + waited);
    return reasons;
  }

  const Sequence& sequence_;
  const Agent* const agent_;
  std::vector<std::vector<size_t>> waited_for_;  // [step]: steps that wait for it
  std::vector<std::vector<Access>> accesses_;    // [step]
  const bool overwrites_acquire_;                // overwritten data is acquired as if it were read
  std::vector<uintptr_t> bases_;                 // [buffer]
};

// Each queue's plan ignores the order that signals create through the other queue or through
// copies. The rules know it, but their cost is cubic in the number of steps.
void drop_barriers_beside_signals(const Sequence& sequence, PlannedHeaders& planned) {
  constexpr size_t asked = 64;
  if (sequence.steps.size() > asked ||
      std::ranges::all_of(sequence.steps, [](const Step& step) { return step.after.empty(); }))
    return;
  const std::vector<Hazard> before = hazards_of(sequence, planned.headers);
  for (const uint32_t queue : {0u, 1u}) {
    const std::vector<size_t> steps = sequence.dispatches(queue);
    // The first packet waits for earlier work; the last one's release covers only completed
    // packets.
    for (size_t i = 1; i + 1 < steps.size(); ++i) {
      aql::Barrier& barrier = planned.headers[steps[i]].barrier;
      if (barrier == aql::Barrier::off) continue;
      barrier = aql::Barrier::off;
      if (hazards_of(sequence, planned.headers) == before) {
        planned.reasons[steps[i]].barrier += "; signals order the two";
      } else {
        barrier = aql::Barrier::on;
      }
    }
  }
}

}  // namespace

PlannedHeaders plan(const Sequence& sequence, const Agent* agent) {
  PlannedHeaders planned = Planner(sequence, agent).all();
  drop_barriers_beside_signals(sequence, planned);
  return planned;
}

}  // namespace uptempo::fence_scope
