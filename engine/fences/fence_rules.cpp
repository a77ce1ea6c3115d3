#include "engine/fences/fence_rules.hpp"

#include "engine/fences/overrides.hpp"

namespace uptempo {
namespace {

using aql::Barrier;
using aql::FenceScope;

std::span<const AccessRange> accesses_of(const Declarations& packet,
                                         std::span<const AccessRange> accesses) noexcept {
  return accesses.subspan(packet.first_access, packet.access_count);
}

bool conflict(const AccessRange& a, const AccessRange& b) noexcept {
  const bool empty = a.begin == a.end || b.begin == b.end;
  return (a.writes || b.writes) && !empty && a.begin < b.end && b.begin < a.end;
}

bool conflict(std::span<const AccessRange> a, std::span<const AccessRange> b) noexcept {
  for (const AccessRange& x : a) {
    for (const AccessRange& y : b) {
      if (conflict(x, y)) return true;
    }
  }
  return false;
}

struct BarrierChoice {
  BarrierReason reason;
  PacketPair conflict{};
};

// `since` is the last packet with a barrier bit. It and all later packets may still run when packet
// i is processed.
BarrierChoice choose_barrier(std::span<const Declarations> packets,
                             std::span<const AccessRange> accesses, size_t i,
                             size_t since) noexcept {
  if (i == 0) return {BarrierReason::first_of_batch};
  if (!packets[i].declared) return {BarrierReason::undeclared};
  for (size_t j = i; j-- > since;) {
    if (!packets[j].declared) return {BarrierReason::after_undeclared};
    const PacketPair pair{static_cast<uint32_t>(j), static_cast<uint32_t>(i)};
    if (packets[i].depends_on(accesses, pair.earlier)) return {BarrierReason::dependency, pair};
    if (conflict(accesses_of(packets[i], accesses), accesses_of(packets[j], accesses))) {
      return {BarrierReason::conflict, pair};
    }
  }
  return {BarrierReason::independent};
}

}  // namespace

void plan_fences(std::span<const Declarations> packets, std::span<const AccessRange> accesses,
                 FencePolicy policy, std::span<PacketPlan> plans) noexcept {
  size_t since = 0;
  // True once a packet of this plan acquires. Acquires of raw packets are their author's
  // responsibility and do not count.
  bool acquired = false;
  for (size_t i = 0; i < packets.size(); ++i) {
    const Declarations& packet = packets[i];
    const bool first = !acquired && !packet.is_finished;
    acquired = acquired || first;
    const bool last = i + 1 == packets.size();
    PacketPlan& plan = plans[i];
    if (packet.is_finished) {
      plan = detail::plan_finished_packet(packet);
      if (plan.flags.barrier == Barrier::on) since = i;
      continue;
    }
    plan = {};
    if (policy == FencePolicy::system_everywhere) {
      plan.flags = {Barrier::on, FenceScope::system, FenceScope::system};
      plan.barrier = BarrierReason::policy;
      plan.acquire = plan.release = ScopeReason::policy;
    } else {
      const BarrierChoice choice = choose_barrier(packets, accesses, i, since);
      plan.barrier = choice.reason;
      plan.conflict = choice.conflict;
      plan.flags.barrier = choice.reason == BarrierReason::independent ? Barrier::off : Barrier::on;
      plan.flags.acquire = first ? FenceScope::system : FenceScope::agent;
      plan.acquire = first ? ScopeReason::host_wrote : ScopeReason::within_agent;
      plan.flags.release = FenceScope::agent;
      plan.release = ScopeReason::within_agent;
      detail::release_to_observers(packet, last, plan);
    }
    detail::apply_overrides(packet, first, last, plan);
    if (plan.flags.barrier == Barrier::on) since = i;
  }
}

}  // namespace uptempo
