// The cheapest barrier bits and fence scopes for dispatches that are to stand in one queue, one behind the other, with the reason for each.
//
//   FencePlan plan;
//   plan.dispatch().reads(x, n).writes(y, n);
//   plan.dispatch().reads(x, n).writes(z, n);
//   plan.dispatch().reads(y, n).reads(z, n).writes(out, n);
//   plan.packets()[1].flags;       // {Barrier::off, FenceScope::none, FenceScope::agent}
//   plan.cost();                   // 2 system fences, 2 barrier bits, 3 agent fences
//   plan.explain();                // a line for each packet
//
// For those who write packets themselves, or want to know. A batch or a recording plans its own packets so with FencePolicy::minimal. What is minimised, and by
// which rules, is said in fence_planner.hpp.
//
// What the plan rests on: the last packet carries the completion signal; kernargs, and inputs that the host or a copy wrote, were complete before the first one
// was published; all that a dispatch reads and writes is declared, a range that it both reads and writes as both. uptempo-vgpu --check fences finds what was
// declared wrongly.
//
// Thread safety: as a vector.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/fences/declaring.hpp"
#include "engine/fences/fence_planner.hpp"
#include "engine/fences/fence_rules.hpp"
#include "engine/runtime/agent.hpp"

namespace uptempo {

class FencePlan;

namespace detail {

struct PlannedRef {
  FencePlan* plan;
  uint32_t packet;
};

void declare(const PlannedRef& packet, const void* data, size_t bytes, bool writes);
void observe(const PlannedRef& packet, Observer observer);
void set_fences(const PlannedRef& packet, aql::FenceScope acquire, aql::FenceScope release);
void drop_barrier(const PlannedRef& packet);

}  // namespace detail

class FencePlan {
 public:
  // Correct on every target.
  FencePlan() : planner_(detail::Overwrites::handed_over) {}
  // For one: some need less than others.
  explicit FencePlan(const Agent& agent) : planner_(detail::overwrites_on(&agent)) {}

  // The dispatch just added. Only the last one may be declared; valid until the plan goes.
  class Dispatch : public detail::Declaring<Dispatch, detail::PlannedRef> {
   private:
    friend class FencePlan;
    using Declaring::Declaring;
  };
  // One more. Of which nothing is said, may read and write everything.
  Dispatch dispatch();

  size_t size() const noexcept { return packets_.size(); }
  void clear() noexcept;

  // Of all dispatches so far, in order. Valid until something is added or said.
  std::span<const PacketPlan> packets();
  FenceCost cost() { return cost_of(packets()); }
  // A line for each: "packet 3: barrier bit: ...; acquire agent: ...; release none: ...".
  std::string explain() { return uptempo::explain(packets()); }

 private:
  friend void detail::declare(const detail::PlannedRef&, const void*, size_t, bool);
  friend void detail::observe(const detail::PlannedRef&, Observer);
  friend void detail::set_fences(const detail::PlannedRef&, aql::FenceScope, aql::FenceScope);
  friend void detail::drop_barrier(const detail::PlannedRef&);
  Declarations& say(uint32_t packet) noexcept {
    plans_.clear();
    return packets_[packet];
  }

  detail::FencePlanner planner_;
  std::vector<Declarations> packets_;
  std::vector<AccessRange> accesses_;
  std::vector<PacketPlan> plans_;
};

}  // namespace uptempo
