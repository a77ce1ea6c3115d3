#include "device/caching.hpp"
#include "device/description.hpp"
#include "test/support/catch.hpp"

using namespace uptempo::vgpu;

TEST_CASE("L2 holds only coarse-grained host memory, on every target") {
  for (const DeviceDescription& device : device_descriptions()) {
    CAPTURE(device.target);
    CHECK(memory_type(device.target, MemoryKind::fine_grained) == MemoryType::uncached);
    CHECK(memory_type(device.target, MemoryKind::uncached) == MemoryType::uncached);
    CHECK(memory_type(device.target, MemoryKind::coarse_grained) == MemoryType::non_coherent);
  }
}

TEST_CASE("device-local memory has separate types from gfx908 on") {
  CHECK(memory_type("gfx900", MemoryKind::device_local) == MemoryType::non_coherent);
  CHECK(memory_type("gfx906", MemoryKind::device_local_fine) == MemoryType::uncached);
  CHECK(memory_type("gfx908", MemoryKind::device_local) == MemoryType::read_write);
  CHECK(memory_type("gfx90a", MemoryKind::device_local_fine) == MemoryType::coherent);
}

TEST_CASE("only memory types that L2 hides from the host need system fences") {
  CHECK(l2_needs_fences(MemoryType::non_coherent));
  CHECK(l2_needs_fences(MemoryType::read_write));
  CHECK_FALSE(l2_needs_fences(MemoryType::coherent));
  CHECK_FALSE(l2_needs_fences(MemoryType::uncached));
}
