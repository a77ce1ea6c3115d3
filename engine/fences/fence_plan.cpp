#include "engine/fences/fence_plan.hpp"

#include <utility>

#include "engine/fences/fence_planner.hpp"
#include "engine/runtime/memory_model.hpp"

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
  return Dispatch(detail::PlannedRef{this, static_cast<uint32_t>(packets_.size() - 1)});
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

namespace detail {

void declare(const PlannedRef& packet, const void* data, size_t bytes, bool writes) {
  packet.plan->declarations_of(packet.packet).declare(packet.plan->accesses_, data, bytes, writes);
}
void depend(const PlannedRef& packet, std::span<const size_t> earlier) {
  packet.plan->declarations_of(packet.packet)
      .depend(packet.plan->accesses_, packet.packet, earlier);
}
void observe(const PlannedRef& packet, Observer observer) {
  packet.plan->declarations_of(packet.packet).observer = observer;
}
void set_fences(const PlannedRef& packet, aql::FenceScope acquire, aql::FenceScope release) {
  packet.plan->declarations_of(packet.packet).give_fences(acquire, release);
}
void drop_barrier(const PlannedRef& packet) {
  packet.plan->declarations_of(packet.packet).without_barrier = true;
}

}  // namespace detail
}  // namespace uptempo
