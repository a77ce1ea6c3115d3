// Sets of compute units as KFD makes them of masks, and the places of waves. Expected sets are
// written down from the mapping that Linux documents at mqd_symmetrically_map_cu_mask().
#include "device/compute_units.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>
#include <vector>

#include "test/support/catch.hpp"

using namespace uptempo::vgpu;

namespace {

const DeviceDescription& device(std::string_view target) {
  return *find_device_description(target);
}

using Engines = std::array<uint32_t, 8>;

Engines engines(const ComputeUnitSet& set) {
  Engines result{};
  for (unsigned engine = 0; engine < result.size(); ++engine) result[engine] = set.engine(engine);
  return result;
}

Engines of_mask(std::string_view target, std::vector<uint32_t> mask) {
  return engines(ComputeUnitSet::of_mask(device(target), mask));
}

// Engine (of all XCDs), unit, SIMD, slot.
using Wave = std::tuple<unsigned, unsigned, unsigned, unsigned>;

std::vector<Wave> waves(const WorkgroupPlace& place) {
  std::vector<Wave> result;
  for (unsigned wave = 0; wave < place.waves; ++wave)
    result.emplace_back(place.xcd * 8u + place.engine, place.unit, place.slots[wave].simd,
                        place.slots[wave].index);
  return result;
}

}  // namespace

TEST_CASE("the set of all units has the units that the topology reports, from unit 0 on") {
  const auto everything = [](std::string_view target) {
    return engines(ComputeUnitSet::all(device(target)));
  };
  constexpr uint32_t u13 = 0x1fff, u15 = 0x7fff, u16 = 0xffff;
  CHECK(everything("gfx90a") == Engines{u13, u13, u13, u13, u13, u13, u13, u13});
  CHECK(everything("gfx908") == Engines{u15, u15, u15, u15, u15, u15, u15, u15});
  CHECK(everything("gfx906") == Engines{u16, u16, u16, u16});
  CHECK(everything("gfx900") == Engines{u16, u16, u16, u16});
}

TEST_CASE("the bits of a mask go to the shader engines in turn, then to their next units") {
  // 8 engines: bit 0 is unit 0 of engine 0, bit 1 unit 0 of engine 1, bit 8 unit 1 of engine 0.
  CHECK(of_mask("gfx90a", {0x1, 0, 0, 0}) == Engines{0x1});
  CHECK(of_mask("gfx90a", {0x2, 0, 0, 0}) == Engines{0, 0x1});
  CHECK(of_mask("gfx90a", {0x80, 0, 0, 0}) == Engines{0, 0, 0, 0, 0, 0, 0, 0x1});
  CHECK(of_mask("gfx90a", {0x100, 0, 0, 0}) == Engines{0x2});
  CHECK(of_mask("gfx90a", {0xffff, 0, 0, 0}) == Engines{3, 3, 3, 3, 3, 3, 3, 3});
  CHECK(of_mask("gfx90a", {0x01010101, 0x01010101, 0x01010101, 0x01}) == Engines{0x1fff});
  // 4 engines: bit 4 is unit 1 of engine 0.
  CHECK(of_mask("gfx906", {0x8, 0}) == Engines{0, 0, 0, 0x1});
  CHECK(of_mask("gfx906", {0x10, 0}) == Engines{0x2});
  CHECK(of_mask("gfx900", {0x11111111, 0x11111111}) == Engines{0xffff});
}

TEST_CASE("a mask's bits past the last unit are ignored, and units past its last bit excluded") {
  CHECK(of_mask("gfx90a", {0, 0, 0, 0x80}) == Engines{0, 0, 0, 0, 0, 0, 0, 0x1000});
  CHECK(of_mask("gfx90a", {0, 0, 0, 0xffffff00, 0xffffffff}) == Engines{});
  CHECK(of_mask("gfx90a", {0xffffffff}) == Engines{15, 15, 15, 15, 15, 15, 15, 15});
  CHECK(ComputeUnitSet::of_mask(device("gfx90a"), std::vector<uint32_t>(32, 0xffffffff)) ==
        ComputeUnitSet::all(device("gfx90a")));
  CHECK(ComputeUnitSet::of_mask(device("gfx90a"), {}).empty());
}

TEST_CASE("a set counts its units and returns their numbers in order") {
  const DeviceDescription& mi210 = device("gfx90a");
  const ComputeUnitSet all = ComputeUnitSet::all(mi210);
  REQUIRE(all.size() == 104);
  for (uint32_t number = 0; number < 104; ++number)
    CHECK(all.number_of(mi210, 0, number) == number);
  // Engine 0: units 0 and 2; engine 1: unit 1; engine 7: unit 12. Each engine has 13 units.
  const std::vector<uint32_t> mask{1u << 0 | 1u << 16 | 1u << 9, 0, 0, 1u << 7};
  const ComputeUnitSet some = ComputeUnitSet::of_mask(mi210, mask);
  REQUIRE(some.size() == 4);
  CHECK(some.number_of(mi210, 0, 0) == 0);
  CHECK(some.number_of(mi210, 0, 1) == 2);
  CHECK(some.number_of(mi210, 0, 2) == 14);
  CHECK(some.number_of(mi210, 0, 3) == 103);
}

TEST_CASE("workgroups go to the engines in turn and within an engine to its units in turn") {
  const DeviceDescription& mi210 = device("gfx90a");
  WaveSlots slots(mi210);
  const ComputeUnitSet all = ComputeUnitSet::all(mi210);
  for (unsigned turn = 0; turn < 104; ++turn) {
    const WorkgroupPlace place = slots.take(all, turn, {1});
    CHECK(place.engine == turn % 8);
    CHECK(place.unit == turn / 8);
  }
  // Engines get equal numbers of workgroups even if one has more units.
  const std::vector<uint32_t> mask{0x01010103};  // engine 0: units 0 to 3; engine 1: unit 0
  const ComputeUnitSet uneven = ComputeUnitSet::of_mask(mi210, mask);
  WaveSlots other(mi210);
  std::vector<std::pair<unsigned, unsigned>> placed;
  for (unsigned turn = 0; turn < 8; ++turn) {
    const WorkgroupPlace place = other.take(uneven, turn, {4});
    placed.emplace_back(place.engine, place.unit);
  }
  CHECK(placed == std::vector<std::pair<unsigned, unsigned>>{
                      {0, 0}, {1, 0}, {0, 1}, {1, 0}, {0, 2}, {1, 0}, {0, 3}, {1, 0}});
}

TEST_CASE("waves of a workgroup use the SIMDs of their unit in turn") {
  WaveSlots slots(device("gfx90a"));
  const WorkgroupPlace place = slots.take_on(0, {6});
  CHECK(waves(place) ==
        std::vector<Wave>{
            {0, 0, 0, 0}, {0, 0, 1, 0}, {0, 0, 2, 0}, {0, 0, 3, 0}, {0, 0, 0, 1}, {0, 0, 1, 1}});
  CHECK(waves(slots.take_on(0, {3})) ==
        std::vector<Wave>{{0, 0, 2, 1}, {0, 0, 3, 1}, {0, 0, 0, 2}});
  slots.give_back(place);
  CHECK(waves(slots.take_on(0, {1})) == std::vector<Wave>{{0, 0, 1, 0}});
}

TEST_CASE("resident waves never share a slot while the set has room") {
  for (const auto& [target, slots_per_simd] : {std::pair{"gfx90a", 8u}, std::pair{"gfx906", 10u}}) {
    CAPTURE(target);
    const DeviceDescription& description = device(target);
    WaveSlots slots(description);
    const ComputeUnitSet all = ComputeUnitSet::all(description);
    const unsigned groups = description.compute_units * slots_per_simd;  // of 4 waves
    std::set<Wave> used;
    std::vector<WorkgroupPlace> places;
    for (unsigned turn = 0; turn < groups; ++turn) {
      places.push_back(slots.take(all, turn, {4}));
      for (const Wave& wave : waves(places.back())) {
        CHECK(used.insert(wave).second);
        REQUIRE(std::get<3>(wave) < slots_per_simd);
      }
    }
    // Full: the next workgroup shares the slots of others, and its end frees none of them.
    const WorkgroupPlace surplus = slots.take(all, 5, {4});
    CHECK(surplus.xcd == 5 % description.xcds);
    CHECK(surplus.engine == 5 / description.xcds % description.engines_per_xcd());
    slots.give_back(surplus);
    const Wave still_used = waves(slots.take(all, 5, {4})).front();
    CHECK(used.count(still_used) == 1);
    slots.give_back(places[17]);
    CHECK(waves(slots.take(all, 17 % description.xcds, {4})) == waves(places[17]));
  }
}

TEST_CASE("a unit holds at most 16 workgroups of several waves, each with its own number") {
  const DeviceDescription& mi60 = device("gfx906");  // 40 wave slots a unit
  WaveSlots slots(mi60);
  const ComputeUnitSet one = ComputeUnitSet::of_mask(mi60, std::vector<uint32_t>{0x11});
  std::set<unsigned> groups;
  for (unsigned index = 0; index < 16; ++index) {
    const WorkgroupPlace place = slots.take(one, 0, {2});
    CHECK(place.unit == 0);
    CHECK(groups.insert(place.group).second);
  }
  CHECK(*groups.rbegin() == 15);
  CHECK(slots.take(one, 0, {2}).unit == 1);
  CHECK(slots.take(one, 0, {1}).unit == 0);
}
