// The order of accesses: barriers, waits, invalidations, releases and acquires.
#include <algorithm>
#include <iterator>
#include <new>

#include "device/races/dispatch_state.hpp"

namespace uptempo::vgpu::races {

void DispatchRaces::workgroup_started(const ObservedWorkgroup& group) noexcept {
  const uint32_t number = number_of(group.workgroup);
  if (groups_ == nullptr || number >= count_) return;
  if (is_incomplete()) drop_shadow();  // LDS needs memory, too
  const bool done = with_memory([&] {
    if (!meter_.take(sizeof(Group) + kHeapBytes)) throw std::bad_alloc();
    try {
      // release: publishes it
      groups_[number].store(new Group(number, group.waves, meter_), std::memory_order_release);
    } catch (const std::bad_alloc&) {
      meter_.give_back(sizeof(Group) + kHeapBytes);
      throw;
    }
  });
  if (!done) lose();
}

void DispatchRaces::workgroup_ended(const ObservedWorkgroup& ended) noexcept {
  Group* const group = group_of(number_of(ended.workgroup));
  if (group == nullptr) return;
  meter_.give_back(group->lds_parts);
  for (Wave& wave : group->waves) wave.loads.end(expected_loads_);
  const std::lock_guard lock(group_mutexes_[group->number % kShards]);
  const auto is_empty = [](const Group::StoresOfWave& stores) { return stores.empty(); };
  if (!std::all_of(group->stores.begin(), group->stores.end(), is_empty)) {
    group->end();
    return;
  }
  // relaxed: the lock orders it for other workers
  groups_[group->number].store(nullptr, std::memory_order_relaxed);
  drop(group);
}

void DispatchRaces::barrier(const ObservedWorkgroup& at_barrier) noexcept {
  Group* const group = group_of(number_of(at_barrier.workgroup));
  if (group == nullptr) return;
  Local all;
  for (uint32_t i = 0; i < group->waves.size(); ++i) {
    Wave& wave = group->waves[i];
    wave.done_global = wave.end_global();
    if (!shape_.stores_name_scope) wave.done_agent = wave.done_global;
    wave.done_lds = wave.end_lds();
    wave.seen.global[i] = wave.done_global;
    wave.seen.lds[i] = wave.done_lds;
    all.join(wave.seen);
  }
  group->at_barrier = {};
  for (Wave& wave : group->waves) {
    wave.seen = all;
    wave.is_known_valid = false;
    wave.knows_barrier = true;
  }
  if (is_incomplete()) return;
  const bool done = with_memory([&] {
    FarClock far;
    bool is_shared = false;
    for (const Wave& wave : group->waves) {
      far.join(wave.far, meter_);
      is_shared |= wave.shares_pending;
    }
    if (!is_shared) group->shared.clear();
    for (Wave& wave : group->waves) {
      group->shared.join(wave.pending, meter_);
      wave.pending.clear();
    }
    for (Wave& wave : group->waves) {
      wave.far = far;
      wave.shares_pending = !group->shared.empty();
    }
  });
  if (!done) lose();
}

void DispatchRaces::waited(const ObservedWave& wave, bool vector, bool lds) noexcept {
  with_memory([&] {
    Wave& of = at(wave.workgroup, wave.wave).wave;
    if (vector) {
      of.done_global = of.end_global();
      const uint32_t agent = shape_.stores_name_scope ? of.written_back : of.done_global;
      of.done_agent = std::max(of.done_agent, agent);
    }
    if (lds) of.done_lds = of.end_lds();
  });
}

void DispatchRaces::wrote_back(const ObservedWave& wave, AccessScope scope) noexcept {
  if (scope < AccessScope::agent) return;
  with_memory([&] {
    Wave& of = at(wave.workgroup, wave.wave).wave;
    of.written_back = of.end_global();
  });
}

void DispatchRaces::invalidated(const ObservedWave& wave, AccessScope scope) noexcept {
  if (scope < AccessScope::agent) return;
  const bool done = with_memory([&] {
    const At here = at(wave.workgroup, wave.wave);
    here.wave.invalidate();
    learn_pending(here);
  });
  if (!done) lose();
}

void DispatchRaces::arrived(const ObservedWave& wave, unsigned resource) noexcept {
  const bool done = with_memory([&] {
    const Ref<const Release> told = release_of(at(wave.workgroup, wave.wave), true);
    const std::lock_guard lock(gws_mutex_);
    told->tell_others(gws_[resource], meter_);
  });
  if (!done) lose();
}

void DispatchRaces::passed(const ObservedWave& wave, unsigned resource) noexcept {
  const bool done = with_memory([&] {
    const At here = at(wave.workgroup, wave.wave);
    {
      const std::lock_guard lock(gws_mutex_);
      here.wave.pending.far.join(gws_[resource], meter_);
    }
    if (here.wave.is_clean_but_for(Wave::kNoLine)) learn_pending(here);
  });
  if (!done) lose();
}

void DispatchRaces::join_places(Pending& pending) {
  if (is_incomplete()) return pending.clear();
  Lines lines(*this);
  for (const Pending::Place& place : pending.places) {
    Sync* const sync = lines.sync(place.address, false);
    if (sync == nullptr) continue;
    const size_t before = sync->allocated_bytes();
    sync->tell(place.releases, pending.far, meter_);
    lines.take_more(*sync, before);
  }
  pending.places.clear();
}

void DispatchRaces::learn(const At& here, const FarClock& told) {
  bool is_new = here.wave.far.join(told, meter_);
  if (const FarClock::Leaf* const own = told.leaf(here.group.number)) {
    Local local;
    local.global = *own;
    is_new |= here.wave.seen.join(local);
  }
  if (is_new) here.wave.learned();
}

void DispatchRaces::learn_pending(const At& here) {
  Wave& wave = here.wave;
  if (wave.shares_pending) {
    join_places(here.group.shared);
    learn(here, here.group.shared.far);
    wave.shares_pending = false;
  }
  if (wave.pending.empty()) return;
  join_places(wave.pending);
  learn(here, wave.pending.far);
  wave.pending.clear();
}

const Ref<const Known>& DispatchRaces::known_by(const At& here) {
  Wave& wave = here.wave;
  if (wave.is_known_valid) return wave.known;
  if (wave.knows_barrier && here.group.at_barrier) {
    wave.known = here.group.at_barrier;
  } else {
    const Ref<Known> known = make_counted<Known>(meter_);
    known->seen = wave.seen;
    known->far = wave.far;
    wave.known = known;
    if (wave.knows_barrier) here.group.at_barrier = known;
  }
  wave.is_known_valid = true;
  return wave.known;
}

Ref<const Release> DispatchRaces::release_of(const At& here, bool to_agent) {
  const Ref<Release> release = make_counted<Release>(meter_);
  release->number = here.number();
  release->to_agent = to_agent;
  release->agent = here.wave.done_agent;
  release->global = here.wave.now_global - 1;
  release->lds = here.wave.done_lds;
  release->known = known_by(here);
  return release;
}

// The wave stores, perhaps atomically.
void DispatchRaces::note_store(const At& here) {
  const Wave& wave = here.wave;
  Group& group = here.group;
  const Stored now{wave.now_global, wave.done_global, known_by(here)};
  const bool has_all = now.done == now.clock - 1;
  const bool is_first = group.stores.empty() || group.stores[here.index].empty();
  if (is_first && has_all && !now.known) return;
  if (!is_first) {
    const Stored& last = group.stores[here.index].back();
    if (last.known == now.known && (has_all || last.clock == now.clock)) return;
  }
  const std::lock_guard lock(group_mutexes_[group.number % kShards]);
  if (group.stores.empty())
    group.stores.resize(group.waves.size(), Group::StoresOfWave(MeterAllocator<Stored>(meter_)));
  group.stores[here.index].push_back(now);
}

// The accesses that had completed before a store that may be an atomic one.
Ref<const Release> DispatchRaces::release_of(const Stamp& store) {
  const Ref<Release> release = make_counted<Release>(meter_);
  release->number = store.number();
  release->agent = store.clock - 1;
  release->global = store.clock;
  const std::lock_guard lock(group_mutexes_[store.group() % kShards]);
  const Group* const group = group_of(store.group());
  if (group == nullptr || group->stores.empty()) return release;
  const Group::StoresOfWave& stores = group->stores[store.wave()];
  const auto after =
      std::upper_bound(stores.begin(), stores.end(), store.clock,
                       [](uint32_t clock, const Stored& stored) { return clock < stored.clock; });
  if (after == stores.begin()) return release;
  const Stored& found = *std::prev(after);
  release->known = found.known;
  if (found.clock == store.clock) release->agent = found.done;
  return release;
}

void DispatchRaces::acquire(const At& here, Lines& lines, GpuAddress address) {
  Sync* const sync = lines.sync(address, true);
  if (sync == nullptr) return;
  Wave& wave = here.wave;
  const size_t before = sync->allocated_bytes();
  if (sync->acquire(address, here.number(), wave.pending, wave.seen, wave.far, meter_))
    wave.learned();
  lines.take_more(*sync, before);
}

// `store` has been read.
void DispatchRaces::acquire_store(const At& here, const Stamp& store) {
  Wave& wave = here.wave;
  const Ref<const Release> release = release_of(store);
  if (store.group() != here.group.number)
    release->tell_others(wave.pending.far, meter_);
  else if (release->tell_own(wave.seen, wave.far, meter_))
    wave.learned();
}

}  // namespace uptempo::vgpu::races
