#include <uptempo/fences/fence_planner.hpp>

#include <algorithm>
#include <utility>

namespace uptempo::detail {
namespace {

using aql::Barrier;
using aql::FenceScope;

bool scopes_are_given(const Declarations& packet) noexcept {
  return packet.is_finished || packet.explicit_fences;
}

bool releases(const PacketPlan& plan) noexcept { return plan.flags.release != FenceScope::none; }

PacketPlan finished(const Declarations& packet) noexcept {
  return {.flags = {packet.without_barrier ? Barrier::off : Barrier::on, packet.acquire,
                    packet.release},
          .barrier =
              packet.without_barrier ? BarrierReason::caller_without : BarrierReason::caller_with,
          .acquire = ScopeReason::caller,
          .release = ScopeReason::caller};
}

constexpr PacketPlan kSystemEverywhere{
    .flags = {Barrier::on, FenceScope::system, FenceScope::system},
    .barrier = BarrierReason::policy,
    .acquire = ScopeReason::policy,
    .release = ScopeReason::policy};

// The packet's plan without hand-overs. `since`: the last packet with a barrier bit.
PacketPlan own_plan(std::span<const Declarations> packets, uint32_t i,
                    const FenceRelations::Needs& needs, uint32_t since, bool is_first) noexcept {
  const Declarations& packet = packets[i];
  PacketPlan plan{.flags = {Barrier::on, FenceScope::none, FenceScope::none}};
  if (i == 0) {
    plan.barrier = BarrierReason::first_of_batch;
  } else if (needs.after > since) {
    plan.barrier = !packet.declared                     ? BarrierReason::undeclared
                   : needs.is_dependency                ? BarrierReason::dependency
                   : !packets[needs.after - 1].declared ? BarrierReason::after_undeclared
                                                        : BarrierReason::conflict;
    plan.conflict = {needs.after - 1, i};
  } else {
    plan.flags.barrier = Barrier::off;
    plan.barrier = BarrierReason::independent;
  }
  if (is_first) {
    plan.flags.acquire = FenceScope::system;
    plan.acquire = ScopeReason::host_wrote;
  }
  if (i + 1 == packets.size()) {
    plan.flags.release = FenceScope::system;
    plan.release = ScopeReason::host_reads;
  } else if (packet.observer != Observer::none) {
    plan.flags.release =
        packet.observer == Observer::system ? FenceScope::system : FenceScope::agent;
    plan.release = ScopeReason::observed;
  }
  return plan;
}

// Applies the caller's choices, except where the first engine packet or the last packet forbids it.
void apply_overrides(const Declarations& packet, bool is_first, bool is_last,
                     PacketPlan& plan) noexcept {
  if (packet.explicit_fences) {
    plan.flags.acquire = packet.acquire;
    plan.flags.release = packet.release;
    plan.acquire = plan.release = ScopeReason::caller;
  }
  if (packet.without_barrier) {
    plan.flags.barrier = Barrier::off;
    plan.barrier = BarrierReason::caller_without;
  }
  if (is_first && plan.flags.acquire == FenceScope::none) {
    plan.flags.acquire = FenceScope::agent;
    plan.acquire = ScopeReason::stale_kernargs;
  }
  if (!is_last) return;
  if (plan.flags.barrier == Barrier::off) {
    plan.flags.barrier = Barrier::on;
    plan.barrier = BarrierReason::completion;
  }
  if (plan.flags.release != FenceScope::system) {
    plan.flags.release = FenceScope::system;
    plan.release = ScopeReason::completion;
  }
}

void release_for(uint32_t writer, uint32_t reader, PacketPlan& plan) noexcept {
  plan.flags.release = FenceScope::agent;
  plan.release = ScopeReason::hand_over;
  plan.released = {writer, reader};
}

}  // namespace

void FencePlanner::plan(std::span<const Declarations> packets,
                        std::span<const AccessRange> accesses, std::span<PacketPlan> plans) {
  relations_.begin(packets.size(), accesses);
  epoch_.resize(packets.size());
  deferred_.clear();
  acquired_ = 0;
  uint32_t epoch = 0, since = 0;
  bool begun = false;  // true once an engine packet has acquired the host's writes
  for (uint32_t i = 0; i < packets.size(); ++i) {
    const Declarations& packet = packets[i];
    PacketPlan& plan = plans[i];
    const FenceRelations::Needs needs = relations_.add(packet, accesses);
    if (packet.is_finished) {
      plan = finished(packet);
    } else {
      const bool is_first = !std::exchange(begun, true);
      plan = policy_ == FencePolicy::system_everywhere
                 ? kSystemEverywhere
                 : own_plan(packets, i, needs, since, is_first);
      apply_overrides(packet, is_first, i + 1 == packets.size(), plan);
    }
    if (plan.flags.barrier == Barrier::on) {
      since = i;
      ++epoch;
    }
    epoch_[i] = epoch;
    if (plan.flags.acquire != FenceScope::none) acquired_ = epoch;
    if (policy_ == FencePolicy::by_need) hand_over(needs.writers, i, packets, plans);
  }
  if (!deferred_.empty()) place_deferred(packets, plans);
}

void FencePlanner::hand_over(std::span<const uint32_t> writers, uint32_t reader,
                             std::span<const Declarations> packets, std::span<PacketPlan> plans) {
  for (const uint32_t writer : writers) {
    if (acquired_ > epoch_[writer]) continue;
    if (scopes_are_given(packets[reader])) break;  // the caller set none; it is responsible
    PacketPlan& plan = plans[reader];
    if (plan.flags.acquire == FenceScope::none) {
      plan.flags.acquire = FenceScope::agent;
      plan.acquire = ScopeReason::hand_over;
      plan.acquired = {writer, reader};
    }
    acquired_ = epoch_[reader];
    break;
  }
  for (const uint32_t writer : writers) {
    if (scopes_are_given(packets[writer]) || releases(plans[writer])) continue;
    // Release no later than the next barrier bit. If the caller removed that bit, it ensures
    // another order.
    if (acquired_ <= epoch_[writer] + 1) {
      release_for(writer, reader, plans[writer]);
    } else {
      deferred_.push_back({writer, reader, acquired_});
    }
  }
}

// The acquires come in order. So a release at the end of the epoch before one acquire also serves
// all later acquires whose writers have completed by then.
void FencePlanner::place_deferred(std::span<const Declarations> packets,
                                  std::span<PacketPlan> plans) {
  epochs_.assign(epoch_.back() + 1, {});
  for (uint32_t i = 0; i < packets.size(); ++i) {
    if (!scopes_are_given(packets[i])) epochs_[epoch_[i]].last_packet = i + 1;
    if (releases(plans[i])) epochs_[epoch_[i]].released = epoch_[i];
  }
  for (size_t i = 1; i < epochs_.size(); ++i)
    epochs_[i].released = std::max(epochs_[i].released, epochs_[i - 1].released);
  uint32_t placed = 0;
  for (const auto& [writer, reader, acquire] : deferred_) {
    const uint32_t written = epoch_[writer], before = acquire - 1;
    if (releases(plans[writer]) || std::max(epochs_[before].released, placed) > written) continue;
    const uint32_t last = epochs_[before].last_packet;
    if (last != 0) {
      release_for(writer, reader, plans[last - 1]);
      placed = before;
    } else {
      // The caller set the scopes of all packets of that epoch.
      release_for(writer, reader, plans[writer]);
    }
  }
}

}  // namespace uptempo::detail
