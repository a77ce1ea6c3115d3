#include "engine/fences/packet_plan.hpp"

#include <fmt/format.h>

#include "aql/text.hpp"

namespace uptempo {
namespace {

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
    case BarrierReason::dependency:
      return "{later} depends on {earlier}";
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
    case ScopeReason::no_reader:
      return "no packet reads what it wrote, or a later release covers it";
    case ScopeReason::policy:
      return "the batch's policy";
  }
  return "";
}

}  // namespace

FenceCost cost_of(std::span<const PacketPlan> plans) noexcept {
  FenceCost cost;
  for (const PacketPlan& plan : plans) {
    cost.barrier_bits += plan.flags.barrier == aql::Barrier::on;
    for (const aql::FenceScope scope : {plan.flags.acquire, plan.flags.release}) {
      cost.system_fences += scope == aql::FenceScope::system;
      cost.agent_fences += scope == aql::FenceScope::agent;
    }
  }
  return cost;
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
                     plan.flags.barrier == aql::Barrier::on ? "barrier bit" : "no barrier bit",
                     reasons.barrier, aql::scope_name(plan.flags.acquire), reasons.acquire,
                     aql::scope_name(plan.flags.release), reasons.release);
}

std::string explain(std::span<const PacketPlan> plans) {
  std::string text;
  for (size_t packet = 0; packet < plans.size(); ++packet)
    text += fmt::format("packet {}: {}\n", packet, explain(plans[packet], packet));
  return text;
}

}  // namespace uptempo
