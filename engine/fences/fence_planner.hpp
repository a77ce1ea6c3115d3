// The fewest barrier bits and fences for a sequence of dispatches in one queue.
//
// Fewest means, in this order: fences at system scope, barrier bits, fences at agent scope. Writing back and invalidating L2 costs most; a barrier bit drains the
// device; a fence at agent scope invalidates first-level caches. Of system fences there are as few as may be: the first packet acquires what the host wrote, the last
// one releases what its completion signal announces, and so does each packet whose results somebody outside the agent takes before that.
//
// Rules (HSA Platform System Architecture 1.2, 2.9.1 and 3.4). `i before j` means that a packet behind i, at the latest j, has its barrier bit.
//   order      If one of i and j writes what the other touches, i before j.
//   hand-over  If j reads what i wrote, there are a packet r and a packet q, at the latest j, with: r is i or i before r; r before q; r releases and q acquires, at
//              agent scope or wider. So one release may serve many writers before it, and one acquire many readers after it.
//   nothing    is needed of packets that do not touch what others write: acquire none, release none, no barrier bit.
// A dispatch that reads and writes the same bytes declares both. Its kernarg block needs no acquire of its own: all blocks are written before the first packet is
// published, and nothing of them is in a cache since the first packet's acquire. Several L2 caches in one agent (gfx940 and later) may write back the same
// bytes in any order: there, what is overwritten is handed over, too.
//
// Method. Barrier bits as late as order allows are as few as can be. An acquire is put on the first reader that has none between itself and the writer. A release
// is put on the writer if the acquire comes behind the next barrier bit, else on the last packet that may still serve, for all writers before it. In most sequences
// that is the minimum; in some another place for a barrier bit, or one acquire more, saves fences at agent scope. Up to `searched` packets all such places are
// tried unless a bound shows that there is nothing to gain; beyond it the plan is correct but may have some agent fences too many.
//
// Thread safety: as a vector. Keeps its memory, and remembers ranges, from one plan to the next.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/fences/fence_relations.hpp"
#include "engine/fences/fence_rules.hpp"
#include "engine/runtime/memory_model.hpp"

namespace uptempo {

// What a plan costs a device, the dearest first.
struct FenceCost {
  uint64_t system_fences = 0, barrier_bits = 0, agent_fences = 0;
  auto operator<=>(const FenceCost&) const = default;
};
FenceCost cost_of(std::span<const PacketPlan> plans) noexcept;

namespace detail {

// What a dispatch needs of the one whose results it overwrites.
enum class Overwrites : uint8_t {
  ordered,      // to be over: there is one L2
  handed_over,  // as if it read them: enough for every target
};
// Null: no target is known.
Overwrites overwrites_on(const Agent* agent) noexcept;

class FencePlanner {
 public:
  static constexpr uint32_t searched = 8;

  explicit FencePlanner(Overwrites overwrites) noexcept : overwrites_(overwrites) {}

  // Fills plans[i] for packets[i]; both have the same length. What the caller has chosen stays, as in plan_fences(), and may serve others. May throw
  // std::bad_alloc.
  void plan(std::span<const Declarations> packets, std::span<const AccessRange> accesses,
            std::span<PacketPlan> plans);

 private:
  // A hand-over behind whose writer more than one barrier bit comes before epoch `acquire`.
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
  // A barrier bit begins an epoch: all packets of earlier ones are over. The first is 1.
  std::vector<uint32_t> epoch_;  // of each packet
  uint32_t acquired_ = 0;        // the last epoch with an acquire, 0: none
  std::vector<Deferred> deferred_;
  struct Epoch {
    uint32_t last_packet = 0;  // whose scopes are not the caller's, plus one; 0: none
    uint32_t released = 0;     // the last epoch up to this one with a release, 0: none
  };
  std::vector<Epoch> epochs_;
};

}  // namespace detail
}  // namespace uptempo
