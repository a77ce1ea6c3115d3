#include <uptempo/fences/fence_plan.hpp>

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include <uptempo/aql/text.hpp>
#include <uptempo/fences/fence_planner.hpp>
#include <uptempo/runtime/agent.hpp>
#include <uptempo/runtime/error.hpp>

namespace uptempo {
namespace {

// In the order of BarrierReason and ScopeReason.
constexpr const char* kBarrierWords[] = {
    "first of its batch, earlier batches may still run",
    "its accesses are not declared",
    "a packet since the last barrier bit declares no accesses",
    "{later} touches what {earlier} touches, and one of them writes",
    "{later} depends on {earlier}",
    "no conflict with packets since the last barrier bit",
    "the caller asked for none",
    "the caller's packet sets it",
    "it carries the completion signal, which covers all packets before it",
    "the batch's policy",
};
static_assert(std::size(kBarrierWords) == static_cast<size_t>(BarrierReason::policy) + 1);

constexpr const char* kScopeWords[] = {
    "the host wrote kernargs and inputs",
    "the host reads after the completion signal",
    "an observer was declared",
    "the caller asked for it",
    "raised: the completion signal covers all packets and their results",
    "raised: the kernarg block may have been used before",
    "{later} reads what {earlier} wrote",
    "it reads nothing that has not been acquired",
    "no packet reads what it wrote, or a later release covers it",
    "the batch's policy",
};
static_assert(std::size(kScopeWords) == static_cast<size_t>(ScopeReason::policy) + 1);

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
  const auto about = [&](const auto& words, auto reason, const PacketPair& pair) {
    return fmt::format(fmt::runtime(words[static_cast<size_t>(reason)]),
                       fmt::arg("earlier", name(pair.earlier)),
                       fmt::arg("later", name(pair.later)));
  };
  return {.barrier = about(kBarrierWords, plan.barrier, plan.conflict),
          .acquire = about(kScopeWords, plan.acquire, plan.acquired),
          .release = about(kScopeWords, plan.release, plan.released)};
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

detail::Overwrites detail::overwrites_on(const Agent* agent) noexcept {
  return agent != nullptr && memory_model(*agent).rules().one_l2 ? Overwrites::ordered
                                                                 : Overwrites::handed_over;
}

FencePlan::FencePlan()
    : planner_(std::make_unique<detail::FencePlanner>(detail::Overwrites::handed_over)) {}
FencePlan::FencePlan(const Agent& agent)
    : planner_(std::make_unique<detail::FencePlanner>(detail::overwrites_on(&agent))) {}
FencePlan::~FencePlan() = default;

FencePlan::Dispatch FencePlan::dispatch() {
  all_.packets.emplace_back();
  all_.plans.clear();
  return Dispatch({&all_, static_cast<uint32_t>(size() - 1)});
}

std::span<const PacketPlan> FencePlan::packets() {
  if (all_.plans.size() != size()) {
    std::vector<PacketPlan> plans(size());
    planner_->plan(all_.packets, all_.accesses, plans);
    all_.plans = std::move(plans);  // after everything that may throw
  }
  return all_.plans;
}

void detail::require_same(const PlannedDispatch& own, const PlannedDispatch& other) {
  if (own.all == other.all) return;
  throw Error({.code = ErrorCode::argument,
               .status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
               .call = "FencePlan::Dispatch::after",
               .asked = fmt::format("dispatch {} after dispatch {} of another plan", own.packet,
                                    other.packet),
               .found = "the dispatches of a plan depend on one another only",
               .remedy = "add both to one plan"});
}

}  // namespace uptempo
