// The order of accesses: barriers, waits, invalidations, releases and acquires.
#include "device/races/dispatch_state.hpp"

namespace uptempo::vgpu::races {

void DispatchRaces::workgroup_started(const ObservedWorkgroup& group) noexcept {
  if (!with_memory([&] { group_of(number_of(group.workgroup), group.waves); }))
    incomplete_.store(true, std::memory_order_relaxed);
}

void DispatchRaces::workgroup_ended(const ObservedWorkgroup& ended) noexcept {
  Group* const group = group_of(number_of(ended.workgroup), 0);
  if (group == nullptr) return;
  const bool done = with_memory([&] {
    std::pair<FarClock::Leaf, FarClock> last;
    for (uint32_t i = 0; i < group->waves.size(); ++i) {
      Wave& wave = group->waves[i];
      last.second.join(wave.far);
      for (unsigned k = 0; k < FarClock::kWaves; ++k)
        last.first[k] = std::max(last.first[k], wave.seen.global[k]);
    }
    const std::lock_guard lock(group->mutex);
    group->last = std::move(last);
    group->waves = {};
    group->lds = {};
    group->lds_syncs = {};
  });
  if (!done) incomplete_.store(true, std::memory_order_relaxed);
}

void DispatchRaces::barrier(const ObservedWorkgroup& at_barrier) noexcept {
  Group* const group = group_of(number_of(at_barrier.workgroup), 0);
  if (group == nullptr) return;
  const bool done = with_memory([&] {
    Local all;
    FarClock far, pending;
    for (uint32_t i = 0; i < group->waves.size(); ++i) {
      Wave& wave = group->waves[i];
      wave.done_global = wave.done_agent = wave.end_global();
      wave.done_lds = wave.end_lds();
      // Not in `seen`, which needs the lock. Others know at most as much of this wave.
      Local own;
      own.global[i] = wave.done_global;
      own.lds[i] = wave.done_lds;
      all.join(wave.seen);
      all.join(own);
      far.join(wave.far);
      pending.join(wave.pending);
    }
    const std::lock_guard lock(group->mutex);
    for (Wave& wave : group->waves) {
      wave.seen = all;
      wave.far = far;
      wave.pending = pending;
      wave.is_published_valid = false;
    }
  });
  if (!done) incomplete_.store(true, std::memory_order_relaxed);
}

void DispatchRaces::waited(const ObservedWave& wave, bool vector, bool lds) noexcept {
  with_memory([&] {
    Wave& of = at(wave.workgroup, wave.wave).wave;
    if (vector) {
      of.done_global = of.end_global();
      const uint32_t agent = shape_.stores_name_scope ? of.written_back : of.done_global;
      if (agent != of.done_agent) of.is_published_valid = false;
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
    here.wave.is_clean = true;
    learn_pending(here);
  });
  if (!done) incomplete_.store(true, std::memory_order_relaxed);
}

void DispatchRaces::arrived(const ObservedWave& wave, unsigned resource) noexcept {
  with_memory([&] {
    const FarClock& told = published(at(wave.workgroup, wave.wave));
    const std::lock_guard lock(gws_mutex_);
    gws_[resource].join(told);
  });
}

void DispatchRaces::passed(const ObservedWave& wave, unsigned resource) noexcept {
  with_memory([&] {
    const At here = at(wave.workgroup, wave.wave);
    {
      const std::lock_guard lock(gws_mutex_);
      here.wave.pending.join(gws_[resource]);
    }
    if (here.wave.is_clean) learn_pending(here);
  });
}

void DispatchRaces::learn_pending(const At& here) {
  Wave& wave = here.wave;
  if (wave.pending.empty()) return;
  const std::lock_guard lock(here.group.mutex);
  wave.far.join(wave.pending);
  if (const FarClock::Leaf* const own = wave.pending.leaf(here.group.number)) {
    Local local;
    local.global = *own;
    wave.seen.join(local);
  }
  wave.pending = {};
  wave.is_published_valid = false;
}

const FarClock& DispatchRaces::published(const At& here) {
  Wave& wave = here.wave;
  if (wave.is_published_valid) return wave.published;
  wave.published = wave.far;
  FarClock::Leaf own = wave.seen.global;
  own[here.index] = wave.done_agent;
  wave.published.join(here.group.number, own);
  wave.is_published_valid = true;
  return wave.published;
}

// Only notes a release to the agent, because most places are never acquired (histograms).
void DispatchRaces::release(const At& here, Sync& sync, bool to_agent) {
  const Release release{.number = here.number(),
                        .agent = here.wave.done_agent,
                        .global = here.wave.now_global - 1,
                        .lds = here.wave.done_lds};
  if (!to_agent) {
    Told told = told_by(release);
    told.leaf = {};
    told.far_to_agent = {};
    continue_with(sync, here.group.number, told);
    return;
  }
  if (!sync.noted.empty() && sync.noted.back().number == release.number)
    sync.noted.back() = release;
  else
    sync.noted.push_back(release);
}

void DispatchRaces::acquire(const At& here, Sync& sync) {
  for (const Release& release : sync.noted)
    continue_with(sync, release.number >> Stamp::kWaveBits, told_by(release));
  sync.noted.clear();
  here.wave.pending.join(sync.released);
  if (here.wave.is_clean) learn_pending(here);
  if (sync.group != here.group.number) return;
  const std::lock_guard lock(here.group.mutex);
  here.wave.seen.join(sync.local);
  here.wave.far.join(sync.far);
  here.wave.is_published_valid = false;
}

DispatchRaces::Told DispatchRaces::told_by(const Release& release) {
  Told told;
  const uint32_t of = release.number & ((1u << Stamp::kWaveBits) - 1);
  Group* const group = group_of(release.number >> Stamp::kWaveBits, 0);
  if (group == nullptr) return told;
  {
    const std::lock_guard lock(group->mutex);
    if (group->waves.empty()) {
      told.leaf = group->last.first;
      told.far = group->last.second;
    } else {
      const Wave& wave = group->waves[of];
      told.leaf = wave.seen.global;
      told.local.lds = wave.seen.lds;
      told.far = wave.far;
    }
  }
  told.far_to_agent = told.far;
  told.local.global = told.leaf;
  told.local.global[of] = release.global;
  told.local.lds[of] = release.lds;
  told.leaf[of] = release.agent;
  return told;
}

// A store that may be an atomic one: what had completed before it.
DispatchRaces::Told DispatchRaces::told_by(const Stamp& store) {
  return told_by(
      Release{.number = store.number(), .agent = store.clock - 1, .global = store.clock, .lds = 0});
}

// `store` has been read.
void DispatchRaces::acquire_store(const At& here, const Stamp& store) {
  const Told told = told_by(store);
  if (store.group() == here.group.number) {
    const std::lock_guard lock(here.group.mutex);
    here.wave.seen.join(told.local);
    here.wave.far.join(told.far);
    here.wave.is_published_valid = false;
    return;
  }
  here.wave.pending.join(told.far);
  here.wave.pending.join(store.group(), told.leaf);
  if (here.wave.is_clean) learn_pending(here);
}

// An update follows `store`, and continues what that has released.
void DispatchRaces::continue_store(Sync& sync, const Stamp& store) {
  continue_with(sync, store.group(), told_by(store));
}

void DispatchRaces::continue_with(Sync& sync, uint32_t group, const Told& told) {
  sync.released.join(told.far_to_agent);
  sync.released.join(group, told.leaf);
  if (sync.group != group) {
    sync.group = group;
    sync.local = {};
    sync.far = {};
  }
  sync.local.join(told.local);
  sync.far.join(told.far);
}

}  // namespace uptempo::vgpu::races
