// The allocation that a finding names.
#include "kfd/report/allocations.hpp"

#include "test/support/catch.hpp"

namespace uptempo::vgpu::kfd {

constexpr GpuAddress kBegin = 0x7f0000000000;

TEST_CASE("an address belongs to the allocation that contains it until that is removed") {
  Allocations allocations;
  for (uint64_t i = 0; i < 100; ++i)
    allocations.add({.begin = kBegin + 4096 * i, .bytes = 1000, .handle = i + 1});
  for (uint64_t i = 0; i < 100; i += 2) allocations.remove(i + 1);
  for (uint64_t i = 0; i < 100; ++i) {
    CAPTURE(i);
    const auto found = allocations.find(kBegin + 4096 * i + 999);
    REQUIRE(found.has_value() == (i % 2 != 0));
    if (found) CHECK(found->handle == i + 1);
    CHECK_FALSE(allocations.find(kBegin + 4096 * i + 1000));
  }
}

TEST_CASE("the removal of an allocation that another one has replaced leaves the other one") {
  Allocations allocations;
  allocations.add({.begin = kBegin, .bytes = 1000, .handle = 1});
  allocations.add({.begin = kBegin, .bytes = 2000, .handle = 2});
  allocations.remove(1);
  REQUIRE(allocations.find(kBegin));
  CHECK(allocations.find(kBegin)->handle == 2);
  allocations.remove(2);
  CHECK_FALSE(allocations.find(kBegin));
  allocations.remove(3);  // unknown
}

}  // namespace uptempo::vgpu::kfd
