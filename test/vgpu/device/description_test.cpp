#include "device/description.hpp"

#include <set>
#include <string>

#include "device/clock.hpp"
#include "test/support/catch.hpp"

namespace uptempo::vgpu {
namespace {

TEST_CASE("the default target is first, and every target is found by its name", "[description]") {
  REQUIRE_FALSE(device_descriptions().empty());
  CHECK(device_descriptions().front().target == "gfx90a");
  std::set<std::string_view> names;
  for (const DeviceDescription& device : device_descriptions()) {
    CAPTURE(std::string(device.target));
    CHECK(find_device_description(device.target) == &device);
    CHECK(names.insert(device.target).second);
  }
  CHECK(names == std::set<std::string_view>{"gfx90a", "gfx908", "gfx906", "gfx900", "gfx942"});
}

TEST_CASE("an unknown target is not found", "[description]") {
  CHECK(find_device_description("gfx1100") == nullptr);
  CHECK(find_device_description("") == nullptr);
  CHECK(find_device_description("gfx90") == nullptr);
}

TEST_CASE("the KFD version number matches the target's name", "[description]") {
  for (const DeviceDescription& device : device_descriptions()) {
    const uint32_t version = device.gfx_target_version;
    constexpr char kDigits[] = "0123456789abcdef";
    std::string name = "gfx" + std::to_string(version / 10000);
    name += kDigits[version / 100 % 100];
    name += kDigits[version % 100];
    CHECK(name == device.target);
  }
}

TEST_CASE("dependent figures are consistent", "[description]") {
  for (const DeviceDescription& device : device_descriptions()) {
    CAPTURE(std::string(device.target));
    CHECK(device.compute_units <= device.shader_engines * device.compute_units_per_shader_array);
    CHECK(device.compute_units % device.xcds == 0);
    CHECK(device.shader_engines % device.xcds == 0);
    CHECK(device.simds_per_compute_unit == 4);
    CHECK(device.lds_bytes == 65536);
    CHECK(device.vram_bytes % (uint64_t{1} << 30) == 0);
    CHECK(device.unified_accumulation_registers ==
          (device.target == "gfx90a" || device.target == "gfx942"));
  }
}

TEST_CASE("both clocks count the same time", "[clock]") {
  const uint64_t before = host_clock_ns();
  const uint64_t ticks = gpu_clock_ticks();
  const uint64_t after = host_clock_ns();
  CHECK(ticks >= before / 10);
  CHECK(ticks <= after / 10);
  CHECK(gpu_clock_ticks() >= ticks);
}

}  // namespace
}  // namespace uptempo::vgpu
