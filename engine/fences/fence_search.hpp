// Finds the fewest agent-scope fences for a short sequence by exhaustive search. Private to
// engine/fences.
//
// The search varies the positions of the barrier bits (not their number) and the epochs that
// acquire. The releases follow from these.
// Thread safety: pure function.
#pragma once

#include <span>

#include "engine/fences/declarations.hpp"
#include "engine/fences/fence_relations.hpp"
#include "engine/fences/packet_plan.hpp"

namespace uptempo::detail {

// Whether the packet's release fence does anything.
inline bool releases(const PacketPlan& plan) noexcept {
  return plan.flags.release != aql::FenceScope::none;
}

// On entry, `plans` hold a correct plan with the fewest system fences and barrier bits; on return,
// the cheapest one. At most 32 packets. Does nothing if the caller set anything explicitly, or if a
// bound proves that nothing can be saved.
void search_fences(std::span<const Declarations> packets, const FenceRelations& relations,
                   std::span<PacketPlan> plans) noexcept;

}  // namespace uptempo::detail
