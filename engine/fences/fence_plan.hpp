// FencePlan computes the cheapest barrier bits and fence scopes for dispatches in one queue, in
// queue order, with a reason for each.
//
//   FencePlan plan;
//   plan.dispatch().reads(x, n).writes(y, n);
//   plan.dispatch().reads(x, n).writes(z, n);
//   plan.dispatch().reads(y, n).reads(z, n).writes(out, n);
//   plan.packets()[1].flags;       // {Barrier::off, FenceScope::none, FenceScope::agent}
//   plan.cost();                   // 2 system fences, 2 barrier bits, 3 agent fences
//   plan.explain();                // one line per packet
//
// For callers that write packets themselves. Batches and recordings plan their own packets the same
// way under FencePolicy::minimal. fence_planner.hpp states the cost order and the rules.
//
// Requires:
// * The last packet carries the completion signal.
// * Kernargs, and inputs that the host or a copy wrote, are complete before the first packet is
//   published.
// * Every dispatch declares all bytes it reads and writes; a range that it both reads and writes is
//   declared as both. uptempo-vgpu --check fences finds wrong declarations.
//
// Thread safety: thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/fences/declaring.hpp"
#include "engine/fences/fence_planner.hpp"
#include "engine/fences/packet_plan.hpp"
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
  // Plans for any target.
  FencePlan() : planner_(detail::Overwrites::handed_over) {}
  // Plans for one agent; some agents need fewer fences.
  explicit FencePlan(const Agent& agent) : planner_(detail::overwrites_on(&agent)) {}

  // The dispatch last added. Only the last one can be declared. Valid as long as the plan.
  class Dispatch : public detail::Declaring<Dispatch, detail::PlannedRef> {
   private:
    friend class FencePlan;
    using Declaring::Declaring;
  };
  // Adds a dispatch. Without declarations it may read and write everything.
  Dispatch dispatch();

  size_t size() const noexcept { return packets_.size(); }
  void clear() noexcept;

  // Returns the plans of all dispatches, in order. Valid until the next dispatch or declaration.
  std::span<const PacketPlan> packets();
  FenceCost cost() { return cost_of(packets()); }
  // Returns one line per packet: "packet 3: barrier bit: ...; acquire agent: ...; release none:
  // ...".
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
