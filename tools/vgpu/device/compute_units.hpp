// Compute units: sets of them, and the places of waves on them.
//
// Numbers: a device has XCDs, an XCD has shader engines with one shader array each. The units of an
// engine that work are numbered from 0, and the units that are fused off come last. The numbers of
// the device count the working units engine by engine and XCD by XCD.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "device/description.hpp"
#include "device/occupancy.hpp"

namespace uptempo::vgpu {

// The compute units on which a queue's workgroups may run: the registers
// COMPUTE_STATIC_THREAD_MGMT_SE0 to SE7 of each XCD as a value. Empty by default.
class ComputeUnitSet {
 public:
  static constexpr unsigned kMaxXcds = 8;
  static constexpr unsigned kMaxEngines = 32;  // of all XCDs
  static constexpr unsigned kMaxUnitsPerEngine = 16;

  static ComputeUnitSet all(const DeviceDescription& device) noexcept;

  // The set that KFD makes of a queue's mask: bits go to the XCDs in turn. The first bits of an XCD
  // are unit 0 of each engine in turn, the next ones unit 1 of each engine, and so on
  // (mqd_symmetrically_map_cu_mask() in Linux's kfd_mqd_manager.c). Bits past the last unit are
  // ignored. Units past the last bit are excluded.
  static ComputeUnitSet of_mask(const DeviceDescription& device,
                                std::span<const uint32_t> mask) noexcept;

  // Bit u: unit u of the engine, counted through all XCDs.
  uint32_t engine(unsigned index) const noexcept { return engines_[index]; }
  bool empty() const noexcept { return size_ == 0; }
  unsigned size() const noexcept { return size_; }
  // Returns the XCD of the workgroup with that turn: workgroups go to the XCDs that have units in
  // the set in turn. Requires a set that is not empty.
  uint32_t xcd_of_turn(const DeviceDescription& device, uint64_t turn) const noexcept;
  unsigned size_in(const DeviceDescription& device, uint32_t xcd) const noexcept;
  // Returns the number on the device of the `index`-th unit of the set in an XCD, in order of
  // numbers. Requires index < size_in(device, xcd).
  uint32_t number_of(const DeviceDescription& device, uint32_t xcd, uint32_t index) const noexcept;

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

  // The place of a workgroup that is alone on unit 0 of engine 0 of XCD 0.
  static WorkgroupPlace alone(unsigned waves) noexcept;

  uint8_t xcd = 0;
  uint8_t engine = 0;  // of the XCD
  uint8_t unit = 0;    // of the engine
  uint8_t group = 0;   // among the unit's workgroups of several waves
  uint8_t waves = 0;
  bool owned = false;  // `needs` is taken of the unit until give_back()
  WorkgroupNeeds needs{};
  std::array<Slot, kMaxWaves> slots{};
};

// The wave slots, registers, LDS and barriers of all compute units.
//
// Placement: workgroups (`turn`) go to the XCDs of the queue's set in turn, within an XCD to its
// engines in turn, and within an engine to its units in turn. A workgroup whose unit has no room
// goes to the next unit of the engine, then to the next engine of the XCD. The waves of a workgroup
// go to the SIMDs with the fewest waves. Occupancy gives the sources of the limits.
//
// Surplus: if no unit has room for it, a workgroup shares the slots of others and owns nothing. That
// is so for a workgroup whose unit is given (take_on), for one whose XCD is full, and for those
// that several workers started at the same time.
//
// Thread safety: all members from any thread.
class WaveSlots {
 public:
  explicit WaveSlots(const DeviceDescription& device);

  // Requires a set that is not empty, and 1 to 16 waves.
  WorkgroupPlace take(const ComputeUnitSet& units, uint64_t turn, const WorkgroupNeeds& needs);
  // On the unit with that number, whether it has room or not.
  WorkgroupPlace take_on(uint32_t compute_unit, const WorkgroupNeeds& needs);
  void give_back(const WorkgroupPlace& place);

  // The number of workgroups that fit beside those that own a place: 0 if none does, otherwise at
  // least 1 and perhaps too few. One load if none owns a place.
  uint64_t room(const ComputeUnitSet& units, const WorkgroupNeeds& needs) const {
    const uint32_t used = used_units_.load(std::memory_order_relaxed);
    return used == 0 ? ~uint64_t{0} : room_beside(units, needs, used);
  }

 private:
  static constexpr unsigned kMaxSimds = 4;
  struct Unit {
    std::array<uint16_t, kMaxSimds> used{};  // bit s: slot s of the SIMD
    std::array<uint16_t, kMaxSimds> vgprs{}, sgprs{};
    uint16_t lds_blocks = 0;
    uint16_t groups = 0;  // bit g: group g
    uint16_t owners = 0;
  };

  // `place` names the unit.
  Unit& unit(const WorkgroupPlace& place) noexcept;
  bool fits_on_simd(const Unit& at, unsigned simd, const WorkgroupNeeds& needs,
                    unsigned before) const noexcept;
  bool has_room(const Unit& at, const WorkgroupNeeds& needs) const noexcept;
  bool try_take(WorkgroupPlace& place, const WorkgroupNeeds& needs);
  uint64_t room_beside(const ComputeUnitSet& units, const WorkgroupNeeds& needs,
                       uint32_t used) const;

  const DeviceDescription& device_;
  mutable std::mutex mutex_;
  std::vector<Unit> units_;
  std::atomic<uint32_t> used_units_{0};  // units with owners; changes under the mutex
};

}  // namespace uptempo::vgpu
