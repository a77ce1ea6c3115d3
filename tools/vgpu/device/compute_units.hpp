// Compute units: sets of them, and the places of waves on them.
//
// Numbers: a device has shader engines with one shader array each. The units of an engine that work
// are numbered from 0, and the units that are fused off come last. Unit u of engine e is number
// e * (working units of an engine) + u of the device.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "device/description.hpp"

namespace uptempo::vgpu {

// The compute units on which a queue's workgroups may run: the registers
// COMPUTE_STATIC_THREAD_MGMT_SE0 to SE7 as a value. Empty by default.
class ComputeUnitSet {
 public:
  static constexpr unsigned kMaxEngines = 8;
  static constexpr unsigned kMaxUnitsPerEngine = 16;

  static ComputeUnitSet all(const DeviceDescription& device) noexcept;

  // The set that KFD makes of a queue's mask: the first bits are unit 0 of each engine in turn, the
  // next ones unit 1 of each engine, and so on (mqd_symmetrically_map_cu_mask() in Linux's
  // kfd_mqd_manager.c). Bits past the last unit are ignored. Units past the last bit are excluded.
  static ComputeUnitSet of_mask(const DeviceDescription& device,
                                std::span<const uint32_t> mask) noexcept;

  // Bit u: unit u of the engine.
  uint32_t engine(unsigned index) const noexcept { return engines_[index]; }
  bool empty() const noexcept { return size_ == 0; }
  unsigned size() const noexcept { return size_; }
  // Returns the number on the device of the `index`-th unit of the set, in order of numbers.
  // Requires index < size().
  uint32_t number_of(const DeviceDescription& device, uint32_t index) const noexcept;

  friend bool operator==(const ComputeUnitSet&, const ComputeUnitSet&) = default;

 private:
  std::array<uint16_t, kMaxEngines> engines_{};
  uint16_t size_ = 0;
};

// The place of a workgroup: one compute unit, and a slot on one of its SIMDs for each wave.
struct WorkgroupPlace {
  static constexpr unsigned kMaxWaves = 16;
  struct Slot {
    uint8_t simd = 0;
    uint8_t index = 0;  // on the SIMD
  };

  // The place of a workgroup that is alone on unit 0 of engine 0.
  static WorkgroupPlace alone(unsigned waves) noexcept;

  uint8_t engine = 0;
  uint8_t unit = 0;   // of the engine
  uint8_t group = 0;  // among the unit's workgroups of several waves
  uint8_t waves = 0;
  bool owned = false;  // the slots are taken until give_back()
  std::array<Slot, kMaxWaves> slots{};
};

// The wave slots of all compute units.
//
// Placement: workgroups in the order in which they start (`turn`) go to the engines of the queue's
// set in turn, and within an engine to its units in turn. A workgroup whose unit has no room goes
// to the next unit of the engine, then to the next engine. A unit has room for a workgroup while it
// has a free slot for each wave and fewer than 16 workgroups of several waves.
//
// Limits: LDS and registers are not counted. The scheduler may keep more waves resident than the
// set has slots, because every dispatch makes progress. The surplus workgroups share the slots of
// others, like workgroups of a queue that the hardware has switched out.
//
// Thread safety: all members from any thread.
class WaveSlots {
 public:
  explicit WaveSlots(const DeviceDescription& device);

  // Requires a set that is not empty, and 1 to 16 waves.
  WorkgroupPlace take(const ComputeUnitSet& units, uint64_t turn, unsigned waves);
  // On the unit with that number, whether it has room or not.
  WorkgroupPlace take_on(uint32_t compute_unit, unsigned waves);
  void give_back(const WorkgroupPlace& place);

 private:
  static constexpr unsigned kMaxSimds = 4;
  static constexpr unsigned kGroupsPerUnit = 16;
  struct Unit {
    std::array<uint16_t, kMaxSimds> used{};  // bit s: slot s of the SIMD
    uint16_t groups = 0;                     // bit g: group g
  };

  Unit& unit(unsigned engine, unsigned index) noexcept {
    return units_[engine * units_per_engine_ + index];
  }
  bool try_take(unsigned engine, unsigned index, unsigned waves, WorkgroupPlace& place);

  const unsigned units_per_engine_;
  const unsigned simds_;
  const unsigned slots_per_simd_;
  std::mutex mutex_;
  std::vector<Unit> units_;
};

}  // namespace uptempo::vgpu
