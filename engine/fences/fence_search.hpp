// The fewest fences at agent scope for a short sequence, by trying all there is to choose. Private to engine/dispatch.
//
// What can be chosen: where the barrier bits are (not how many), and which epochs acquire; the releases follow from that. Thread safety: pure.
#pragma once

#include <span>

#include "engine/fences/fence_relations.hpp"
#include "engine/fences/fence_rules.hpp"

namespace uptempo::detail {

// `plans` hold a correct plan with as few system fences and barrier bits as may be; they hold the cheapest one afterwards. 32 packets at most. Does nothing where the
// caller has chosen anything himself, or where a bound shows that there is nothing to gain.
void search_fences(std::span<const Declarations> packets, const FenceRelations& relations,
                   std::span<PacketPlan> plans) noexcept;

}  // namespace uptempo::detail
