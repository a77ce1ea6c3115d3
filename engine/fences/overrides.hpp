// Rules that hold under every policy: the caller's choices, outside observers, and the exceptions
// of fence_rules.hpp. Private to engine/fences.
//
// Thread safety: pure functions.
#pragma once

#include "engine/fences/declarations.hpp"
#include "engine/fences/packet_plan.hpp"

namespace uptempo::detail {

inline PacketPlan plan_finished_packet(const Declarations& packet) noexcept {
  return {.flags = {packet.without_barrier ? aql::Barrier::off : aql::Barrier::on, packet.acquire,
                    packet.release},
          .barrier =
              packet.without_barrier ? BarrierReason::caller_without : BarrierReason::caller_with,
          .acquire = ScopeReason::caller,
          .release = ScopeReason::caller};
}

// Raises the release to the scope that the host or a declared observer requires.
inline void release_to_observers(const Declarations& packet, bool is_last,
                                 PacketPlan& plan) noexcept {
  if (is_last) {
    plan.flags.release = aql::FenceScope::system;
    plan.release = ScopeReason::host_reads;
  } else if (packet.observer != Observer::none) {
    plan.flags.release =
        packet.observer == Observer::system ? aql::FenceScope::system : aql::FenceScope::agent;
    plan.release = ScopeReason::observed;
  }
}

// Applies the caller's choices after the policy's, except where the first engine packet or the last
// packet forbids it.
inline void apply_overrides(const Declarations& packet, bool is_first, bool is_last,
                            PacketPlan& plan) noexcept {
  if (packet.explicit_fences) {
    plan.flags.acquire = packet.acquire;
    plan.flags.release = packet.release;
    plan.acquire = plan.release = ScopeReason::caller;
  }
  if (packet.without_barrier) {
    plan.flags.barrier = aql::Barrier::off;
    plan.barrier = BarrierReason::caller_without;
  }
  if (is_first && plan.flags.acquire == aql::FenceScope::none) {
    plan.flags.acquire = aql::FenceScope::agent;
    plan.acquire = ScopeReason::stale_kernargs;
  }
  if (!is_last) return;
  if (plan.flags.barrier == aql::Barrier::off) {
    plan.flags.barrier = aql::Barrier::on;
    plan.barrier = BarrierReason::completion;
  }
  if (plan.flags.release != aql::FenceScope::system) {
    plan.flags.release = aql::FenceScope::system;
    plan.release = ScopeReason::completion;
  }
}

}  // namespace uptempo::detail
