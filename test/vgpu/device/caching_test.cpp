#include <algorithm>

#include "device/caches/caching.hpp"
#include "device/description.hpp"
#include "test/support/catch.hpp"

using namespace uptempo::vgpu;

TEST_CASE("L2 holds no fine-grained and no uncached host memory, on any target") {
  for (const DeviceDescription& device : device_descriptions()) {
    CAPTURE(device.target);
    CHECK(memory_type(device.target, MemoryKind::fine_grained) == MemoryType::uncached);
    CHECK(memory_type(device.target, MemoryKind::uncached) == MemoryType::uncached);
  }
}

TEST_CASE("coarse-grained host memory is in L2 until gfx942") {
  for (const char* target : {"gfx900", "gfx906", "gfx908", "gfx90a"})
    CHECK(memory_type(target, MemoryKind::coarse_grained) == MemoryType::non_coherent);
  CHECK(memory_type("gfx942", MemoryKind::coarse_grained) == MemoryType::uncached);
}

TEST_CASE("device-local memory has separate types from gfx908 on") {
  CHECK(memory_type("gfx900", MemoryKind::device_local) == MemoryType::non_coherent);
  CHECK(memory_type("gfx906", MemoryKind::device_local_fine) == MemoryType::uncached);
  CHECK(memory_type("gfx908", MemoryKind::device_local) == MemoryType::read_write);
  CHECK(memory_type("gfx90a", MemoryKind::device_local_fine) == MemoryType::coherent);
  CHECK(memory_type("gfx942", MemoryKind::device_local) == MemoryType::probed_read_write);
  CHECK(memory_type("gfx942", MemoryKind::device_local_fine) == MemoryType::probed_read_write);
}

TEST_CASE(
    "no L2 holds uncached device memory, and extended coherence leaves nothing dirty in one") {
  for (const DeviceDescription& device : device_descriptions()) {
    CAPTURE(device.target);
    CHECK(memory_type(device.target, MemoryKind::device_local_uncached) == MemoryType::uncached);
    CHECK_FALSE(l2_holds_dirty(memory_type(device.target, MemoryKind::device_local_extended)));
  }
  CHECK(memory_type("gfx906", MemoryKind::device_local_extended) == MemoryType::uncached);
  CHECK(memory_type("gfx90a", MemoryKind::device_local_extended) == MemoryType::coherent);
  CHECK(memory_type("gfx942", MemoryKind::device_local_extended) == MemoryType::coherent);
}

TEST_CASE("the coherence table has one row with a source for each target and kind of memory") {
  for (const DeviceDescription& device : device_descriptions()) {
    for (const MemoryKind kind :
         {MemoryKind::fine_grained, MemoryKind::uncached, MemoryKind::coarse_grained,
          MemoryKind::device_local, MemoryKind::device_local_fine,
          MemoryKind::device_local_extended, MemoryKind::device_local_uncached,
          MemoryKind::peer_local, MemoryKind::peer_local_fine, MemoryKind::peer_local_uncached}) {
      CAPTURE(device.target, memory_kind_name(kind));
      CHECK(std::ranges::count_if(coherence_table(), [&](const Coherence& row) {
              return row.target == device.target && row.kind == kind && !row.source.empty();
            }) == 1);
    }
  }
}

TEST_CASE("coarse-grained memory of a peer is in L2 and goes stale there, uncached memory is not") {
  for (const DeviceDescription& device : device_descriptions()) {
    CAPTURE(device.target);
    CHECK(memory_type(device.target, MemoryKind::peer_local) == MemoryType::non_coherent);
    CHECK(memory_type(device.target, MemoryKind::peer_local_fine) ==
          (device.target == "gfx942" ? MemoryType::non_coherent : MemoryType::uncached));
    CHECK(memory_type(device.target, MemoryKind::peer_local_uncached) == MemoryType::uncached);
  }
}

TEST_CASE("writes to a peer probe its L2 from gfx908 on") {
  for (const char* target : {"gfx900", "gfx906"}) CHECK_FALSE(peer_writes_probe(target));
  for (const char* target : {"gfx908", "gfx90a", "gfx942"}) CHECK(peer_writes_probe(target));
}

TEST_CASE("several L2s exist exactly where a memory type lets them differ") {
  for (const DeviceDescription& device : device_descriptions()) {
    CAPTURE(device.target);
    CHECK(l2s_differ(memory_type(device.target, MemoryKind::device_local)) == (device.xcds > 1));
  }
}

TEST_CASE("memory types differ in what L2 hides") {
  CHECK(l2_holds_dirty(MemoryType::non_coherent));
  CHECK(l2_goes_stale(MemoryType::non_coherent));
  CHECK(l2_holds_dirty(MemoryType::read_write));
  CHECK(l2_goes_stale(MemoryType::read_write));
  CHECK(l2_holds_dirty(MemoryType::probed_read_write));
  CHECK_FALSE(l2_goes_stale(MemoryType::probed_read_write));
  for (const MemoryType type : {MemoryType::coherent, MemoryType::uncached}) {
    CHECK_FALSE(l2_holds_dirty(type));
    CHECK_FALSE(l2_goes_stale(type));
  }
}
