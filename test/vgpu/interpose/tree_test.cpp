// The virtual /dev and /sys as data, where a test through libc could not tell them from the
// machine's own.
#include "interpose/tree.hpp"

#include "interpose/topology.hpp"
#include "test/support/catch.hpp"

namespace uptempo::vgpu::interpose {
namespace {

TEST_CASE("accelerators of the machine are hidden", "[tree]") {
  const Tree tree = device_tree();
  for (const char* path : {"/dev/accel", "/dev/accel/accel0", "/dev/accel/accel63",
                           "/dev//accel/../accel/./accel0"}) {
    CAPTURE(path);
    const auto found = tree.find(path);
    REQUIRE(found.has_value());
    CHECK(found->entry == nullptr);
  }
  CHECK_FALSE(tree.find("/dev/acceleration").has_value());
}

}  // namespace
}  // namespace uptempo::vgpu::interpose
