#include "engine/fences/fence_planner.hpp"

#include <algorithm>

#include "engine/fences/fence_search.hpp"
#include "engine/fences/overrides.hpp"

namespace uptempo {
namespace {

using aql::Barrier;
using aql::FenceScope;

bool scopes_are_given(const Declarations& packet) noexcept {
  return packet.is_finished || packet.explicit_fences;
}

}  // namespace

namespace detail {

void FencePlanner::plan(std::span<const Declarations> packets,
                        std::span<const AccessRange> accesses, std::span<PacketPlan> plans) {
  relations_.find(packets, accesses, overwrites_ == Overwrites::handed_over);
  sweep(packets, plans);
  if (packets.size() <= kSearched) search_fences(packets, relations_, plans);
}

void FencePlanner::sweep(std::span<const Declarations> packets, std::span<PacketPlan> plans) {
  epoch_.resize(packets.size());
  deferred_.clear();
  acquired_ = 0;
  // `since`: the last packet with a barrier bit.
  uint32_t epoch = 0, since = 0;
  bool begun = false;  // true once an engine packet has acquired the host's writes
  auto pair = relations_.hand_overs().begin();
  const auto pairs_end = relations_.hand_overs().end();
  for (uint32_t i = 0; i < packets.size(); ++i) {
    const Declarations& packet = packets[i];
    PacketPlan& plan = plans[i];
    const bool is_last = i + 1 == packets.size(), is_first = !begun && !packet.is_finished;
    begun = begun || is_first;
    if (packet.is_finished) {
      plan = plan_finished_packet(packet);
    } else {
      plan = {};
      const uint32_t after = relations_.comes_after(i);
      if (i == 0) {
        plan.flags.barrier = Barrier::on;
        plan.barrier = BarrierReason::first_of_batch;
      } else if (after > since) {
        plan.flags.barrier = Barrier::on;
        plan.barrier = !packet.declared               ? BarrierReason::undeclared
                       : relations_.is_dependency(i)  ? BarrierReason::dependency
                       : !packets[after - 1].declared ? BarrierReason::after_undeclared
                                                      : BarrierReason::conflict;
        plan.conflict = {after - 1, i};
      } else {
        plan.flags.barrier = Barrier::off;
        plan.barrier = BarrierReason::independent;
      }
      plan.flags.acquire = is_first ? FenceScope::system : FenceScope::none;
      plan.acquire = is_first ? ScopeReason::host_wrote : ScopeReason::nothing_new;
      plan.flags.release = FenceScope::none;
      plan.release = ScopeReason::no_reader;
      release_to_observers(packet, is_last, plan);
      apply_overrides(packet, is_first, is_last, plan);
    }

    if (plan.flags.barrier == Barrier::on) {
      since = i;
      ++epoch;
    }
    epoch_[i] = epoch;
    if (plan.flags.acquire != FenceScope::none) acquired_ = epoch;
    const auto first_pair = pair;
    while (pair != pairs_end && pair->reader == i) ++pair;
    hand_over({first_pair, pair}, packets, plans);
  }
  if (!deferred_.empty()) place_deferred(packets, plans);
}

namespace {

void release_for(const HandOver& pair, uint32_t packet, std::span<PacketPlan> plans) noexcept {
  plans[packet].flags.release = FenceScope::agent;
  plans[packet].release = ScopeReason::hand_over;
  plans[packet].released = {pair.writer, pair.reader};
}

}  // namespace

// Handles all hand-overs to one reader.
void FencePlanner::hand_over(std::span<const HandOver> pairs, std::span<const Declarations> packets,
                             std::span<PacketPlan> plans) {
  for (const HandOver& pair : pairs) {
    if (acquired_ > epoch_[pair.writer]) continue;
    PacketPlan& reader = plans[pair.reader];
    if (scopes_are_given(packets[pair.reader])) break;  // the caller set none; it is responsible
    reader.flags.acquire = FenceScope::agent;
    reader.acquire = ScopeReason::hand_over;
    reader.acquired = {pair.writer, pair.reader};
    acquired_ = epoch_[pair.reader];
    break;
  }
  for (const HandOver& pair : pairs) {
    if (scopes_are_given(packets[pair.writer]) || releases(plans[pair.writer])) continue;
    const uint32_t written = epoch_[pair.writer];
    // Release no later than the next barrier bit. If the caller removed that bit, it ensures
    // another order.
    if (acquired_ <= written + 1) {
      release_for(pair, pair.writer, plans);
    } else {
      deferred_.push_back({pair, acquired_});
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
  for (const Deferred& deferred : deferred_) {
    const uint32_t written = epoch_[deferred.pair.writer], before = deferred.acquire - 1;
    if (releases(plans[deferred.pair.writer]) ||
        std::max(epochs_[before].released, placed) > written)
      continue;
    const uint32_t last = epochs_[before].last_packet;
    if (last != 0) {
      release_for(deferred.pair, last - 1, plans);
      placed = before;
    } else if (!scopes_are_given(packets[deferred.pair.writer])) {
      // The caller set the scopes of all packets of that epoch.
      release_for(deferred.pair, deferred.pair.writer, plans);
    }
  }
}

}  // namespace detail
}  // namespace uptempo
