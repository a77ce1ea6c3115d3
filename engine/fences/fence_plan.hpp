// FencePlan computes the barrier bits and fence scopes that dispatches in one queue need, in queue
// order, with a reason for each.
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
// way.
//
// Cost order: first fences at system scope, then barrier bits, then fences at agent scope. A system
// fence writes back or invalidates L2. A barrier bit drains the device. An agent fence invalidates
// first-level caches. The numbers of system fences and of barrier bits are minimal, and no single
// agent fence can be removed. Fences at system scope: the first packet acquires what the host
// wrote; the last releases what its completion signal announces; each packet whose results an
// observer outside the agent reads earlier releases them.
//
// Rules (HSA Platform System Architecture 1.2, 2.9.1 and 3.4). "i before j" means: a packet after i
// and no later than j has its barrier bit.
//   order      If i or j writes what the other accesses, i before j.
//   hand-over  If j reads what i wrote, there are packets r and q (q no later than j) such that: r
//              is i, or i before r; r before q; r releases and q acquires, at agent scope or wider.
//              One release may serve many writers before it, and one acquire many readers after it.
//   dependency If j is declared to come after i, both rules above hold for the pair: what i wrote
//              is unknown. j may access any memory, so both also hold for j and packets without
//              declarations.
//   nothing    A packet that accesses nothing that others write gets no acquire, no release and no
//              barrier bit.
//   undeclared A packet without declarations may read and write everything. A batch without any has
//              all barrier bits, agent scope inside and system scope at its ends.
//   ends       The first packet has a barrier bit, since accesses of earlier batches are not
//              declared here. The last one carries the completion signal, so it has a barrier bit.
//   caller     Explicit scopes and without_barrier() are kept, with two exceptions. The last packet
//              keeps its barrier bit and releases at system scope: a release covers only packets
//              whose active phase has ended, and completion must mean that all packets are complete
//              and visible. The first packet acquires at least at agent scope: its kernarg block
//              may have been used before, and a scalar cache may hold the old bytes.
// A dispatch that reads and writes the same bytes declares both. Its kernarg block needs no
// acquire: all blocks are written before the first packet is published, and the first packet's
// acquire removes old bytes from the caches. An agent with several L2s (gfx942) may write back the
// same bytes in any order; there, overwrites are handed over, too.
// Other sources: LLVM AMDGPU User Guide, memory model for gfx9.
//
// Requires:
// * The last packet carries the completion signal.
// * Kernargs, and inputs that the host or a copy wrote, are complete before the first packet is
//   published.
// * A dispatch declares all bytes it reads and writes, or all packets that it depends on, or
//   nothing. uptempo-vgpu --check fences finds wrong declarations.
//
// Thread safety: thread-compatible; plans of packets are values.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <uptempo/aql/packet.hpp>
#include <uptempo/fences/declarations.hpp>
#include <uptempo/runtime/agent.hpp>

namespace uptempo {

// How a batch or a recording plans its fences.
enum class FencePolicy : uint8_t {
  by_need,  // only those that the declarations need
  // For comparison: system/system and a barrier bit on every packet, as in most runtimes.
  system_everywhere,
};

enum class BarrierReason : uint8_t {
  first_of_batch,
  undeclared,
  after_undeclared,
  conflict,
  dependency,
  independent,
  caller_without,
  caller_with,
  completion,
  policy,
};
enum class ScopeReason : uint8_t {
  host_wrote,
  host_reads,
  observed,
  caller,
  completion,
  stale_kernargs,
  hand_over,  // between two packets (PacketPlan::acquired, released)
  nothing_new,
  no_reader,
  policy
};

// Two packets of a batch.
struct PacketPair {
  uint32_t earlier = 0, later = 0;
  bool operator==(const PacketPair&) const = default;
};

struct PacketPlan {
  aql::HeaderFlags flags;
  BarrierReason barrier = BarrierReason::undeclared;
  ScopeReason acquire = ScopeReason::nothing_new;
  ScopeReason release = ScopeReason::no_reader;
  PacketPair conflict{};              // for BarrierReason::conflict and dependency
  PacketPair acquired{}, released{};  // writer and reader; for ScopeReason::hand_over
};

// Cost of a plan, most expensive item first.
struct FenceCost {
  uint64_t system_fences = 0, barrier_bits = 0, agent_fences = 0;
  auto operator<=>(const FenceCost&) const = default;
};
FenceCost cost_of(std::span<const PacketPlan> plans) noexcept;

// Reasons for a packet's barrier bit and scopes, in words: "it touches what packet 3 touches, and
// one of them writes".
struct PlanReasons {
  std::string barrier, acquire, release;
};
// `packet` is its number in the batch; the text calls that packet "it".
PlanReasons reasons_of(const PacketPlan& plan, size_t packet);
// Returns one line: "barrier bit: ...; acquire agent: ...; release agent: ...".
std::string explain(const PacketPlan& plan, size_t packet);
// Returns one line per packet: "packet 3: barrier bit: ...".
std::string explain(std::span<const PacketPlan> plans);

namespace detail {

class FencePlanner;

struct PlannedDispatches {
  std::vector<Declarations> packets;
  std::vector<AccessRange> accesses;
  std::vector<PacketPlan> plans;
};
// One of them, for declarations about it.
struct PlannedDispatch {
  PlannedDispatches* all;
  uint32_t packet;
  Declarations& declarations() const noexcept {
    all->plans.clear();
    return all->packets[packet];
  }
  std::vector<AccessRange>& accesses() const noexcept { return all->accesses; }
};

// Throws Error for a dispatch of another plan.
void require_same(const PlannedDispatch& own, const PlannedDispatch& other);

}  // namespace detail

class FencePlan {
 public:
  // Plans for any target.
  FencePlan();
  // Plans for one agent; some agents need fewer fences.
  explicit FencePlan(const Agent& agent);
  ~FencePlan();
  FencePlan(const FencePlan&) = delete;
  FencePlan& operator=(const FencePlan&) = delete;

  // The dispatch last added. Only the last one can be declared. Valid as long as the plan.
  class Dispatch : public Declaring<Dispatch, detail::PlannedDispatch> {
   private:
    friend class FencePlan;
    using Declaring::Declaring;
  };
  // Adds a dispatch. Without declarations it may read and write everything.
  Dispatch dispatch();

  size_t size() const noexcept { return all_.packets.size(); }
  void clear() noexcept { all_ = {}; }

  // Returns the plans of all dispatches, in order. Valid until the next dispatch or declaration.
  std::span<const PacketPlan> packets();
  FenceCost cost() { return cost_of(packets()); }
  // Returns one line per packet: "packet 3: barrier bit: ...; acquire agent: ...; release none:
  // ...".
  std::string explain() { return uptempo::explain(packets()); }

 private:
  const std::unique_ptr<detail::FencePlanner> planner_;
  detail::PlannedDispatches all_;
};

}  // namespace uptempo
