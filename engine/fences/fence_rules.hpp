// The fence plan: the barrier bit and fence scopes of each packet of a batch, with reasons.
//
// A pure function of the batch's declarations. It assumes what the engine guarantees: every kernarg
// block of the batch is written before the batch's first header; inputs that the host or a copy
// wrote are complete before submit(); the last packet carries the completion signal.
//
// Rules:
//   scopes   First packet: acquire system, because the host wrote kernargs and inputs. Last packet:
//            release system, because the host reads after its signal. Packets between them:
//            agent/agent. A batch of one: system/system. Fences are agent-wide, so one system
//            acquire serves every later packet.
//   barrier  A packet with declared accesses waits only if it reads what a packet since the last
//            barrier bit writes, or writes what such a packet reads or writes. A packet with
//            declared dependencies (Declaring::after) waits if such a packet is one of them, and for
//            packets without declarations. A packet without
//            declarations may access anything: it waits, and so does the next one. The first packet
//            waits, because the accesses of earlier batches are not declared here.
//   caller   Explicit scopes and without_barrier() are kept, with two exceptions. The packet with
//            the completion signal keeps its barrier bit and releases at system scope: a release
//            covers only packets whose active phase has ended, and completion must mean that all
//            packets are complete and visible. The first packet acquires at least at agent scope:
//            its kernarg block may have been used before, and a scalar cache may hold the old
//            bytes.
//
// Thread safety: pure functions.
// Cost: linear in packets; for declared packets, also in pairs of ranges since the last barrier
// bit.
// Sources: HSA Platform System Architecture 1.2, sections 2.9.1 and 3.4; LLVM AMDGPU User Guide,
// memory model for gfx9.
#pragma once

#include <span>

#include "engine/fences/declarations.hpp"
#include "engine/fences/packet_plan.hpp"

namespace uptempo {

// Fills plans[i] for packets[i]; both have the same length. Does not fail or allocate. Not for
// FencePolicy::minimal.
void plan_fences(std::span<const Declarations> packets, std::span<const AccessRange> accesses,
                 FencePolicy policy, std::span<PacketPlan> plans) noexcept;

}  // namespace uptempo
