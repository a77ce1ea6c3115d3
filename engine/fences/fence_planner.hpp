// FencePlanner places the barrier bits and fences of a sequence of dispatches in one queue.
//
// fence_plan.hpp states the cost order and the rules. Private to engine.
//
// Method: barrier bits are placed as late as order permits, which minimizes their number. An
// acquire goes to the first reader without an acquire between itself and the writer. A release goes
// to the writer if the acquire follows the next barrier bit, otherwise to the last packet that can
// still serve, for all writers before it. No single fence of such a plan can be removed. In rare
// graphs another place for a barrier bit, or one more acquire, would save agent fences
// (engine/DESIGN.md has the figures).
//
// Thread safety: thread-compatible.
// Cost: linear in packets and in the segments that each accesses. Memory and known ranges are kept
// between plans.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <uptempo/fences/declarations.hpp>
#include <uptempo/fences/fence_plan.hpp>
#include <uptempo/fences/fence_relations.hpp>

namespace uptempo::detail {

// The requirement of a dispatch on an earlier one whose results it overwrites.
enum class Overwrites : uint8_t {
  ordered,      // completion; enough with a single L2
  handed_over,  // a hand-over, as if it read them; enough for every target
};
// Null: target unknown.
Overwrites overwrites_on(const Agent* agent) noexcept;

class FencePlanner {
 public:
  explicit FencePlanner(Overwrites overwrites, FencePolicy policy = FencePolicy::by_need) noexcept
      : policy_(policy), relations_(overwrites == Overwrites::handed_over) {}

  // Fills plans[i] for packets[i]; both have the same length. Keeps the caller's choices, and uses
  // them for other packets. May throw std::bad_alloc.
  void plan(std::span<const Declarations> packets, std::span<const AccessRange> accesses,
            std::span<PacketPlan> plans);

 private:
  // A hand-over with more than one barrier bit between its writer and epoch `acquire`.
  struct Deferred {
    uint32_t writer, reader;
    uint32_t acquire;
  };

  void hand_over(std::span<const uint32_t> writers, uint32_t reader,
                 std::span<const Declarations> packets, std::span<PacketPlan> plans);
  void place_deferred(std::span<const Declarations> packets, std::span<PacketPlan> plans);

  const FencePolicy policy_;
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

}  // namespace uptempo::detail
