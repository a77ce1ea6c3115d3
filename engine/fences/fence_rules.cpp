#include "engine/fences/fence_rules.hpp"

#include <fmt/format.h>

#include "aql/text.hpp"
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
BarrierChoice choose_barrier(std::span<const Declarations> packets, std::span<const AccessRange> accesses,
                             size_t i, size_t since) noexcept {
  if (i == 0) return {BarrierReason::first_of_batch};
  if (!packets[i].declared) return {BarrierReason::undeclared};
  for (size_t j = i; j-- > since;) {
    if (!packets[j].declared) return {BarrierReason::after_undeclared};
    if (conflict(accesses_of(packets[i], accesses), accesses_of(packets[j], accesses))) {
      return {BarrierReason::conflict, {static_cast<uint32_t>(j), static_cast<uint32_t>(i)}};
    }
  }
  return {BarrierReason::independent};
}

const char* words(BarrierReason reason) noexcept {
  switch (reason) {
    case BarrierReason::first_of_batch:
      return "first of its batch, earlier batches may still run";
    case BarrierReason::undeclared:
      return "its accesses are not declared";
    case BarrierReason::after_undeclared:
      return "a packet since the last barrier bit declares no accesses";
    case BarrierReason::conflict:
      return "{later} touches what {earlier} touches, and one of them writes";
    case BarrierReason::independent:
      return "no conflict with packets since the last barrier bit";
    case BarrierReason::caller_without:
      return "the caller asked for none";
    case BarrierReason::caller_with:
      return "the caller's packet sets it";
    case BarrierReason::completion:
      return "it carries the completion signal, which covers all packets before it";
    case BarrierReason::policy:
      return "the batch's policy";
  }
  return "";
}

const char* words(ScopeReason reason) noexcept {
  switch (reason) {
    case ScopeReason::host_wrote:
      return "the host wrote kernargs and inputs";
    case ScopeReason::host_reads:
      return "the host reads after the completion signal";
    case ScopeReason::within_agent:
      return "only packets of this agent read it";
    case ScopeReason::observed:
      return "an observer was declared";
    case ScopeReason::caller:
      return "the caller asked for it";
    case ScopeReason::completion:
      return "raised: the completion signal covers all packets and their results";
    case ScopeReason::stale_kernargs:
      return "raised: the kernarg block may have been used before";
    case ScopeReason::hand_over:
      return "{later} reads what {earlier} wrote";
    case ScopeReason::nothing_new:
      return "it reads nothing that has not been acquired";
    case ScopeReason::nobody_reads:
      return "no packet reads what it wrote, or a later release covers it";
    case ScopeReason::policy:
      return "the batch's policy";
  }
  return "";
}

}  // namespace

void Declarations::move_to_end(std::vector<AccessRange>& accesses) {
  const auto end = static_cast<uint32_t>(accesses.size());
  for (uint32_t i = 0; i < access_count; ++i) accesses.push_back(accesses[first_access + i]);
  first_access = end;
}

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

PlanReasons reasons_of(const PacketPlan& plan, size_t packet) {
  const auto name = [&](uint32_t number) {
    return number == packet ? std::string("it") : fmt::format("packet {}", number);
  };
  const auto about = [&](const char* words, const PacketPair& pair) {
    return fmt::format(fmt::runtime(words), fmt::arg("earlier", name(pair.earlier)),
                       fmt::arg("later", name(pair.later)));
  };
  return {.barrier = about(words(plan.barrier), plan.conflict),
          .acquire = about(words(plan.acquire), plan.acquired),
          .release = about(words(plan.release), plan.released)};
}

std::string explain(const PacketPlan& plan, size_t packet) {
  const PlanReasons reasons = reasons_of(plan, packet);
  return fmt::format("{}: {}; acquire {}: {}; release {}: {}",
                     plan.flags.barrier == Barrier::on ? "barrier bit" : "no barrier bit", reasons.barrier,
                     aql::scope_name(plan.flags.acquire), reasons.acquire,
                     aql::scope_name(plan.flags.release), reasons.release);
}

std::string explain(std::span<const PacketPlan> plans) {
  std::string text;
  for (size_t packet = 0; packet < plans.size(); ++packet)
    text += fmt::format("packet {}: {}\n", packet, explain(plans[packet], packet));
  return text;
}

}  // namespace uptempo
