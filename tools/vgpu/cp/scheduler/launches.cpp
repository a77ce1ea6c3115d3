#include "cp/scheduler/launches.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace uptempo::vgpu {

Dispatch::Dispatch(std::unique_ptr<const gfx9::DispatchState> state, ScratchSlots& scratch,
                   QueueShare& share)
    : state_(std::move(state)),
      scratch_(scratch),
      share_(share),
      groups_(state_->workgroups()),
      total_(uint64_t{groups_[0]} * groups_[1] * groups_[2]),
      waves_per_group_(state_->waves_per_workgroup()),
      needs_scratch_(state_->packet.private_segment_size != 0) {}

Launches::Launches(const Device& device, uint32_t workers, const WaveSlots& slots,
                   std::function<void()> on_finished)
    : device_(device),
      workers_(workers),
      slots_(slots),
      on_finished_(std::move(on_finished)),
      all_units_(ComputeUnitSet::all(*device.options.device)),
      waves_per_unit_(uint64_t{device.options.device->simds_per_compute_unit} *
                      device.options.device->max_waves_per_simd),
      claims_({slots, all_units_, workers}),
      random_(device.options.seed) {}

void Launches::launch_after(Dispatch& dispatch, std::span<Dispatch* const> earlier) {
  if (dispatch.total_ == 0 && earlier.empty()) {
    dispatch.finished_.store(true, std::memory_order_release);
    return;
  }
  dispatch.slot_ = claims_.reserve(dispatch, dispatch.total_);
  for (Dispatch* const one : earlier) {
    // The end of `one` is a unit of the dispatch, so that the dispatch exists until that worker has
    // stored there for the last time.
    dispatch.slot_->add_unit(1);
    dispatch.blockers_.fetch_add(1, std::memory_order_relaxed);
    Dispatch* none = nullptr;
    // release: the worker that ends `one` sees the dispatch. acquire: this thread sees its results.
    if (!one->successor_.compare_exchange_strong(none, &dispatch, std::memory_order_acq_rel)) {
      dispatch.slot_->add_unit(-1);
      dispatch.blockers_.fetch_sub(1, std::memory_order_relaxed);
    }
  }
  unblock(dispatch);
}

// One reason less to wait. acq_rel: whoever opens it sees the results of all that it waited for.
void Launches::unblock(Dispatch& dispatch) {
  if (dispatch.blockers_.fetch_sub(1, std::memory_order_acq_rel) == 1) open(dispatch);
}

void Launches::open(Dispatch& dispatch) {
  const std::lock_guard lock(mutex_);
  if (dispatch.abandoned_.load(std::memory_order_relaxed)) return;
  if (device_.options.deterministic) shuffle(dispatch);
  const uint64_t xcds = device_.options.device->xcds;
  dispatch.first_turn_ =
      std::exchange(turns_, (turns_ + dispatch.total_ + xcds - 1) / xcds * xcds) +
      dispatch.share_.first_xcd;
  dispatch.masked_ = dispatch.share_.units != all_units_;
  dispatch.opened_.store(true, std::memory_order_relaxed);
  dispatch.locked_ =
      dispatch.masked_ || dispatch.needs_scratch_ || dispatch.total_ > Claims::kMaxCounted;
  const WorkgroupNeeds needs = dispatch.state_->needs();
  uint64_t room = all_units_.size();
  // A unit holds at least one, so smaller dispatches need no division.
  if (dispatch.total_ > room) room *= occupancy(*device_.options.device, needs).workgroups();
  dispatch.deal_ = Deal::make(dispatch.total_, needs, room, dispatch.locked_ ? 1 : workers_);
  if (dispatch.locked_) keep(dispatch, 0, 0, dispatch.total_);
  claims_.open(*dispatch.slot_, dispatch.deal_, dispatch.locked_);
  show(dispatch);
}

// Keeps workgroups that are claimed under the mutex, or dropped.
void Launches::keep(Dispatch& dispatch, uint32_t part, uint64_t first, uint64_t last) {
  dispatch.rest_.push_back({part, first, last});
  dispatch.rest_count_ += last - first;
  Claims::set_rest(*dispatch.slot_, true);
}

void Launches::show(Dispatch& dispatch) {  // requires the mutex
  const QueueShare& share = dispatch.share_;
  const bool starts = !share.units.empty() && !share.suspended;
  claims_.show(*dispatch.slot_, starts ? std::optional(share.priority) : std::nullopt);
}

// Seeded order of workgroups: n -> n * stride + offset. It is a permutation because stride and
// total are coprime.
void Launches::shuffle(Dispatch& dispatch) {
  const uint64_t total = dispatch.total_;
  uint64_t offset = random_();  // 31 bits
  if (total >> 31 != 0) offset = offset << 31 | random_();
  dispatch.offset_ = offset % total;
  dispatch.stride_ = 1 + random_() % std::min<uint64_t>(total, 1u << 16);
  while (std::gcd(dispatch.stride_, total) != 1) ++dispatch.stride_;
}

template <typename Visit>
void Launches::for_each_of(const QueueShare& share, Visit visit) {
  claims_.for_each([&](Claims::Slot& slot, Dispatch& dispatch) {
    if (&dispatch.share_ == &share && dispatch.opened()) visit(slot, dispatch);
  });
}

void Launches::set_units(QueueShare& share, const ComputeUnitSet& units) {
  const std::lock_guard lock(mutex_);
  share.units = units;
  for_each_of(share, [&](Claims::Slot& slot, Dispatch& dispatch) {
    if (!std::exchange(dispatch.locked_, true))
      claims_.lock(slot, [&](uint32_t part, uint64_t next, uint64_t last) {
        keep(dispatch, part, next, last);
      });
    show(dispatch);
  });
}

void Launches::set_priority(QueueShare& share, PipePriority priority) {
  const std::lock_guard lock(mutex_);
  share.priority = priority;
  for_each_of(share, [&](Claims::Slot&, Dispatch& dispatch) { show(dispatch); });
}

void Launches::set_suspended(QueueShare& share, bool suspended) {
  const std::lock_guard lock(mutex_);
  share.suspended = suspended;
  for_each_of(share, [&](Claims::Slot&, Dispatch& dispatch) { show(dispatch); });
}

bool Launches::end(Dispatch& dispatch, uint32_t part, uint64_t count) {
  if (!Claims::end(*dispatch.slot_, part, count)) return false;
  finish(dispatch);
  return true;
}

void Launches::finish(Dispatch& dispatch) {
  for (Dispatch* ended = &dispatch;;) {
    claims_.release(*ended->slot_);
    // The results of an abandoned dispatch are not complete.
    const bool complete = !ended->abandoned_.load(std::memory_order_relaxed);
    // acq_rel: pairs with launch_after()
    Dispatch* const next = ended->successor_.exchange(ended, std::memory_order_acq_rel);
    ended->finished_.store(true, std::memory_order_release);
    if (next != nullptr && complete) unblock(*next);
    on_finished_();
    if (next == nullptr || !next->slot_->end_units(1)) return;
    ended = next;  // it was abandoned
  }
}

// Returns the number of workgroups that have room on the compute units of the queue.
uint64_t Launches::room_for(const Dispatch& dispatch,
                            uint64_t resident) const {  // requires the mutex
  const ComputeUnitSet& units = dispatch.share_.units;
  const WorkgroupNeeds& needs = dispatch.deal_.needs;
  const uint64_t most =
      uint64_t{occupancy(*device_.options.device, needs).workgroups()} * units.size();
  const uint64_t waves = waves_per_unit_ * units.size();
  const uint64_t used = dispatch.masked_ ? dispatch.share_.masked_waves : 0;
  if (resident >= most || used >= waves) return 0;
  return std::min(
      {most - resident, (waves - used) / dispatch.waves_per_group_, slots_.room(units, needs)});
}

// For dispatches that need more than a counter.
std::optional<Claims::Claim> Launches::claim_locked(Claims::Slot& slot, uint32_t generation,
                                                    Chunk& chunk, bool& exhausted) {
  const std::lock_guard lock(mutex_);
  Dispatch* const found = Claims::current(slot, generation);
  // relaxed: written under the mutex
  exhausted = found == nullptr || found->abandoned_.load(std::memory_order_relaxed);
  if (exhausted) return std::nullopt;
  Dispatch& dispatch = *found;
  if (dispatch.share_.units.empty() || dispatch.share_.suspended) return std::nullopt;
  const uint64_t resident = Claims::resident(slot, dispatch.rest_count_);
  const uint64_t room = room_for(dispatch, resident);
  if (room == 0) return std::nullopt;
  Dispatch::Rest& rest = dispatch.rest_.back();
  uint64_t count = 1;
  if (dispatch.needs_scratch_) {
    chunk.scratch =
        dispatch.scratch_.take(dispatch.state_->scratch_waves, dispatch.waves_per_group_);
    // Until a resident workgroup releases its slots.
    if (!chunk.scratch) return std::nullopt;
  } else {
    const uint64_t share = dispatch.rest_count_ / (workers_ * 4);
    count =
        std::clamp<uint64_t>(std::min({share, room, rest.end - rest.next}), 1, Claims::kMaxChunk);
  }
  chunk.units = dispatch.share_.units;
  chunk.masked = dispatch.masked_;
  if (chunk.masked) dispatch.share_.masked_waves += count * dispatch.waves_per_group_;
  const Claims::Claim claim{&dispatch, rest.part, rest.next, rest.next + count};
  rest.next += count;
  dispatch.rest_count_ -= count;
  if (rest.next == rest.end) dispatch.rest_.pop_back();
  if (dispatch.rest_.empty()) Claims::set_rest(slot, false);
  return claim;
}

bool Launches::claim(Claims::View& view, int least, std::array<Chunk, kPipePriorities>& chunks) {
  Chunk chunk;
  chunk.units = all_units_;  // unless claim_locked() says otherwise
  const auto claim =
      claims_.claim(view, least, [&](Claims::Slot& slot, uint32_t generation, bool& exhausted) {
        return claim_locked(slot, generation, chunk, exhausted);
      });
  if (!claim) return false;
  chunk.dispatch = claim->dispatch;
  chunk.part = claim->part;
  chunk.next = claim->first;
  chunk.end = claim->end;
  chunks[static_cast<size_t>(claim->priority)] = chunk;
  return true;
}

uint64_t Launches::unclaimed(const Dispatch& dispatch) {
  const std::lock_guard lock(mutex_);
  if (dispatch.finished()) return 0;
  if (!dispatch.opened()) return dispatch.total_;
  return dispatch.locked_ ? dispatch.rest_count_ : Claims::unclaimed(*dispatch.slot_);
}

void Launches::give_back(Dispatch& dispatch, uint64_t masked,
                         const std::optional<uint32_t>& scratch) {
  if (masked == 0 && !scratch) return;
  const std::lock_guard lock(mutex_);
  dispatch.share_.masked_waves -= masked * dispatch.waves_per_group_;
  if (scratch) dispatch.scratch_.give_back(*scratch, dispatch.waves_per_group_);
}

bool Launches::close(Dispatch& dispatch, std::optional<gfx9::Executor::Fault> fault) {
  const std::lock_guard lock(mutex_);
  if (dispatch.finished() || dispatch.abandoned_.load(std::memory_order_relaxed)) return false;
  dispatch.abandoned_.store(true, std::memory_order_release);
  dispatch.fault_ = std::move(fault);
  if (dispatch.opened() && !dispatch.locked_)
    claims_.close(*dispatch.slot_, [&](uint32_t part, uint64_t next, uint64_t last) {
      keep(dispatch, part, next, last);
    });
  return true;
}

void Launches::drop_rest(Dispatch& dispatch, std::span<const uint32_t> preempted) {
  std::vector<Dispatch::Rest> rest;
  {
    const std::lock_guard lock(mutex_);
    rest.swap(dispatch.rest_);
    dispatch.rest_count_ = 0;
    Claims::set_rest(*dispatch.slot_, false);
  }
  if (!dispatch.opened()) {
    if (dispatch.slot_->end_units(dispatch.total_)) finish(dispatch);
    return;
  }
  for (const uint32_t part : preempted) rest.push_back({part, 0, 1});
  // The dispatch exists until its last workgroup is counted.
  for (const Dispatch::Rest& one : rest) end(dispatch, one.part, one.end - one.next);
}

}  // namespace uptempo::vgpu
