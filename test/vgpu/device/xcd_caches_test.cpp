// Caches of a device with several L2s (gfx942), and where its workgroups run.
#include <array>
#include <cstring>
#include <set>
#include <span>
#include <vector>

#include "device/caches/incoherent.hpp"
#include "device/compute_units.hpp"
#include "test/support/catch.hpp"

using namespace uptempo::vgpu;

namespace {

const DeviceDescription& mi300x() { return *find_device_description("gfx942"); }

// A unit of an XCD.
uint32_t on(uint32_t xcd, uint32_t unit = 0) { return xcd * mi300x().units_per_xcd() + unit; }

struct Agent {
  explicit Agent(MemoryKind kind = MemoryKind::device_local) : caches(mi300x(), {}) {
    mapping = {
        .begin = 0x100000, .end = 0x100000 + memory.size(), .host = memory.data(), .kind = kind};
  }

  uint32_t load(uint32_t unit, uint64_t offset, AccessScope scope = AccessScope::wave) {
    uint32_t value;
    caches.load(unit, mapping, mapping.begin + offset, std::as_writable_bytes(std::span(&value, 1)),
                scope);
    return value;
  }
  void store(uint32_t unit, uint64_t offset, uint32_t value,
             AccessScope scope = AccessScope::wave) {
    caches.store(unit, mapping, mapping.begin + offset, std::as_bytes(std::span(&value, 1)), scope);
  }
  void add(uint32_t unit, uint64_t offset, uint32_t addend) {
    std::byte* at = caches.atomic(unit, mapping, mapping.begin + offset, 4);
    uint32_t value;
    std::memcpy(&value, at, 4);
    value += addend;
    std::memcpy(at, &value, 4);
  }
  uint32_t in_memory(uint64_t offset) const {
    uint32_t value;
    std::memcpy(&value, memory.data() + offset, 4);
    return value;
  }
  void host_stores(uint64_t offset, uint32_t value) {
    std::memcpy(memory.data() + offset, &value, 4);
  }

  alignas(128) std::array<std::byte, 4096> memory{};
  Mapping mapping;
  Caches caches;
};

}  // namespace

TEST_CASE("a store is visible in its XCD and in no other before a release of agent scope",
          "[xcds]") {
  for (const FenceScope scope : {FenceScope::agent, FenceScope::system}) {
    Agent agent;
    agent.store(on(0), 16, 5);
    CHECK(agent.load(on(0, 1), 16) == 5);
    CHECK(agent.load(on(1), 16) == 0);
    agent.caches.acquire(FenceScope::system);
    CHECK(agent.load(on(1), 16) == 0);
    agent.caches.release(scope);
    CHECK(agent.in_memory(16) == 5);
    CHECK(agent.load(on(1), 16) == 0);  // its vector L1 still has the line
    agent.caches.acquire(FenceScope::agent);
    CHECK(agent.load(on(1), 16) == 5);
  }
}

TEST_CASE("a clean copy in L2 is never older than memory", "[xcds]") {
  Agent agent;
  CHECK(agent.load(on(3), 64) == 0);
  agent.host_stores(64, 7);
  CHECK(agent.load(on(3), 64) == 0);     // vector L1
  CHECK(agent.load(on(3, 5), 64) == 7);  // same L2
  agent.caches.acquire(FenceScope::agent);
  CHECK(agent.load(on(3), 64) == 7);
}

TEST_CASE("L2s keep different bytes of one line apart", "[xcds]") {
  Agent agent;
  agent.store(on(0), 0, 1);
  agent.store(on(7), 4, 2);
  CHECK(agent.load(on(0), 4) == 0);
  CHECK(agent.load(on(7), 0) == 0);
  agent.caches.release(FenceScope::agent);
  CHECK(agent.in_memory(0) == 1);
  CHECK(agent.in_memory(4) == 2);
}

TEST_CASE("of two XCDs' stores to one place without a release, either may stay", "[xcds]") {
  std::set<uint32_t> left;
  for (const uint32_t last : {0u, 1u}) {
    Agent agent;
    agent.store(on(1 - last), 0, 1 - last + 1);
    agent.store(on(last), 0, last + 1);
    agent.caches.release(FenceScope::agent);
    left.insert(agent.in_memory(0) == last + 1);
  }
  CHECK(left.size() == 2);
}

TEST_CASE("stores of agent scope reach memory, stores of workgroup scope do not", "[xcds]") {
  for (const AccessScope scope :
       {AccessScope::wave, AccessScope::workgroup, AccessScope::agent, AccessScope::system}) {
    Agent agent;
    agent.store(on(2), 8, 3);  // older bytes of this L2 do not come back later
    agent.store(on(2), 8, 9, scope);
    CHECK(agent.load(on(2), 8) == 9);
    CHECK(agent.load(on(4), 8, AccessScope::agent) == (scope >= AccessScope::agent ? 9u : 0u));
    agent.host_stores(8, 11);
    agent.caches.release(FenceScope::agent);
    CHECK(agent.in_memory(8) == (scope >= AccessScope::agent ? 11u : 9u));
  }
}

TEST_CASE("loads of agent scope miss L1", "[xcds]") {
  Agent agent;
  CHECK(agent.load(on(6), 0) == 0);
  agent.host_stores(0, 4);
  CHECK(agent.load(on(6), 0, AccessScope::workgroup) == 0);
  CHECK(agent.load(on(6), 0, AccessScope::agent) == 4);
  CHECK(agent.load(on(6), 0) == 4);
}

TEST_CASE("atomics of all XCDs add up without fences", "[xcds]") {
  for (const MemoryKind kind : {MemoryKind::device_local, MemoryKind::device_local_fine,
                                MemoryKind::coarse_grained, MemoryKind::fine_grained}) {
    Agent agent(kind);
    for (uint32_t turn = 0; turn < 3; ++turn)
      for (uint32_t xcd = 0; xcd < mi300x().xcds; ++xcd) agent.add(on(xcd, xcd), 128, 1);
    CHECK(agent.in_memory(128) == 24);
  }
}

TEST_CASE("an atomic includes the plain store that its XCD made before", "[xcds]") {
  Agent agent;
  agent.store(on(5), 12, 100);
  agent.add(on(5), 12, 1);
  CHECK(agent.in_memory(12) == 101);
  agent.caches.release(FenceScope::agent);
  CHECK(agent.in_memory(12) == 101);
}

TEST_CASE("buffer_wbl2 publishes one XCD's stores from agent scope on", "[xcds]") {
  for (const AccessScope scope :
       {AccessScope::wave, AccessScope::workgroup, AccessScope::agent, AccessScope::system}) {
    Agent agent;
    agent.store(on(1), 0, 1);
    agent.store(on(2), 64, 2);
    agent.caches.write_back(on(1, 9), scope);
    CHECK(agent.in_memory(0) == (scope >= AccessScope::agent ? 1u : 0u));
    CHECK(agent.in_memory(64) == 0);
  }
}

// CDNA3 ISA table 51, CDNA4 ISA table 52: sc0 alone invalidates only with TG_SPLIT.
TEST_CASE("buffer_inv drops one unit's L1 from agent scope on, and no stores", "[xcds]") {
  for (const AccessScope scope :
       {AccessScope::wave, AccessScope::workgroup, AccessScope::agent, AccessScope::system}) {
    Agent agent;
    agent.store(on(1), 256, 8);
    agent.load(on(1), 0);
    agent.load(on(1, 1), 0);
    agent.host_stores(0, 6);
    agent.caches.invalidate(on(1), scope);
    CHECK(agent.load(on(1), 0) == (scope >= AccessScope::agent ? 6u : 0u));
    CHECK(agent.load(on(1, 1), 0) == 0);
    CHECK(agent.load(on(1, 1), 256) == 8);
  }
}

TEST_CASE("a vector L1 of gfx942 holds lines of 128 bytes", "[xcds]") {
  Agent agent;
  agent.load(on(0), 0);
  agent.host_stores(64, 5);
  agent.host_stores(128, 6);
  CHECK(agent.load(on(0), 64) == 0);
  CHECK(agent.load(on(0), 128) == 6);
}

TEST_CASE("the L2s of gfx942 hide no store to host memory, or to memory of stronger coherence",
          "[xcds]") {
  for (const MemoryKind kind :
       {MemoryKind::fine_grained, MemoryKind::coarse_grained, MemoryKind::uncached,
        MemoryKind::device_local_extended, MemoryKind::device_local_uncached}) {
    Agent agent(kind);
    agent.store(on(0), 0, 3);
    CHECK(agent.in_memory(0) == 3);
    CHECK(agent.load(on(1), 0) == 3);
  }
}

// ---- where workgroups run

TEST_CASE("workgroups are dealt to the XCDs in turn", "[xcds]") {
  const ComputeUnitSet all = ComputeUnitSet::all(mi300x());
  WaveSlots slots(mi300x());
  for (uint64_t turn = 0; turn < 100; ++turn) {
    CHECK(all.xcd_of_turn(mi300x(), turn) == turn % 8);
    CHECK(slots.take(all, turn, {4}).xcd == turn % 8);
  }
}

TEST_CASE("workgroups fill an XCD without one more than its 38 units have room for", "[xcds]") {
  const ComputeUnitSet all = ComputeUnitSet::all(mi300x());
  WaveSlots slots(mi300x());
  std::set<std::array<unsigned, 3>> units;
  // two workgroups of 16 waves fill a unit's 32 slots
  for (uint64_t turn = 0; turn < 2 * 304; ++turn) {
    const WorkgroupPlace place = slots.take(all, turn, {16});
    REQUIRE(place.owned);
    units.insert({place.xcd, place.engine, place.unit});
  }
  CHECK(units.size() == 304);
  const WorkgroupPlace surplus = slots.take(all, 3, {1});
  CHECK_FALSE(surplus.owned);
  CHECK(surplus.xcd == 3);
}

TEST_CASE("an XCD's engines have 10, 10, 9 and 9 units, numbered without gaps", "[xcds]") {
  const ComputeUnitSet all = ComputeUnitSet::all(mi300x());
  CHECK(all.size() == 304);
  WaveSlots slots(mi300x());
  std::array<unsigned, 4> engine_units{};
  for (uint32_t xcd = 0; xcd < 8; ++xcd) {
    CHECK(all.size_in(mi300x(), xcd) == 38);
    for (uint32_t index = 0; index < 38; ++index) {
      const uint32_t number = all.number_of(mi300x(), xcd, index);
      CHECK(number == xcd * 38 + index);
      const WorkgroupPlace place = slots.take_on(number, {1});
      CHECK(place.xcd == xcd);
      if (xcd == 0) ++engine_units[place.engine];
    }
  }
  CHECK(engine_units == std::array<unsigned, 4>{10, 10, 9, 9});
}

// Linux, mqd_symmetrically_map_cu_mask(): an XCC's mask starts at bit XCC and takes each eighth
// bit.
TEST_CASE("bits of a CU mask go to the XCDs in turn, then to the engines of each", "[xcds]") {
  const std::vector<uint32_t> first_eight{0xff};
  const ComputeUnitSet one_each = ComputeUnitSet::of_mask(mi300x(), first_eight);
  CHECK(one_each.size() == 8);
  for (uint32_t xcd = 0; xcd < 8; ++xcd) CHECK(one_each.engine(xcd * 4) == 1);

  const std::vector<uint32_t> only_xcd_2(10, 0x04040404);
  const ComputeUnitSet one_xcd = ComputeUnitSet::of_mask(mi300x(), only_xcd_2);
  CHECK(one_xcd.size() == 38);
  CHECK(one_xcd.size_in(mi300x(), 2) == 38);
  for (uint64_t turn = 0; turn < 9; ++turn) CHECK(one_xcd.xcd_of_turn(mi300x(), turn) == 2);

  CHECK(ComputeUnitSet::of_mask(mi300x(), std::vector<uint32_t>(10, ~0u)) ==
        ComputeUnitSet::all(mi300x()));
}
