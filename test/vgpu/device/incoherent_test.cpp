// Each rule of the caches, one test per sentence.
#include "device/caches/incoherent.hpp"

#include <array>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "test/support/catch.hpp"

namespace uptempo::vgpu {
namespace {

const DeviceDescription& mi210() { return *find_device_description("gfx90a"); }

// Zeroed host memory of one kind, and the caches of a device that evicts only for lack of space.
struct Agent {
  explicit Agent(MemoryKind kind = MemoryKind::coarse_grained, uint64_t l1_period = 0,
                 uint64_t l2_period = 0)
      : caches(mi210(), {.seed = 7,
                         .compute_units = 4,
                         .l1_eviction_period = l1_period,
                         .l2_eviction_period = l2_period}) {
    mapping = {
        .begin = 0x100000, .end = 0x100000 + memory.size(), .host = memory.data(), .kind = kind};
  }

  template <class T = uint32_t>
  T load(uint32_t compute_unit, uint64_t offset, bool coherent = false) {
    T value;
    caches.load(compute_unit, mapping, mapping.begin + offset,
                std::as_writable_bytes(std::span(&value, 1)),
                coherent ? AccessScope::agent : AccessScope::wave);
    return value;
  }
  template <class T = uint32_t>
  void store(uint32_t compute_unit, uint64_t offset, T value) {
    caches.store(compute_unit, mapping, mapping.begin + offset,
                 std::as_bytes(std::span(&value, 1)));
  }
  uint32_t scalar_load(uint32_t compute_unit, uint64_t offset, bool coherent = false) {
    uint32_t value;
    caches.scalar_load(compute_unit, mapping, mapping.begin + offset,
                       std::as_writable_bytes(std::span(&value, 1)),
                       coherent ? AccessScope::agent : AccessScope::wave);
    return value;
  }
  void scalar_store(uint32_t compute_unit, uint64_t offset, uint32_t value) {
    caches.scalar_store(compute_unit, mapping, mapping.begin + offset,
                        std::as_bytes(std::span(&value, 1)));
  }
  void add(uint32_t compute_unit, uint64_t offset, uint32_t addend) {
    std::byte* at = caches.atomic(compute_unit, mapping, mapping.begin + offset, 4);
    uint32_t value;
    std::memcpy(&value, at, 4);
    value += addend;
    std::memcpy(at, &value, 4);
  }

  // Accesses memory like the host and the SDMA engines.
  template <class T = uint32_t>
  T in_memory(uint64_t offset) const {
    T value;
    std::memcpy(&value, memory.data() + offset, sizeof value);
    return value;
  }
  template <class T = uint32_t>
  void host_stores(uint64_t offset, T value) {
    std::memcpy(memory.data() + offset, &value, sizeof value);
  }

  alignas(4096) std::array<std::byte, 65536> memory{};
  Mapping mapping;
  Caches caches;
};

constexpr MemoryKind kHeldInL2[] = {MemoryKind::coarse_grained, MemoryKind::device_local};
constexpr MemoryKind kBesideL2[] = {
    MemoryKind::fine_grained, MemoryKind::uncached, MemoryKind::device_local_fine,
    MemoryKind::device_local_extended, MemoryKind::device_local_uncached};

// Vector L1

TEST_CASE("a compute unit sees its own stores at once", "[caches]") {
  Agent agent;
  CHECK(agent.load(0, 16) == 0);
  agent.store(0, 16, 5u);
  CHECK(agent.load(0, 16) == 5);
}

TEST_CASE("another compute unit's copy stays unchanged until its L1 is invalidated", "[caches]") {
  for (const MemoryKind kind : {MemoryKind::coarse_grained, MemoryKind::device_local,
                                MemoryKind::fine_grained, MemoryKind::device_local_fine}) {
    Agent agent(kind);
    CHECK(agent.load(1, 16) == 0);
    agent.store(0, 16, 5u);
    CHECK(agent.load(1, 16) == 0);
    agent.caches.invalidate_vector_l1(0);
    CHECK(agent.load(1, 16) == 0);
    agent.caches.invalidate_vector_l1(1);
    CHECK(agent.load(1, 16) == 5);
  }
}

TEST_CASE("a load copies the whole line, so neighbouring bytes go stale, too", "[caches]") {
  Agent agent;
  agent.load(1, 0);
  agent.store(0, 60, 5u);
  agent.store(0, 64, 6u);
  CHECK(agent.load(1, 60) == 0);
  CHECK(agent.load(1, 64) == 6);
}

TEST_CASE("a store creates no copy in L1", "[caches]") {
  Agent agent;
  agent.store(1, 16, 4u);
  agent.store(0, 16, 5u);
  CHECK(agent.load(1, 16) == 5);
}

TEST_CASE("a coherent load misses L1 and drops the compute unit's own copy", "[caches]") {
  Agent agent;
  agent.load(1, 16);
  agent.load(2, 16);
  agent.store(0, 16, 5u);
  CHECK(agent.load(1, 16, true) == 5);
  CHECK(agent.load(1, 16) == 5);
  CHECK(agent.load(2, 16) == 0);
}

TEST_CASE("an atomic operation executes in L2 and drops the compute unit's own copy", "[caches]") {
  Agent agent;
  agent.load(1, 16);
  agent.load(2, 16);
  agent.add(0, 16, 2);
  agent.add(1, 16, 3);
  CHECK(agent.load(1, 16) == 5);
  CHECK(agent.load(2, 16) == 0);
  CHECK(agent.in_memory(16) == 0);
  agent.caches.release(FenceScope::system);
  CHECK(agent.in_memory(16) == 5);
}

TEST_CASE("an atomic operation starts from the value in memory and leaves its neighbours unchanged",
          "[caches]") {
  for (const MemoryKind kind : kHeldInL2) {
    Agent agent(kind);
    agent.host_stores(16, 10u);
    agent.host_stores(20, 77u);
    agent.add(0, 16, 1);
    agent.host_stores(20, 78u);
    agent.caches.release(FenceScope::system);
    CHECK(agent.in_memory(16) == 11);
    CHECK(agent.in_memory(20) == 78);
  }
}

// Scalar L1

TEST_CASE("scalar and vector copies do not see each other's stores", "[caches]") {
  Agent agent;
  CHECK(agent.scalar_load(0, 16) == 0);
  CHECK(agent.load(0, 16) == 0);
  agent.store(0, 16, 5u);
  CHECK(agent.scalar_load(0, 16) == 0);
  agent.caches.invalidate_vector_l1(0);
  CHECK(agent.scalar_load(0, 16) == 0);
  agent.caches.invalidate_scalar_l1(0);
  CHECK(agent.scalar_load(0, 16) == 5);
  CHECK(agent.load(0, 16) == 5);
  agent.scalar_store(0, 16, 6);
  CHECK(agent.scalar_load(0, 16) == 6);
  CHECK(agent.load(0, 16) == 5);
}

TEST_CASE("neighbouring compute units share a scalar L1, others do not", "[caches]") {
  Agent agent;
  agent.scalar_load(0, 16);
  agent.store(3, 16, 5u);
  CHECK(agent.scalar_load(1, 16) == 0);
  CHECK(agent.scalar_load(2, 16) == 5);
  CHECK(agent.scalar_load(1, 16, true) == 5);
  CHECK(agent.scalar_load(0, 16) == 5);
  agent.store(3, 16, 6u);
  agent.caches.invalidate_scalar_l1(1);
  CHECK(agent.scalar_load(0, 16) == 6);
}

// L2

TEST_CASE("stores to coarse-grained memory stay in L2 until they are written back", "[caches]") {
  for (const MemoryKind kind : kHeldInL2) {
    Agent agent(kind);
    agent.store(0, 16, 5u);
    CHECK(agent.load(1, 16) == 5);
    CHECK(agent.in_memory(16) == 0);
    agent.caches.write_back_l2();
    CHECK(agent.in_memory(16) == 5);
  }
}

TEST_CASE("a copy in L2 does not see host stores until it is invalidated", "[caches]") {
  for (const MemoryKind kind : kHeldInL2) {
    Agent agent(kind);
    agent.load(0, 16);
    agent.host_stores(16, 5u);
    CHECK(agent.load(1, 16, true) == 0);
    agent.caches.invalidate_l2();
    CHECK(agent.load(1, 16, true) == 5);
  }
}

TEST_CASE("a line of L2 is copied as a whole", "[caches]") {
  Agent agent;
  agent.load(0, 0);
  agent.host_stores(124, 5u);
  agent.host_stores(128, 6u);
  CHECK(agent.load(1, 124) == 0);
  CHECK(agent.load(1, 128) == 6);
}

TEST_CASE("fine-grained and uncached memory are not held in L2", "[caches]") {
  for (const MemoryKind kind : kBesideL2) {
    Agent agent(kind);
    CHECK(agent.load(0, 16) == 0);
    agent.store(0, 16, 5u);
    CHECK(agent.in_memory(16) == 5);
    agent.add(0, 16, 1);
    CHECK(agent.in_memory(16) == 6);
    agent.host_stores(16, 9u);
    CHECK(agent.load(1, 16) == 9);
    CHECK(agent.load(0, 16, true) == 9);
  }
}

TEST_CASE("a store does not fetch its line, so a later host store beside it is visible",
          "[caches]") {
  Agent agent;
  agent.store<uint16_t>(0, 18, 0x1234);
  agent.host_stores<uint16_t>(16, 0x5678);
  CHECK(agent.load(0, 16) == 0x12345678);
}

TEST_CASE("a write-back changes only bytes that the agent has stored", "[caches]") {
  Agent agent;
  for (const uint64_t offset : {0u, 3u, 5u, 6u, 62u, 66u, 127u, 130u}) {
    agent.load(0, offset);
    agent.store<uint8_t>(0, offset, 0xaa);
  }
  agent.store<uint64_t>(0, 40, 0xbbbbbbbbbbbbbbbb);
  for (uint64_t offset = 0; offset < 256; ++offset) agent.host_stores<uint8_t>(offset, 0x11);
  agent.caches.release(FenceScope::system);
  const std::set<uint64_t> stored{0, 3, 5, 6, 62, 66, 127, 130};
  for (uint64_t offset = 0; offset < 256; ++offset) {
    CAPTURE(offset);
    CHECK(agent.in_memory<uint8_t>(offset) == (stored.count(offset) != 0     ? 0xaa
                                               : offset >= 40 && offset < 48 ? 0xbb
                                                                             : 0x11));
  }
}

TEST_CASE("bytes that have been written back are not written again", "[caches]") {
  Agent agent;
  agent.store(0, 16, 5u);
  agent.caches.write_back_l2();
  agent.host_stores(16, 9u);
  agent.caches.write_back_l2();
  CHECK(agent.in_memory(16) == 9);
  CHECK(agent.load(1, 16) == 5);
}

TEST_CASE("invalidating L2 keeps dirty bytes and drops the clean bytes beside them", "[caches]") {
  Agent agent;
  agent.load(0, 16);
  agent.store(0, 16, 5u);
  agent.host_stores(16, 1u);
  agent.host_stores(20, 2u);
  agent.caches.invalidate_l2();
  CHECK(agent.load(1, 16) == 5);
  CHECK(agent.load(1, 20) == 2);
  CHECK(agent.in_memory(16) == 1);
  agent.caches.write_back_l2();
  CHECK(agent.in_memory(16) == 5);
}

TEST_CASE("a line that was dirty when L2 was invalidated is not old after its write-back",
          "[caches]") {
  for (const bool accessed : {false, true}) {
    Agent agent;
    agent.store(0, 16, 5u);
    agent.caches.invalidate_l2();
    if (accessed) CHECK(agent.load(1, 16, true) == 5);
    agent.caches.write_back_l2();
    agent.host_stores(16, 6u);
    CHECK(agent.load(1, 16, true) == (accessed ? 5 : 6));
  }
}

TEST_CASE("instruction fetch reads L2 where it holds the line, otherwise memory", "[caches]") {
  Agent agent;
  agent.store(0, 16, 5u);
  agent.host_stores(20, 6u);
  std::array<uint32_t, 2> words{};
  agent.caches.peek(agent.mapping, agent.mapping.begin + 16,
                    std::as_writable_bytes(std::span(words)));
  CHECK(words == std::array<uint32_t, 2>{5, 6});
  agent.host_stores(20, 7u);
  CHECK(agent.load(0, 20) == 7);
}

// Accesses of every size and position

TEST_CASE(
    "accesses of any size and alignment read the bytes of memory, across lines and at the ends of "
    "mappings",
    "[caches]") {
  for (const MemoryKind kind : {MemoryKind::coarse_grained, MemoryKind::fine_grained}) {
    Agent agent(kind, 5, 7);
    std::array<uint8_t, 512> expected{};
    for (size_t i = 0; i < expected.size(); ++i) {
      expected[i] = static_cast<uint8_t>(i * 7);
      agent.host_stores(i, expected[i]);
    }
    // Neither end is at the edge of a line.
    Mapping& mapping = agent.mapping;
    mapping.host += 36;
    mapping.end = mapping.begin + 300;
    uint8_t next = 1;
    for (const size_t bytes : {1u, 2u, 4u, 8u, 12u, 16u, 64u}) {
      for (uint64_t offset = 0; offset + bytes <= 300; ++offset) {
        CAPTURE(bytes, offset);
        std::vector<std::byte> data(bytes);
        agent.caches.load(0, mapping, mapping.begin + offset, data,
                          offset % 3 == 0 ? AccessScope::agent : AccessScope::wave);
        REQUIRE(std::memcmp(data.data(), &expected[36 + offset], bytes) == 0);
        agent.caches.scalar_load(2, mapping, mapping.begin + offset, data, AccessScope::wave);
        agent.caches.acquire(FenceScope::agent);
        for (std::byte& each : data) each = static_cast<std::byte>(next++);
        std::memcpy(&expected[36 + offset], data.data(), bytes);
        agent.caches.store(0, mapping, mapping.begin + offset, data);
      }
    }
    agent.caches.release(FenceScope::system);
    CHECK(std::memcmp(agent.memory.data(), expected.data(), expected.size()) == 0);
  }
}

TEST_CASE("the caches treat a buffer that is mapped twice as one", "[caches]") {
  Agent agent;
  Mapping second = agent.mapping;
  second.begin += 0x100000;
  second.end += 0x100000;
  agent.store(0, 16, 5u);
  uint32_t value = 0;
  agent.caches.load(0, second, second.begin + 16, std::as_writable_bytes(std::span(&value, 1)),
                    AccessScope::wave);
  CHECK(value == 5);
}

// Capacity

TEST_CASE("an L1 holds 16 KiB and fetches again beyond that", "[caches]") {
  Agent agent;
  for (uint64_t offset = 0; offset < 32768; offset += 64) agent.load(0, offset);
  for (uint64_t offset = 0; offset < 32768; offset += 64) agent.store(1, offset, 5u);
  unsigned seen = 0;
  for (uint64_t offset = 0; offset < 32768; offset += 64) seen += agent.load(0, offset) == 5;
  CHECK(seen >= 256);
  CHECK(seen < 512);
}

TEST_CASE("bytes that do not fit into L2 reach memory", "[caches]") {
  DeviceDescription small = mi210();
  small.l2_bytes = 16 * 1024;
  Agent agent;
  Caches caches(small, {.seed = 1});
  for (uint64_t offset = 0; offset < 65536; offset += 4) {
    const auto value = static_cast<uint32_t>(offset + 1);
    caches.store(0, agent.mapping, agent.mapping.begin + offset,
                 std::as_bytes(std::span(&value, 1)));
  }
  unsigned written = 0;
  for (uint64_t offset = 0; offset < 65536; offset += 4)
    written += agent.in_memory(offset) == offset + 1;
  CHECK(written >= 3 * 4096);
  CHECK(written < 4 * 4096);
  caches.write_back_l2();
  for (uint64_t offset = 0; offset < 65536; offset += 4)
    REQUIRE(agent.in_memory(offset) == offset + 1);
}

// Fences of packets

TEST_CASE("an acquire of scope none does nothing, agent invalidates every L1, system also L2",
          "[caches]") {
  Agent agent;
  for (uint32_t unit = 0; unit < 4; ++unit) {
    agent.load(unit, 16);
    agent.scalar_load(unit, 16);
  }
  agent.host_stores(16, 5u);
  agent.host_stores(1024, 5u);
  agent.load(0, 1024);
  agent.store(0, 1024, 6u);
  const auto all_read = [&](uint32_t expected) {
    bool all = true;
    for (uint32_t unit = 0; unit < 4; ++unit)
      all = all && agent.load(unit, 16) == expected && agent.scalar_load(unit, 16) == expected;
    return all;
  };
  agent.caches.acquire(FenceScope::none);
  CHECK(all_read(0));
  agent.caches.acquire(FenceScope::agent);
  CHECK(all_read(0));
  agent.store(2, 16, 7u);
  CHECK(agent.load(1, 16) == 0);
  agent.caches.acquire(FenceScope::agent);
  CHECK(all_read(7));
  agent.caches.release(FenceScope::system);
  agent.host_stores(16, 8u);
  agent.caches.acquire(FenceScope::agent);
  CHECK(all_read(7));
  agent.caches.acquire(FenceScope::system);
  CHECK(all_read(8));
}

TEST_CASE("only a release of system scope writes L2 back", "[caches]") {
  Agent agent;
  agent.store(0, 16, 5u);
  agent.caches.release(FenceScope::none);
  agent.caches.release(FenceScope::agent);
  CHECK(agent.in_memory(16) == 0);
  agent.caches.release(FenceScope::system);
  CHECK(agent.in_memory(16) == 5);
}

TEST_CASE("forget() writes the mapping back and drops every copy of it", "[caches]") {
  Agent agent;
  agent.load(0, 16);
  agent.scalar_load(0, 16);
  agent.store(1, 16, 5u);
  Mapping other = agent.mapping;
  other.host += 32768;
  other.end = other.begin + 4096;
  agent.store(1, 32768, 6u);
  Mapping unmapped = agent.mapping;
  unmapped.end = unmapped.begin + 32768;
  agent.caches.forget(unmapped);
  CHECK(agent.in_memory(16) == 5);
  CHECK(agent.in_memory(32768) == 0);
  agent.host_stores(16, 9u);
  CHECK(agent.load(0, 16) == 9);
  CHECK(agent.scalar_load(0, 16) == 9);
  agent.caches.write_back_l2();
  CHECK(agent.in_memory(16) == 9);
}

// Random choices

TEST_CASE("evictions publish dirty bytes, remove stale copies and lose nothing", "[caches]") {
  Agent agent(MemoryKind::coarse_grained, 4, 4);
  agent.load(1, 16);
  agent.store(0, 16, 5u);
  bool published = false, noticed = false;
  for (unsigned access = 0; access < 400; ++access) {
    agent.load(access % 4, 4096 + access % 8 * 128);
    published = published || agent.in_memory(16) == 5;
    noticed = noticed || agent.load(1, 16) == 5;
    CHECK(agent.load(0, 16) == 5);
  }
  CHECK(published);
  CHECK(noticed);
}

TEST_CASE("one seed always makes the same choices, another seed makes others", "[caches]") {
  const auto choices = [](uint64_t seed) {
    Caches caches(mi210(), CacheHabits::of(mi210(), seed));
    std::vector<uint32_t> units;
    for (unsigned i = 0; i < 32; ++i) units.push_back(caches.any_compute_unit());
    return units;
  };
  std::set<std::vector<uint32_t>> different;
  for (uint64_t seed = 0; seed < 64; ++seed) {
    const auto units = choices(seed);
    CHECK(units == choices(seed));
    for (const uint32_t unit : units) CHECK(unit < mi210().compute_units);
    different.insert(units);
  }
  CHECK(different.size() > 48);
}

TEST_CASE("every habit occurs for some seed", "[caches]") {
  std::set<uint64_t> units, l1, l2;
  for (uint64_t seed = 0; seed < 64; ++seed) {
    const CacheHabits habits = CacheHabits::of(mi210(), seed);
    units.insert(habits.compute_units);
    l1.insert(habits.l1_eviction_period);
    l2.insert(habits.l2_eviction_period);
  }
  CHECK(units == std::set<uint64_t>{1, 2, 4, 8, 16, 32, 64, 104});
  CHECK(l1 == std::set<uint64_t>{0, 16, 256, 4096});
  CHECK(l2 == l1);
}

// Lines that fences move

TEST_CASE("an agent acquire counts the lines of every L1 that it empties, and none of L2",
          "[caches]") {
  Agent agent;
  agent.load(0, 0);
  agent.load(0, 4);  // the same line
  agent.load(1, 0);
  agent.scalar_load(0, 256);
  agent.caches.acquire(FenceScope::agent);
  CHECK(agent.caches.moved_lines().vector_l1_invalidated == 2);
  CHECK(agent.caches.moved_lines().scalar_l1_invalidated == 1);
  CHECK(agent.caches.moved_lines().l2_invalidated == 0);
  agent.caches.acquire(FenceScope::agent);  // the L1 is empty
  CHECK(agent.caches.moved_lines().vector_l1_invalidated == 2);
}

TEST_CASE("a system acquire counts the lines of L2 that lose clean bytes", "[caches]") {
  Agent agent(MemoryKind::coarse_grained);
  agent.load(0, 0);
  agent.load(0, 64);         // the other half of the line
  agent.store(0, 1024, 5u);  // a line with dirty bytes only
  agent.caches.acquire(FenceScope::system);
  CHECK(agent.caches.moved_lines().l2_invalidated == 1);
}

TEST_CASE("a system release counts dirty lines once, an agent release counts none", "[caches]") {
  Agent agent(MemoryKind::coarse_grained);
  agent.store(0, 0, 5u);
  agent.store(1, 4, 5u);
  agent.store(1, 512, 5u);
  agent.caches.release(FenceScope::agent);
  CHECK(agent.caches.moved_lines().l2_written_back == 0);
  agent.caches.release(FenceScope::system);
  CHECK(agent.caches.moved_lines().l2_written_back == 2);
  agent.caches.release(FenceScope::system);
  CHECK(agent.caches.moved_lines().l2_written_back == 2);
}

TEST_CASE("memory that L2 does not hold gives a release nothing to write back", "[caches]") {
  for (const MemoryKind kind : kBesideL2) {
    Agent agent(kind);
    agent.store(0, 0, 5u);
    agent.caches.release(FenceScope::system);
    CHECK(agent.caches.moved_lines().l2_written_back == 0);
  }
}

TEST_CASE("the counts of fences exclude cache instructions and unmapping", "[caches]") {
  Agent agent(MemoryKind::coarse_grained);
  agent.load(0, 0);
  agent.store(0, 512, 5u);
  agent.caches.invalidate_vector_l1(0);
  agent.caches.write_back_l2();
  agent.caches.invalidate_l2();
  agent.load(0, 0);
  agent.caches.forget(agent.mapping);
  const MovedLines lines = agent.caches.moved_lines();
  CHECK(lines.vector_l1_invalidated + lines.scalar_l1_invalidated + lines.l2_invalidated +
            lines.l2_written_back ==
        0);
}

}  // namespace
}  // namespace uptempo::vgpu
