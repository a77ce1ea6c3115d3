#include "device/compute_units.hpp"

#include <algorithm>
#include <bit>

namespace uptempo::vgpu {
namespace {

// Number of the first unit of an engine of an XCD.
uint32_t first_unit(const DeviceDescription& device, uint32_t xcd, uint32_t engine) noexcept {
  uint32_t number = xcd * device.units_per_xcd();
  for (uint32_t before = 0; before < engine; ++before) number += device.units_of_engine(before);
  return number;
}

// Returns the position of the `index`-th set bit. Requires that it exists.
unsigned nth_bit(uint32_t bits, unsigned index) noexcept {
  for (; index != 0; --index) bits &= bits - 1;
  return static_cast<unsigned>(std::countr_zero(bits));
}

}  // namespace

ComputeUnitSet ComputeUnitSet::all(const DeviceDescription& device) noexcept {
  ComputeUnitSet set;
  for (uint32_t engine = 0; engine < device.shader_engines; ++engine)
    set.engines_[engine] = static_cast<uint16_t>(
        (1u << device.units_of_engine(engine % device.engines_per_xcd())) - 1);
  set.size_ = static_cast<uint16_t>(device.compute_units);
  return set;
}

ComputeUnitSet ComputeUnitSet::of_mask(const DeviceDescription& device,
                                       std::span<const uint32_t> mask) noexcept {
  ComputeUnitSet set;
  const size_t bits = std::min<size_t>(mask.size() * 32, device.compute_units);
  for (uint32_t xcd = 0; xcd < device.xcds; ++xcd) {
    size_t bit = xcd;
    for (uint32_t unit = 0; unit < kMaxUnitsPerEngine; ++unit) {
      for (uint32_t engine = 0; engine < device.engines_per_xcd(); ++engine) {
        if (unit >= device.units_of_engine(engine)) continue;
        if (bit < bits && (mask[bit / 32] >> bit % 32 & 1) != 0) {
          uint16_t& units = set.engines_[xcd * device.engines_per_xcd() + engine];
          units = static_cast<uint16_t>(units | 1u << unit);
          ++set.size_;
        }
        bit += device.xcds;
      }
    }
  }
  return set;
}

unsigned ComputeUnitSet::size_in(const DeviceDescription& device, uint32_t xcd) const noexcept {
  unsigned size = 0;
  for (uint32_t engine = 0; engine < device.engines_per_xcd(); ++engine)
    size += static_cast<unsigned>(std::popcount(engines_[xcd * device.engines_per_xcd() + engine]));
  return size;
}

uint32_t ComputeUnitSet::xcd_of_turn(const DeviceDescription& device,
                                     uint64_t turn) const noexcept {
  if (device.xcds == 1) return 0;
  std::array<uint8_t, kMaxXcds> xcds;
  uint32_t count = 0;
  for (uint32_t xcd = 0; xcd < device.xcds; ++xcd)
    if (size_in(device, xcd) != 0) xcds[count++] = static_cast<uint8_t>(xcd);
  return xcds[turn % count];
}

uint32_t ComputeUnitSet::number_of(const DeviceDescription& device, uint32_t xcd,
                                   uint32_t index) const noexcept {
  const uint32_t first = xcd * device.engines_per_xcd();
  uint32_t engine = 0;
  for (; engine + 1 < device.engines_per_xcd(); ++engine) {
    const auto units = static_cast<uint32_t>(std::popcount(engines_[first + engine]));
    if (index < units) break;
    index -= units;
  }
  return first_unit(device, xcd, engine) + nth_bit(engines_[first + engine], index);
}

WorkgroupPlace WorkgroupPlace::alone(unsigned waves) noexcept {
  constexpr unsigned kSimds = 4;
  WorkgroupPlace place;
  place.waves = static_cast<uint8_t>(waves);
  for (unsigned wave = 0; wave < waves; ++wave)
    place.slots[wave] = {static_cast<uint8_t>(wave % kSimds), static_cast<uint8_t>(wave / kSimds)};
  return place;
}

WaveSlots::WaveSlots(const DeviceDescription& device)
    : device_(device), units_(device.compute_units) {}

WaveSlots::Unit& WaveSlots::unit(const WorkgroupPlace& place) noexcept {
  return units_[first_unit(device_, place.xcd, place.engine) + place.unit];
}

// Whether the SIMD has room for a wave, if it gets `before` others of the workgroup first.
bool WaveSlots::fits_on_simd(const Unit& at, unsigned simd, const WorkgroupNeeds& needs,
                             unsigned before) const noexcept {
  const unsigned waves = before + 1;
  return static_cast<unsigned>(std::popcount(at.used[simd])) + waves <=
             device_.max_waves_per_simd &&
         at.vgprs[simd] + waves * needs.vgprs <= vgprs_per_simd(device_) &&
         at.sgprs[simd] + waves * needs.sgprs <= kSgprsPerSimd;
}

bool WaveSlots::has_room(const Unit& at, const WorkgroupNeeds& needs) const noexcept {
  if (at.lds_blocks + needs.lds_blocks > lds_blocks_per_unit(device_)) return false;
  // A workgroup of one wave needs no barrier, so it takes none of the unit's groups.
  if (needs.waves > 1 && std::countr_one(at.groups) == kBarriersPerUnit) return false;
  unsigned waves = 0;
  for (unsigned simd = 0; simd < device_.simds_per_compute_unit; ++simd)
    for (unsigned on_simd = 0; waves < needs.waves && fits_on_simd(at, simd, needs, on_simd);
         ++on_simd)
      ++waves;
  return waves == needs.waves;
}

// Each wave takes the SIMD with the most free slots among those that have room for it, so a
// workgroup on an idle unit uses its SIMDs in turn.
bool WaveSlots::try_take(WorkgroupPlace& place, const WorkgroupNeeds& needs) {
  Unit& at = unit(place);
  if (!has_room(at, needs)) return false;
  place.waves = static_cast<uint8_t>(needs.waves);
  place.owned = true;
  place.needs = needs;
  if (needs.waves > 1) {
    place.group = static_cast<uint8_t>(std::countr_one(at.groups));
    at.groups = static_cast<uint16_t>(at.groups | 1u << place.group);
  }
  at.lds_blocks = static_cast<uint16_t>(at.lds_blocks + needs.lds_blocks);
  if (at.owners++ == 0) used_units_.fetch_add(1, std::memory_order_relaxed);
  for (unsigned wave = 0; wave < needs.waves; ++wave) {
    unsigned least = kMaxSimds;
    for (unsigned simd = 0; simd < device_.simds_per_compute_unit; ++simd)
      if (fits_on_simd(at, simd, needs, 0) &&
          (least == kMaxSimds || std::popcount(at.used[simd]) < std::popcount(at.used[least])))
        least = simd;
    const auto slot = static_cast<unsigned>(std::countr_one(at.used[least]));
    at.used[least] = static_cast<uint16_t>(at.used[least] | 1u << slot);
    at.vgprs[least] = static_cast<uint16_t>(at.vgprs[least] + needs.vgprs);
    at.sgprs[least] = static_cast<uint16_t>(at.sgprs[least] + needs.sgprs);
    place.slots[wave] = {static_cast<uint8_t>(least), static_cast<uint8_t>(slot)};
  }
  return true;
}

WorkgroupPlace WaveSlots::take(const ComputeUnitSet& units, uint64_t turn,
                               const WorkgroupNeeds& needs) {
  const uint32_t xcd = units.xcd_of_turn(device_, turn);
  turn /= device_.xcds;
  std::array<uint8_t, ComputeUnitSet::kMaxEngines> engines;  // those of the set
  unsigned count = 0;
  for (unsigned engine = 0; engine < device_.engines_per_xcd(); ++engine)
    if (units.engine(xcd * device_.engines_per_xcd() + engine) != 0)
      engines[count++] = static_cast<uint8_t>(engine);
  const auto units_of = [&](unsigned engine) {
    return units.engine(xcd * device_.engines_per_xcd() + engine);
  };

  const std::lock_guard lock(mutex_);
  const auto place_on = [&](unsigned engine, unsigned index, WorkgroupPlace place) {
    place.xcd = static_cast<uint8_t>(xcd);
    place.engine = static_cast<uint8_t>(engine);
    place.unit = static_cast<uint8_t>(nth_bit(units_of(engine), index));
    return place;
  };
  for (unsigned tried = 0; tried < count; ++tried) {
    const unsigned engine = engines[(turn + tried) % count];
    const auto size = static_cast<unsigned>(std::popcount(units_of(engine)));
    for (unsigned next = 0; next < size; ++next) {
      const auto index = static_cast<unsigned>((turn / count + next) % size);
      WorkgroupPlace place = place_on(engine, index, {});
      if (try_take(place, needs)) return place;
    }
  }
  const unsigned engine = engines[turn % count];
  const auto size = static_cast<unsigned>(std::popcount(units_of(engine)));
  return place_on(engine, static_cast<unsigned>(turn / count % size),
                  WorkgroupPlace::alone(needs.waves));
}

WorkgroupPlace WaveSlots::take_on(uint32_t compute_unit, const WorkgroupNeeds& needs) {
  const uint32_t xcd = compute_unit / device_.units_per_xcd();
  uint32_t unit = compute_unit % device_.units_per_xcd(), engine = 0;
  for (; unit >= device_.units_of_engine(engine); ++engine) unit -= device_.units_of_engine(engine);
  const auto place_there = [&](WorkgroupPlace place) {
    place.xcd = static_cast<uint8_t>(xcd);
    place.engine = static_cast<uint8_t>(engine);
    place.unit = static_cast<uint8_t>(unit);
    return place;
  };
  const std::lock_guard lock(mutex_);
  WorkgroupPlace place = place_there({});
  return try_take(place, needs) ? place : place_there(WorkgroupPlace::alone(needs.waves));
}

void WaveSlots::give_back(const WorkgroupPlace& place) {
  if (!place.owned) return;
  const WorkgroupNeeds& needs = place.needs;
  const std::lock_guard lock(mutex_);
  Unit& at = unit(place);
  for (unsigned wave = 0; wave < place.waves; ++wave) {
    const auto [simd, slot] = place.slots[wave];
    at.used[simd] = static_cast<uint16_t>(at.used[simd] & ~(1u << slot));
    at.vgprs[simd] = static_cast<uint16_t>(at.vgprs[simd] - needs.vgprs);
    at.sgprs[simd] = static_cast<uint16_t>(at.sgprs[simd] - needs.sgprs);
  }
  at.lds_blocks = static_cast<uint16_t>(at.lds_blocks - needs.lds_blocks);
  if (place.waves > 1) at.groups = static_cast<uint16_t>(at.groups & ~(1u << place.group));
  if (--at.owners == 0) used_units_.fetch_sub(1, std::memory_order_relaxed);
}

uint64_t WaveSlots::room_beside(const ComputeUnitSet& units, const WorkgroupNeeds& needs,
                                uint32_t used) const {
  // Units outside of the set count as used.
  const uint32_t outside = device_.compute_units - units.size();
  if (used + outside < device_.compute_units) return units.size() - used;
  const std::lock_guard lock(mutex_);
  size_t number = 0;
  for (unsigned engine = 0; engine < device_.shader_engines; ++engine)
    for (unsigned unit = 0; unit < device_.units_of_engine(engine % device_.engines_per_xcd());
         ++unit, ++number)
      if ((units.engine(engine) >> unit & 1) != 0 && has_room(units_[number], needs)) return 1;
  return 0;
}

}  // namespace uptempo::vgpu
