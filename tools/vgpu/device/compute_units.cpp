#include "device/compute_units.hpp"

#include <algorithm>
#include <bit>

namespace uptempo::vgpu {
namespace {

unsigned units_per_engine(const DeviceDescription& device) noexcept {
  return device.compute_units / device.shader_engines;
}

// Returns the position of the `index`-th set bit. Requires that it exists.
unsigned nth_bit(uint32_t bits, unsigned index) noexcept {
  for (; index != 0; --index) bits &= bits - 1;
  return static_cast<unsigned>(std::countr_zero(bits));
}

}  // namespace

ComputeUnitSet ComputeUnitSet::all(const DeviceDescription& device) noexcept {
  ComputeUnitSet set;
  std::fill_n(set.engines_.begin(), device.shader_engines,
              static_cast<uint16_t>((1u << units_per_engine(device)) - 1));
  set.size_ = static_cast<uint16_t>(device.compute_units);
  return set;
}

ComputeUnitSet ComputeUnitSet::of_mask(const DeviceDescription& device,
                                       std::span<const uint32_t> mask) noexcept {
  ComputeUnitSet set;
  const size_t bits = std::min<size_t>(mask.size() * 32, device.compute_units);
  for (size_t bit = 0; bit < bits; ++bit) {
    if ((mask[bit / 32] >> bit % 32 & 1) == 0) continue;
    uint16_t& engine = set.engines_[bit % device.shader_engines];
    engine = static_cast<uint16_t>(engine | 1u << bit / device.shader_engines);
    ++set.size_;
  }
  return set;
}

uint32_t ComputeUnitSet::number_of(const DeviceDescription& device, uint32_t index) const noexcept {
  unsigned at = 0;
  for (; at + 1 < kMaxEngines; ++at) {
    const auto units = static_cast<uint32_t>(std::popcount(engines_[at]));
    if (index < units) break;
    index -= units;
  }
  return at * units_per_engine(device) + nth_bit(engines_[at], index);
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
    : units_per_engine_(units_per_engine(device)),
      simds_(device.simds_per_compute_unit),
      slots_per_simd_(device.max_waves_per_simd),
      units_(device.compute_units) {}

// Each wave takes the SIMD with the most free slots, so a workgroup on an idle unit uses its SIMDs
// in turn.
bool WaveSlots::try_take(unsigned engine, unsigned index, unsigned waves, WorkgroupPlace& place) {
  Unit& at = unit(engine, index);
  unsigned used = 0;
  for (const uint16_t simd : at.used) used += static_cast<unsigned>(std::popcount(simd));
  if (used + waves > simds_ * slots_per_simd_) return false;
  // A workgroup of one wave needs no barrier, so it takes none of the unit's groups.
  const auto group = static_cast<unsigned>(std::countr_one(at.groups));
  if (waves > 1 && group == kGroupsPerUnit) return false;

  place.engine = static_cast<uint8_t>(engine);
  place.unit = static_cast<uint8_t>(index);
  place.waves = static_cast<uint8_t>(waves);
  place.owned = true;
  if (waves > 1) {
    place.group = static_cast<uint8_t>(group);
    at.groups = static_cast<uint16_t>(at.groups | 1u << group);
  }
  for (unsigned wave = 0; wave < waves; ++wave) {
    const auto least = std::min_element(
        at.used.begin(), at.used.begin() + simds_,
        [](uint16_t one, uint16_t other) { return std::popcount(one) < std::popcount(other); });
    const auto slot = static_cast<unsigned>(std::countr_one(*least));
    *least = static_cast<uint16_t>(*least | 1u << slot);
    place.slots[wave] = {static_cast<uint8_t>(least - at.used.begin()), static_cast<uint8_t>(slot)};
  }
  return true;
}

WorkgroupPlace WaveSlots::take(const ComputeUnitSet& units, uint64_t turn, unsigned waves) {
  std::array<uint8_t, ComputeUnitSet::kMaxEngines> engines;  // those of the set
  unsigned count = 0;
  for (unsigned engine = 0; engine < engines.size(); ++engine)
    if (units.engine(engine) != 0) engines[count++] = static_cast<uint8_t>(engine);

  const std::lock_guard lock(mutex_);
  WorkgroupPlace place;
  for (unsigned engine = 0; engine < count; ++engine) {
    const unsigned tried = engines[(turn + engine) % count];
    const auto size = static_cast<unsigned>(std::popcount(units.engine(tried)));
    for (unsigned next = 0; next < size; ++next) {
      const auto index = static_cast<unsigned>((turn / count + next) % size);
      if (try_take(tried, nth_bit(units.engine(tried), index), waves, place)) return place;
    }
  }
  const unsigned engine = engines[turn % count];
  const auto size = static_cast<unsigned>(std::popcount(units.engine(engine)));
  place = WorkgroupPlace::alone(waves);
  place.engine = static_cast<uint8_t>(engine);
  place.unit = static_cast<uint8_t>(
      nth_bit(units.engine(engine), static_cast<unsigned>(turn / count % size)));
  return place;
}

WorkgroupPlace WaveSlots::take_on(uint32_t compute_unit, unsigned waves) {
  const unsigned engine = compute_unit / units_per_engine_;
  const unsigned index = compute_unit % units_per_engine_;
  const std::lock_guard lock(mutex_);
  WorkgroupPlace place;
  if (try_take(engine, index, waves, place)) return place;
  place = WorkgroupPlace::alone(waves);
  place.engine = static_cast<uint8_t>(engine);
  place.unit = static_cast<uint8_t>(index);
  return place;
}

void WaveSlots::give_back(const WorkgroupPlace& place) {
  if (!place.owned) return;
  const std::lock_guard lock(mutex_);
  Unit& at = unit(place.engine, place.unit);
  for (unsigned wave = 0; wave < place.waves; ++wave) {
    uint16_t& used = at.used[place.slots[wave].simd];
    used = static_cast<uint16_t>(used & ~(1u << place.slots[wave].index));
  }
  if (place.waves > 1) at.groups = static_cast<uint16_t>(at.groups & ~(1u << place.group));
}

}  // namespace uptempo::vgpu
