// FencePlanner finds the fewest barrier bits and fences for a sequence of dispatches in one queue.
//
// Cost order: first fences at system scope, then barrier bits, then fences at agent scope. A system
// fence writes back or invalidates L2. A barrier bit drains the device. An agent fence invalidates
// first-level caches. The number of system fences is minimal: the first packet acquires what the
// host wrote; the last releases what its completion signal announces; each packet whose results an
// observer outside the agent reads earlier releases them.
//
// Rules (HSA Platform System Architecture 1.2, 2.9.1 and 3.4). "i before j" means: a packet after i
// and no later than j has its barrier bit.
//   order      If i or j writes what the other accesses, i before j.
//   hand-over  If j reads what i wrote, there are packets r and q (q no later than j) such that: r
//              is i, or i before r; r before q; r releases and q acquires, at agent scope or wider.
//              One release may serve many writers before it, and one acquire many readers after it.
//   nothing    A packet that accesses nothing that others write gets no acquire, no release and no
//              barrier bit.
// A dispatch that reads and writes the same bytes declares both. Its kernarg block needs no
// acquire: all blocks are written before the first packet is published, and the first packet's
// acquire removes old bytes from the caches. An agent with several L2 caches (gfx940 and later) may
// write back the same bytes in any order; there, overwrites are handed over, too.
//
// Method: barrier bits are placed as late as order permits, which minimizes their number. An
// acquire goes to the first reader without an acquire between itself and the writer. A release goes
// to the writer if the acquire follows the next barrier bit, otherwise to the last packet that can
// still serve, for all writers before it. For most sequences this is the minimum. For some, another
// place for a barrier bit, or one more acquire, saves agent fences. Up to `searched` packets, the
// planner tries all such places unless a bound proves that nothing can be saved. Longer plans are
// correct but may have some agent fences too many.
//
// Thread safety: thread-compatible.
// Cost: memory and known ranges are kept between plans.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/fences/declarations.hpp"
#include "engine/fences/fence_relations.hpp"
#include "engine/fences/packet_plan.hpp"
#include "engine/runtime/memory_model.hpp"

namespace uptempo {

// Cost of a plan, most expensive item first.
struct FenceCost {
  uint64_t system_fences = 0, barrier_bits = 0, agent_fences = 0;
  auto operator<=>(const FenceCost&) const = default;
};
FenceCost cost_of(std::span<const PacketPlan> plans) noexcept;

namespace detail {

// The requirement of a dispatch on an earlier one whose results it overwrites.
enum class Overwrites : uint8_t {
  ordered,      // completion; enough with a single L2
  handed_over,  // a hand-over, as if it read them; enough for every target
};
// Null: target unknown.
Overwrites overwrites_on(const Agent* agent) noexcept;

class FencePlanner {
 public:
  static constexpr uint32_t searched = 8;

  explicit FencePlanner(Overwrites overwrites) noexcept : overwrites_(overwrites) {}

  // Fills plans[i] for packets[i]; both have the same length. Keeps the caller's choices, as
  // plan_fences() does, and uses them for other packets. May throw std::bad_alloc.
  void plan(std::span<const Declarations> packets, std::span<const AccessRange> accesses,
            std::span<PacketPlan> plans);

 private:
  // A hand-over with more than one barrier bit between its writer and epoch `acquire`.
  struct Deferred {
    HandOver pair;
    uint32_t acquire;
  };

  void sweep(std::span<const Declarations> packets, std::span<PacketPlan> plans);
  void hand_over(std::span<const HandOver> pairs, std::span<const Declarations> packets,
                 std::span<PacketPlan> plans);
  void place_deferred(std::span<const Declarations> packets, std::span<PacketPlan> plans);

  const Overwrites overwrites_;
  FenceRelations relations_;
  // A barrier bit begins an epoch; all packets of earlier epochs have completed. The first is 1.
  std::vector<uint32_t> epoch_;  // per packet
  uint32_t acquired_ = 0;        // last epoch with an acquire; 0: none
  std::vector<Deferred> deferred_;
  struct Epoch {
    uint32_t last_packet = 0;  // last packet whose scopes the caller did not set, plus one; 0: none
    uint32_t released = 0;     // last epoch up to this one with a release; 0: none
  };
  std::vector<Epoch> epochs_;
};

}  // namespace detail
}  // namespace uptempo
