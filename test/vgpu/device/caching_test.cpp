#include "device/caching.hpp"
#include "device/description.hpp"
#include "test/support/catch.hpp"

using namespace uptempo::vgpu;

TEST_CASE("host memory is in L2 only where it is coarse-grained, on every target") {
  for (const DeviceDescription& device : device_descriptions()) {
    CAPTURE(device.target);
    CHECK(memory_type(device.target, MemoryKind::fine_grained) == MemoryType::uncached);
    CHECK(memory_type(device.target, MemoryKind::uncached) == MemoryType::uncached);
    CHECK(memory_type(device.target, MemoryKind::coarse_grained) == MemoryType::non_coherent);
  }
}

TEST_CASE("device-local memory has types of its own from gfx908 on") {
  CHECK(memory_type("gfx900", MemoryKind::device_local) == MemoryType::non_coherent);
  CHECK(memory_type("gfx906", MemoryKind::device_local_fine) == MemoryType::uncached);
  CHECK(memory_type("gfx908", MemoryKind::device_local) == MemoryType::read_write);
  CHECK(memory_type("gfx90a", MemoryKind::device_local_fine) == MemoryType::coherent);
}

TEST_CASE("only what L2 keeps to itself needs system fences") {
  CHECK(l2_needs_fences(MemoryType::non_coherent));
  CHECK(l2_needs_fences(MemoryType::read_write));
  CHECK_FALSE(l2_needs_fences(MemoryType::coherent));
  CHECK_FALSE(l2_needs_fences(MemoryType::uncached));
}
