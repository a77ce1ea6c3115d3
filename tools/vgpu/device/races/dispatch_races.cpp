#include "device/races/dispatch_races.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <new>
#include <utility>

#include "device/races/dispatch_state.hpp"

namespace uptempo::vgpu::races {
namespace {

// The offset of the dword with the first byte.
uint64_t lowest(uint64_t bytes) noexcept {
  return static_cast<uint64_t>(std::countr_zero(bytes)) & ~uint64_t{3};
}

// Calls visit(line, mask) for each run of lanes in one line.
template <class Address, class Skips, class Visit>
void for_lines(const Address* address, uint64_t lanes, uint32_t size, Skips skips, Visit visit) {
  constexpr uint64_t kNone = ~uint64_t{0};
  uint64_t line = kNone, mask = 0;
  const uint64_t element = (uint64_t{1} << size) - 1;  // at most 16 bytes
  const auto add = [&](uint64_t begin, uint64_t bytes) {
    if (begin != line) {
      if (mask != 0) visit(line, mask);
      line = begin;
      mask = 0;
    }
    mask |= bytes;
  };
  for (; lanes != 0; lanes &= lanes - 1) {
    const uint64_t at = address[std::countr_zero(lanes)];
    if (skips(at)) continue;
    const uint64_t offset = at % kLineBytes;
    add(at - offset, element << offset);
    if (offset + size > kLineBytes) add(at - offset + kLineBytes, element >> (kLineBytes - offset));
  }
  if (mask != 0) visit(line, mask);
}

// The bytes of a line that a store changes.
template <class Observed, class Address>
uint64_t changed_bytes(const Observed& access, const Address* address, uint64_t line) {
  uint64_t changed = 0;
  const auto visit = [&](uint64_t begin, uint64_t mask) { changed |= begin == line ? mask : 0; };
  for_lines(
      address, access.lanes & access.changing(), access.size_bytes, [](uint64_t) { return false; },
      visit);
  return changed;
}

// Whether two accesses are stores, of which the second one changes none of the bytes.
template <class Observed, class Address>
bool stores_same_values(const Stamp& earlier, const Observed& access, const Address* address,
                        uint64_t line, uint64_t bytes) {
  return earlier.access() == Access::write && access.access == Access::write &&
         (changed_bytes(access, address, line) & bytes) == 0;
}

}  // namespace

DispatchRaces::DispatchRaces(const DispatchShape& shape, Budget& budget)
    : MemoryObserver({.lds = true, .order = true}),
      shape_(shape),
      count_(uint64_t{shape.workgroups[0]} * shape.workgroups[1] * shape.workgroups[2]),
      meter_(budget),
      // calloc: pages of workgroups that never start take no memory
      groups_(count_ > Stamp::kMostGroups ? nullptr
                                          : static_cast<std::atomic<Group*>*>(std::calloc(
                                                count_ + 1, sizeof(std::atomic<Group*>)))),
      shards_(std::make_unique<Shard[]>(kShards)) {
  if (groups_ == nullptr || !meter_.take(count_ * sizeof(std::atomic<Group*>))) lose();
}

DispatchRaces::~DispatchRaces() {
  for (uint64_t i = 0; groups_ != nullptr && i < count_; ++i)
    delete groups_[i].load(std::memory_order_relaxed);  // the workers have ended
  std::free(groups_);
}

uint32_t DispatchRaces::number_of(const std::array<uint32_t, 3>& id) const noexcept {
  return id[0] + shape_.workgroups[0] * (id[1] + shape_.workgroups[1] * id[2]);
}

std::array<uint32_t, 3> DispatchRaces::id_of(uint32_t group) const noexcept {
  const uint32_t x = shape_.workgroups[0], y = shape_.workgroups[1];
  return {group % x, group / x % y, group / x / y};
}

DispatchRaces::Group* DispatchRaces::group_of(uint32_t number) const noexcept {
  if (groups_ == nullptr || number >= count_) return nullptr;
  return groups_[number].load(std::memory_order_acquire);  // acquire: of another worker
}

void DispatchRaces::drop(Group* group) noexcept {
  delete group;
  meter_.give_back(sizeof(Group) + kHeapBytes);
}

// Throws std::bad_alloc where the workgroup is not known: its start was not recorded.
DispatchRaces::At DispatchRaces::at(const std::array<uint32_t, 3>& group, uint32_t wave) {
  Group* const found = group_of(number_of(group));
  if (found == nullptr || wave >= found->waves.size()) throw std::bad_alloc();
  return {*found, found->waves[wave], wave};
}

// Without all accesses, order between the others may be missing: the history is of no more use.
void DispatchRaces::drop_shadow() noexcept {
  for (size_t i = 0; i < kShards; ++i) {
    Shard& shard = shards_[i];
    const std::lock_guard lock(shard.mutex);
    shard.pages.clear();
    meter_.give_back(std::exchange(shard.taken, 0));
  }
}

bool DispatchRaces::compatible(const Stamp& one, const Stamp& other) const noexcept {
  if (one.reach() != Reach::plain && other.reach() != Reach::plain)
    return one.group() == other.group() ||
           (one.reach() == Reach::agent && other.reach() == Reach::agent);
  if (shape_.stores_name_scope || (one.reach() == Reach::plain && other.reach() == Reach::plain))
    return false;
  const Stamp& plain = one.reach() == Reach::plain ? one : other;
  const Stamp& atomic = one.reach() == Reach::plain ? other : one;
  // An atomic store is the same instruction as a plain one. One that releases something waits
  // first.
  return plain.access() == Access::write && (!atomic.is_atomic_update() || plain.released());
}

// Whether the access may be a plain store as well as an atomic one.
bool DispatchRaces::is_any_store(const Stamp& stamp) const noexcept {
  return !shape_.stores_name_scope && stamp.reach() == Reach::plain &&
         stamp.access() == Access::write;
}

template <class Visit>
void DispatchRaces::for_places(const ObservedAccess& access, Visit visit) {
  Lines lines(*this);
  GpuAddress last = ~GpuAddress{0};
  for (uint64_t lanes = access.lanes; lanes != 0; lanes &= lanes - 1) {
    const GpuAddress address = access.address[std::countr_zero(lanes)] & ~GpuAddress{3};
    if (address == last || is_scratch(address)) continue;
    visit(lines, address);
    last = address;
  }
}

void DispatchRaces::record(const ObservedAccess& access) {
  const At here = at(access.workgroup, access.wave);
  Wave& wave = here.wave;
  const Reach reach = access.scalar || access.scope == AccessScope::wave ? Reach::plain
                      : access.scope == AccessScope::workgroup           ? Reach::workgroup
                                                                         : Reach::agent;
  const bool updates = access.access == Access::atomic;
  const bool synchronises = updates || (reach != Reach::plain && access.access == Access::write);
  if (synchronises) wave.end_global();  // what precedes it is released, it is not
  const bool releases = access.access == Access::write && !wave.accessed_global &&
                        wave.done_global != 0 && wave.done_global == wave.now_global - 1;
  const Stamp stamp = Stamp::of(here.group.number, here.index, wave.now_global, access.instruction,
                                access.access, reach, releases);
  if (updates && access.returns && reach == Reach::agent) wave.returned = stamp.clock;
  Ref<const Release> release;
  if (synchronises) release = release_of(here, reach == Reach::agent);
  if (!shape_.stores_name_scope && access.access == Access::write) note_store(here);
  wave.accessed_global = true;
  if (access.access == Access::read && reach == Reach::plain) {
    const auto first = static_cast<unsigned>(std::countr_zero(access.lanes));
    if (!is_scratch(access.address[first]))
      wave.loads.load(expected_loads_, stamp.place, access.scalar, false, access.size_bytes,
                      access.lanes, access.address);
  } else if (access.compares) {
    wave.loads.compare_and_swap(expected_loads_, false, access.size_bytes, access.lanes,
                                access.address);
  }
  const bool fills_l1 = access.access == Access::read && reach != Reach::agent && !access.scalar;
  std::vector<Race> races;
  Lines lines(*this);
  const auto visit = [&](GpuAddress begin, uint64_t mask) {
    if (fills_l1) wave.load(begin);
    Line* const line = lines.line(begin);
    if (line == nullptr) return;
    // With the lock held until the access is recorded, so that no store comes between.
    for (uint64_t left = synchronises ? mask : 0; left != 0;
         left &= ~(uint64_t{15} << lowest(left))) {
      Sync* const sync = lines.sync(begin + lowest(left), true);
      if (sync == nullptr) return;
      const size_t before = sync->allocated_bytes();
      if (updates && !shape_.stores_name_scope) {
        // An update follows the store, and continues what that has released.
        const Stamp store = line->last_write(static_cast<unsigned>(lowest(left)));
        if (store.clock != 0 && store.reach() == Reach::plain) sync->release(release_of(store));
      }
      sync->release(release);
      lines.take_more(*sync, before);
    }
    const size_t before = line->allocated_bytes();
    line->access(
        mask, stamp, [&](const Stamp& earlier) { return here.knows(earlier); },
        [&](const Stamp& earlier, const Stamp& update, uint64_t bytes) {
          if (compatible(earlier, stamp)) return false;
          if (earlier.is_atomic_update() && here.follows(update)) return true;
          bool may_be_atomic = false;
          if (is_any_store(earlier) || is_any_store(stamp)) {
            const Sync* const sync = lines.sync(begin + lowest(bytes), false);
            const bool is_place = sync != nullptr && sync->is_used();
            // Two stores that release, of a place that atomic operations access, too.
            if (is_place && earlier.released() && stamp.released()) return false;
            may_be_atomic = is_place && earlier.writes() && stamp.writes();
          }
          const bool same_values =
              !access.scalar && stores_same_values(earlier, access, access.address, begin, bytes);
          races.push_back({earlier, begin, bytes, may_be_atomic, same_values});
          return true;
        });
    lines.take_more(*line, before);
  };
  if (access.scalar) {
    for (GpuAddress at = access.address[0], end = at + access.size_bytes; at < end;) {
      const GpuAddress offset = at % kLineBytes, bytes = std::min(end - at, kLineBytes - offset);
      visit(at - offset, ((bytes == kLineBytes ? 0 : uint64_t{1} << bytes) - 1) << offset);
      at += bytes;
    }
  } else {
    for_lines(
        access.address, access.lanes, access.size_bytes,
        [&](GpuAddress address) { return is_scratch(address); }, visit);
  }
  if (races.empty()) return;
  lines.unlock();  // pending places are in other shards
  join_places(wave.pending);
  if (wave.shares_pending) join_places(here.group.shared);
  for (const Race& race : races) add(here, race, stamp, false);
}

void DispatchRaces::access(const ObservedAccess& access) noexcept {
  if (is_incomplete()) return;
  if (!with_memory([&] { record(access); })) lose();
}

void DispatchRaces::accessed(const ObservedAccess& access) noexcept {
  if (is_incomplete() || (access.access == Access::atomic && !access.returns)) return;
  const bool done = with_memory([&] {
    const At here = at(access.workgroup, access.wave);
    bool any = false, is_clean = true;
    for_places(access, [&](Lines& lines, GpuAddress address) {
      any = true;
      is_clean = is_clean && here.wave.is_clean_but_for(address);
      acquire(here, lines, address);
      if (shape_.stores_name_scope) return;
      const Stamp store = lines.last_write(address);
      if (store.clock != 0 && store.reach() == Reach::plain && store.number() != here.number())
        acquire_store(here, store);
    });
    if (any && is_clean) learn_pending(here);
  });
  if (!done) lose();
}

void DispatchRaces::synchronise_in_lds(const At& here, const ObservedLdsAccess& access) {
  Wave& wave = here.wave;
  uint32_t last = ~0u;
  for (uint64_t lanes = access.lanes; lanes != 0; lanes &= lanes - 1) {
    const uint32_t offset = access.offset[std::countr_zero(lanes)];
    if (offset == last) continue;
    last = offset;
    Group::LdsSync& sync = here.group.lds_syncs[offset];
    Local own = wave.seen;
    own.global[here.index] = wave.end_global();
    own.lds[here.index] = wave.end_lds();  // LDS executes in order
    bool is_new = access.returns && wave.seen.join(sync.local);
    sync.local.join(own);
    const bool done = is_incomplete() || with_memory([&] {
                        const FarClock told = wave.far;
                        if (access.returns) is_new |= wave.far.join(sync.far, meter_);
                        sync.far.join(told, meter_);
                      });
    if (!done) lose();
    if (is_new) wave.learned();
  }
}

void DispatchRaces::record(const ObservedLdsAccess& access) {
  const At here = at(access.workgroup, access.wave);
  Wave& wave = here.wave;
  if (here.group.waves.size() == 1 || here.group.is_lds_lost) return;
  const bool updates = access.access == Access::atomic;
  if (updates) synchronise_in_lds(here, access);
  const Stamp stamp = Stamp::of(here.group.number, here.index, wave.now_lds, access.instruction,
                                access.access, updates ? Reach::workgroup : Reach::plain, false);
  wave.accessed_lds = true;
  if (access.access == Access::read) {
    wave.loads.load(expected_loads_, stamp.place, false, true, access.size_bytes, access.lanes,
                    access.offset);
  } else if (access.compares) {
    wave.loads.compare_and_swap(expected_loads_, true, access.size_bytes, access.lanes,
                                access.offset);
  }
  auto& lines = here.group.lds;
  if (lines.empty()) lines.resize((access.segment_bytes + kLineBytes - 1) / kLineBytes);
  for_lines(
      access.offset, access.lanes, access.size_bytes,
      [&](uint64_t offset) { return offset + access.size_bytes > access.segment_bytes; },
      [&](uint64_t begin, uint64_t mask) {
        Line& line = lines[begin / kLineBytes];
        const size_t before = line.allocated_bytes();
        line.access(
            mask, stamp,
            [&](const Stamp& earlier) { return wave.seen.lds[earlier.wave()] >= earlier.clock; },
            [&](const Stamp& earlier, const Stamp&, uint64_t bytes) {
              if (updates && earlier.is_atomic_update()) return false;
              const bool same_values =
                  stores_same_values(earlier, access, access.offset, begin, bytes);
              add(here, {earlier, begin, bytes, false, same_values}, stamp, true);
              return true;
            });
        const size_t parts = line.allocated_bytes() - before;
        if (parts == 0) return;
        if (!meter_.take(parts)) throw std::bad_alloc();
        here.group.lds_parts += parts;
      });
}

void DispatchRaces::lds_access(const ObservedLdsAccess& access) noexcept {
  if (with_memory([&] { record(access); })) return;
  lose();
  if (Group* const group = group_of(number_of(access.workgroup))) group->is_lds_lost = true;
}

Finding::Side DispatchRaces::side(const Stamp& stamp) const noexcept {
  // The code of a kernel is near its entry.
  constexpr int kBits = 34;
  const GpuAddress low = GpuAddress{stamp.place} << 2;
  auto distance = static_cast<int64_t>((low - shape_.entry) << (64 - kBits)) >> (64 - kBits);
  return {.access = stamp.access(),
          .reach = stamp.reach(),
          .instruction = shape_.entry + static_cast<GpuAddress>(distance),
          .workgroup = id_of(stamp.group()),
          .wave = stamp.wave()};
}

Finding::Reason DispatchRaces::reason_of(const At& here, const Stamp& earlier,
                                         const Stamp& stamp) const noexcept {
  using enum Finding::Reason;
  if (earlier.group() == here.group.number) return barrier;
  if (earlier.reach() != Reach::plain && stamp.reach() != Reach::plain) return scope;
  const Wave& wave = here.wave;
  bool is_group_told = false, is_wave_told = false, is_other_told = false;
  const FarClock none;
  for (const FarClock* clock : {&wave.far, &std::as_const(wave.pending.far),
                                wave.shares_pending ? &here.group.shared.far : &none}) {
    const FarClock::Leaf* const leaf = clock->leaf(earlier.group());
    if (leaf == nullptr) continue;
    if ((*leaf)[earlier.wave()] >= earlier.clock) return acquire;
    is_group_told = true;
    is_wave_told |= (*leaf)[earlier.wave()] != 0;
    is_other_told |= *leaf != FarClock::Leaf{};
  }
  if (!is_group_told) return order;
  return is_wave_told || !is_other_told ? release : release_of_other;
}

void DispatchRaces::add(const At& here, const Race& race, const Stamp& stamp, bool lds) noexcept {
  if (!lds && is_incomplete()) return;
  const Stamp& earlier = race.earlier;
  Finding finding{.reason = reason_of(here, earlier, stamp),
                  .writer = side(earlier),
                  .other = side(stamp),
                  .lds = lds,
                  .may_be_atomic = race.may_be_atomic,
                  .same_values = race.same_values,
                  .address = race.line + static_cast<uint64_t>(std::countr_zero(race.bytes)),
                  .bytes = static_cast<uint32_t>(std::popcount(race.bytes)),
                  .times = 1};
  const auto first = [](const Finding::Side& one, const Finding::Side& other) {
    return one.instruction != other.instruction ? one.instruction < other.instruction : one < other;
  };
  const bool both = earlier.writes() && stamp.writes();
  if (both ? first(finding.other, finding.writer) : stamp.writes())
    std::swap(finding.writer, finding.other);
  const auto done = with_memory([&] {
    const std::lock_guard lock(findings_mutex_);
    const auto [place, is_new] = findings_.try_emplace(
        {lds, finding.writer.instruction, finding.other.instruction, finding.same_values}, finding);
    if (is_new) return;
    // The lowest address, so that runs agree.
    finding.times += place->second.times;
    const bool lower = std::tie(finding.address, finding.writer, finding.other) <
                       std::tie(place->second.address, place->second.writer, place->second.other);
    if (lower)
      place->second = finding;
    else
      place->second.times = finding.times;
  });
  if (!done) lose();
}

std::vector<Finding> DispatchRaces::take_findings() {
  const std::lock_guard lock(findings_mutex_);
  std::vector<Finding> list;
  for (auto& [key, finding] : findings_) {
    const bool with_atomic =
        finding.writer.access == Access::atomic && finding.other.access == Access::read;
    const auto place = static_cast<uint32_t>(finding.other.instruction / 4);
    if (with_atomic && expected_loads_.belong_to_atomics(place)) continue;
    // The same pair has also stored different values.
    if (finding.same_values && findings_.contains({finding.lds, finding.writer.instruction,
                                                   finding.other.instruction, false}))
      continue;
    list.push_back(finding);
  }
  findings_.clear();
  return list;
}

}  // namespace uptempo::vgpu::races
