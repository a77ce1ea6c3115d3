// Workgroups that a compute unit holds. The expected numbers are computed by hand from the limits
// that LLVM's AMDGPUBaseInfo.cpp and the ISA guides state for a unit: LDS of 64 KiB in blocks of
// 512 bytes, 4 SIMDs of 8 (gfx90a, gfx942) or 10 waves, 512 or 256 VGPRs, 800 SGPRs, 16 barriers.
#include "device/occupancy.hpp"

#include <string>
#include <vector>

#include "device/compute_units.hpp"
#include "test/support/catch.hpp"

namespace uptempo::vgpu {
namespace {

const DeviceDescription& described(std::string_view target) {
  return *find_device_description(target);
}

WorkgroupNeeds needs(unsigned waves, unsigned lds_bytes, unsigned vgprs, unsigned sgprs = 16) {
  return {.waves = static_cast<uint16_t>(waves),
          .lds_blocks = WorkgroupNeeds::lds_blocks_of(lds_bytes),
          .vgprs = static_cast<uint16_t>(vgprs),
          .sgprs = static_cast<uint16_t>(sgprs)};
}

struct OccupancyCase {
  WorkgroupNeeds needs;
  unsigned on_gfx90a, on_gfx908;
};
const std::vector<OccupancyCase> kOccupancyCases{
    //     waves LDS    VGPRs SGPRs   gfx90a          gfx908
    {needs(1, 0, 8), 32, 40},       // wave slots
    {needs(2, 0, 8), 16, 16},       // barriers, and wave slots of gfx90a
    {needs(3, 0, 8), 10, 13},       // wave slots
    {needs(16, 0, 8), 2, 2},        // wave slots
    {needs(1, 65536, 8), 1, 1},     // LDS
    {needs(1, 32768, 8), 2, 2},     // LDS
    {needs(1, 32769, 8), 1, 1},     // LDS, of which a block begins
    {needs(4, 513, 8), 8, 10},      // wave slots; LDS would do for 64
    {needs(1, 0, 256), 8, 4},       // VGPRs: 2 or 1 waves a SIMD
    {needs(1, 0, 72), 28, 12},      // VGPRs: 7 or 3 waves a SIMD
    {needs(3, 0, 128), 5, 2},       // VGPRs: 16 or 8 waves
    {needs(16, 0, 128), 1, 0},      // VGPRs: 8 waves do not suffice
    {needs(1, 0, 8, 112), 28, 28},  // SGPRs: 7 waves a SIMD
    {needs(1, 0, 8, 96), 32, 32},   // SGPRs: 8 waves a SIMD
};

}  // namespace

TEST_CASE("a compute unit holds as many workgroups as its scarcest resource suffices for") {
  for (const OccupancyCase& each : kOccupancyCases) {
    CAPTURE(each.needs.waves, each.needs.lds_blocks, each.needs.vgprs, each.needs.sgprs);
    CHECK(occupancy(described("gfx90a"), each.needs).workgroups() == each.on_gfx90a);
    CHECK(occupancy(described("gfx942"), each.needs).workgroups() == each.on_gfx90a);
    CHECK(occupancy(described("gfx908"), each.needs).workgroups() == each.on_gfx908);
    CHECK(occupancy(described("gfx906"), each.needs).workgroups() == each.on_gfx908);
    CHECK(fits_on_unit(described("gfx90a"), each.needs) == (each.on_gfx90a != 0));
    CHECK(fits_on_unit(described("gfx908"), each.needs) == (each.on_gfx908 != 0));
  }
}

TEST_CASE("the limit is named with the need and what there is") {
  const DeviceDescription& mi210 = described("gfx90a");
  CHECK(limits_text(mi210, needs(1, 65536, 8)) == "LDS: 64 of 64 KiB each");
  CHECK(limits_text(mi210, needs(1, 33000, 8)) == "LDS: 33280 of 65536 bytes each");
  CHECK(limits_text(mi210, needs(1, 0, 256)) == "VGPRs: 256 of 512 of a SIMD for each wave");
  CHECK(limits_text(mi210, needs(1, 0, 8, 112)) == "SGPRs: 112 of 800 of a SIMD for each wave");
  CHECK(limits_text(mi210, needs(4, 0, 8)) == "wave slots: 4 of 32 each");
  CHECK(limits_text(described("gfx908"), needs(2, 0, 8)) == "barriers: 1 of 16 each");
  CHECK(
      limits_text(mi210, needs(4, 8192, 64)) ==
      "LDS: 8 of 64 KiB each; VGPRs: 64 of 512 of a SIMD for each wave; wave slots: 4 of 32 each");
}

TEST_CASE("places are found for as many workgroups as all compute units hold, and for no more") {
  for (const std::string_view target : {"gfx90a", "gfx908"})
    for (const OccupancyCase& each : kOccupancyCases) {
      const DeviceDescription& description = described(target);
      CAPTURE(description.target, each.needs.waves, each.needs.lds_blocks, each.needs.vgprs);
      const ComputeUnitSet all = ComputeUnitSet::all(description);
      const unsigned most =
          description.compute_units * (target == "gfx90a" ? each.on_gfx90a : each.on_gfx908);
      if (most == 0) continue;
      WaveSlots slots(description);
      std::vector<WorkgroupPlace> places;
      while (slots.room(all, each.needs) != 0 && places.size() <= most) {
        places.push_back(slots.take(all, places.size(), each.needs));
        CHECK(places.back().owned);
      }
      CHECK(places.size() == most);
      CHECK_FALSE(slots.take(all, 0, each.needs).owned);
      slots.give_back(places[most / 2]);
      CHECK(slots.room(all, each.needs) == 1);
      slots.give_back(places.back());
      places[most / 2] = slots.take(all, 7, each.needs);
      CHECK(places[most / 2].owned);
      for (size_t place = 0; place + 1 < places.size(); ++place) slots.give_back(places[place]);
      // Every unit is empty again.
      CHECK(slots.room(all, each.needs) > most);
    }
}

TEST_CASE("workgroups of different kernels share a compute unit's resources") {
  const DeviceDescription& mi210 = described("gfx90a");
  const ComputeUnitSet one = ComputeUnitSet::of_mask(mi210, std::vector<uint32_t>{0x10});
  const ComputeUnitSet other = ComputeUnitSet::of_mask(mi210, std::vector<uint32_t>{0x20});
  WaveSlots slots(mi210);
  const WorkgroupNeeds most_lds = needs(1, 40960, 8), some_lds = needs(2, 24576, 8);
  const WorkgroupPlace place = slots.take(one, 0, most_lds);
  CHECK(slots.room(one, most_lds) == 0);
  CHECK(slots.room(other, most_lds) == 1);
  CHECK(slots.room(one, some_lds) == 1);
  CHECK(slots.take(one, 0, some_lds).owned);
  CHECK(slots.room(one, some_lds) == 0);
  // Without LDS: 32 wave slots, of which three are taken.
  const WorkgroupNeeds many_waves = needs(15, 0, 8);
  CHECK(slots.take(one, 0, many_waves).owned);
  CHECK(slots.room(one, many_waves) == 0);
  CHECK(slots.room(one, needs(14, 0, 8)) == 1);
  CHECK(slots.room(one, needs(14, 512, 8)) == 0);
  slots.give_back(place);
  CHECK(slots.room(one, most_lds) == 1);
}

}  // namespace uptempo::vgpu
