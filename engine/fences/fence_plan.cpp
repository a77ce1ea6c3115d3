#include "engine/fences/fence_plan.hpp"

#include <utility>

#include "engine/fences/fence_planner.hpp"
#include "engine/runtime/agent.hpp"

namespace uptempo {

Overwrites overwrites_on(const Agent* agent) noexcept {
  return agent != nullptr && memory_model(*agent).rules().one_l2 ? Overwrites::ordered
                                                                 : Overwrites::handed_over;
}

FencePlan::FencePlan()
    : planner_(std::make_unique<detail::FencePlanner>(Overwrites::handed_over)) {}
FencePlan::FencePlan(const Agent& agent)
    : planner_(std::make_unique<detail::FencePlanner>(overwrites_on(&agent))) {}
FencePlan::~FencePlan() = default;

FencePlan::Dispatch FencePlan::dispatch() {
  packets_.emplace_back();
  plans_.clear();
  return Dispatch(Ref{this, static_cast<uint32_t>(packets_.size() - 1)});
}

void FencePlan::clear() noexcept {
  packets_.clear();
  accesses_.clear();
  plans_.clear();
}

std::span<const PacketPlan> FencePlan::packets() {
  if (plans_.size() != packets_.size()) {
    std::vector<PacketPlan> plans(packets_.size());
    planner_->plan(packets_, accesses_, plans);
    plans_ = std::move(plans);  // after everything that may throw
  }
  return plans_;
}

}  // namespace uptempo
