// The engine's table of targets, against the virtual GPU's own table of memory types. The two share
// no code.
#include "engine/runtime/memory_model.hpp"

#include "device/caches/caching.hpp"
#include "device/description.hpp"
#include "engine/fences/fence_plan.hpp"
#include "test/support/catch.hpp"

using namespace uptempo;

TEST_CASE("the memory model of each target agrees with its memory types") {
  for (const vgpu::DeviceDescription& device : vgpu::device_descriptions()) {
    CAPTURE(device.target);
    const MemoryModel& model = memory_model(device.target);
    CHECK(model.processor == device.target);
    CHECK_FALSE(model.source.empty());
    CHECK(model.one_l2 == (device.xcds == 1));
    const auto type = [&](vgpu::MemoryKind kind) { return memory_type(device.target, kind); };
    CHECK(model.host_memory_bypasses_l2 == !l2_holds_dirty(type(vgpu::MemoryKind::fine_grained)));
    CHECK(model.device_memory_is_probed == !l2_goes_stale(type(vgpu::MemoryKind::device_local)));
  }
}

TEST_CASE("an unknown target gets every fence of the specification") {
  for (const char* processor : {"gfx1100", "gfx950", "gfx9", ""}) {
    const MemoryModel& model = memory_model(processor);
    CHECK_FALSE(model.one_l2);
    CHECK_FALSE(model.host_memory_bypasses_l2);
    CHECK_FALSE(model.device_memory_is_probed);
  }
  CHECK(overwrites_on(nullptr) == Overwrites::handed_over);
}
