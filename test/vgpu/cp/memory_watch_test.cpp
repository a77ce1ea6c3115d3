// The accesses of a dispatch under --check memory: which lanes are findings, and what is recorded.
// The checker has tests of its own (test/vgpu/device/memory_check_test.cpp).
#include "cp/memory_watch.hpp"

#include <array>
#include <thread>
#include <utility>
#include <vector>

#include "test/support/catch.hpp"

namespace uptempo::vgpu::memory_check {
namespace {

constexpr GpuAddress kBlock = 0x7f0000000000, kOther = kBlock + 0x10000;

struct Dispatch {
  explicit Dispatch(bool of_runtime = false, uint32_t group_segment_bytes = 1024,
                    bool buffer_ranges = false)
      : checker([this](const Finding& finding) { findings.push_back(finding); }, false,
                buffer_ranges),
        dispatch(checker, Packet{.name = "kernel"}, checker.begin({}, {}), of_runtime,
                 group_segment_bytes) {
    checker.add_buffer(kBlock, 1 << 20, {.is_undefined = true});
    for (const GpuAddress begin : {kBlock, kOther})
      checker.allocated({.begin = begin, .bytes = 1000, .reserved_bytes = 8192});
  }

  // Lane i accesses the bytes at address(i).
  template <typename Address>
  void access(Access access, uint32_t bytes, uint64_t lanes, Address address) {
    std::array<GpuAddress, 64> addresses{};
    for (uint64_t lane = 0; lane < 64; ++lane) addresses[lane] = address(lane);
    dispatch.access({.access = access,
                     .size_bytes = bytes,
                     .lanes = lanes,
                     .address = addresses.data(),
                     .instruction = ++instruction});
  }
  void scalar(GpuAddress address, uint32_t bytes) {
    dispatch.access({.scalar = true,
                     .size_bytes = bytes,
                     .lanes = 1,
                     .address = &address,
                     .instruction = ++instruction});
  }
  void lds(Access access, uint32_t bytes, uint32_t first, std::array<uint32_t, 3> workgroup) {
    std::array<uint32_t, 64> offsets{};
    for (uint32_t lane = 0; lane < 64; ++lane) offsets[lane] = first + lane * bytes;
    dispatch.lds_access({.access = access,
                         .size_bytes = bytes,
                         .lanes = ~uint64_t{0},
                         .offset = offsets.data(),
                         .segment_bytes = 1024,
                         .workgroup = workgroup,
                         .instruction = ++instruction});
  }
  // Returns the findings since the last call.
  std::vector<Finding> take() { return std::exchange(findings, {}); }

  std::vector<Finding> findings;
  Checker checker;
  GpuAddress instruction = 0x100;
  CheckedDispatch dispatch;
};

constexpr uint64_t kAll = ~uint64_t{0};
auto adjacent(GpuAddress first, uint64_t bytes) {
  return [=](uint64_t lane) { return first + lane * bytes; };
}

}  // namespace

TEST_CASE("lanes that a buffer's range check excludes are findings on request", "[memory_check]") {
  CHECK_FALSE(Dispatch().dispatch.interests().ranges);
  Dispatch kernel(false, 1024, true);
  CHECK(kernel.dispatch.interests().ranges);
  std::array<GpuAddress, 64> addresses{};
  addresses[5] = kBlock + 4;
  kernel.dispatch.out_of_range({.access = Access::write,
                                .size_bytes = 8,
                                .lanes = uint64_t{0b11} << 5,
                                .address = addresses.data(),
                                .instruction = 0x100});
  const auto found = kernel.take();
  REQUIRE(found.size() == 1);
  CHECK(found[0].what == Class::buffer_range);
  CHECK(found[0].lane == 5);
  CHECK(found[0].lanes == 2);
  CHECK(found[0].address == kBlock + 4);
  CHECK(found[0].bytes == 8);
}

TEST_CASE("a finding names the first of the lanes outside, and their number", "[memory_check]") {
  Dispatch kernel;
  kernel.access(Access::write, 4, kAll, adjacent(kBlock, 4));
  CHECK(kernel.take().empty());
  kernel.access(Access::write, 4, kAll, adjacent(kBlock + 1000 - 4 * 60, 4));
  const auto beyond = kernel.take();
  REQUIRE(beyond.size() == 1);
  CHECK(beyond[0].what == Class::out_of_bounds);
  CHECK(beyond[0].lane == 60);
  CHECK(beyond[0].lanes == 4);
  CHECK(beyond[0].address == kBlock + 1000);
  CHECK(beyond[0].bytes == 4);
  // Lanes that take no part do not count.
  kernel.access(Access::write, 4, (uint64_t{1} << 60) - 1, adjacent(kBlock + 1000 - 4 * 60, 4));
  CHECK(kernel.take().empty());
  // The lane that crosses the end.
  kernel.access(Access::write, 8, 1, [](uint64_t) { return kBlock + 996; });
  CHECK(kernel.take().size() == 1);
}

TEST_CASE("lanes in different allocations are judged one by one", "[memory_check]") {
  Dispatch kernel;
  const auto alternating = [](uint64_t lane) {
    return (lane % 2 == 0 ? kBlock : kOther) + lane * 8;
  };
  kernel.access(Access::write, 4, kAll, alternating);
  kernel.access(Access::read, 4, kAll, alternating);
  CHECK(kernel.take().empty());
  // Odd lanes have stored to the other allocation only.
  kernel.access(Access::read, 4, kAll, [](uint64_t lane) { return kBlock + lane * 8; });
  const auto found = kernel.take();
  REQUIRE(found.size() == 1);
  CHECK(found[0].what == Class::uninitialised_read);
  CHECK(found[0].lane == 1);
  CHECK(found[0].lanes == 32);
  CHECK(found[0].address == kBlock + 8);
}

TEST_CASE("a lane that reads one byte with contents may read padding besides", "[memory_check]") {
  Dispatch kernel;
  kernel.access(Access::write, 4, kAll, [](uint64_t lane) { return kBlock + lane * 8; });
  kernel.access(Access::read, 8, kAll, adjacent(kBlock, 8));
  CHECK(kernel.take().empty());
  kernel.access(Access::read, 8, kAll, adjacent(kBlock + 8, 8));
  const auto found = kernel.take();
  REQUIRE(found.size() == 1);
  CHECK(found[0].lane == 63);
}

TEST_CASE("an atomic reads, and gives its bytes contents", "[memory_check]") {
  Dispatch kernel;
  kernel.access(Access::atomic, 4, 1, [](uint64_t) { return kBlock; });
  REQUIRE(kernel.take().size() == 1);
  kernel.access(Access::atomic, 4, 1, [](uint64_t) { return kBlock; });
  kernel.access(Access::read, 4, 1, [](uint64_t) { return kBlock; });
  CHECK(kernel.take().empty());
}

TEST_CASE("scalar loads are judged by dwords", "[memory_check]") {
  Dispatch kernel;
  kernel.access(Access::write, 1, 1, [](uint64_t) { return kBlock + 997; });
  // The last dword has one byte with contents.
  kernel.scalar(kBlock + 996, 4);
  CHECK(kernel.take().empty());
  kernel.scalar(kBlock + 992, 8);
  CHECK(kernel.take().empty());
  kernel.scalar(kBlock + 996, 8);
  const auto beyond = kernel.take();
  REQUIRE(beyond.size() == 1);
  CHECK(beyond[0].what == Class::out_of_bounds);
  CHECK(beyond[0].address == kBlock + 1000);
  kernel.scalar(kBlock + 64, 32);
  const auto empty = kernel.take();
  REQUIRE(empty.size() == 1);
  CHECK(empty[0].what == Class::uninitialised_read);
  CHECK(empty[0].address == kBlock + 64);
  CHECK(empty[0].bytes == 32);
}

TEST_CASE("a scalar load of narrower data may read beyond the end of its dword", "[memory_check]") {
  Dispatch kernel;
  kernel.checker.allocated({.begin = kBlock + 0x20000, .bytes = 5, .reserved_bytes = 8192});
  kernel.access(Access::write, 1, 0x1f, adjacent(kBlock + 0x20000, 1));
  kernel.scalar(kBlock + 0x20004, 4);
  CHECK(kernel.take().empty());
  kernel.scalar(kBlock + 0x20008, 4);
  CHECK(kernel.take().size() == 1);
}

TEST_CASE("a scalar load of three elements may be one of four", "[memory_check]") {
  struct Case {
    uint64_t allocated;
    GpuAddress offset;
    uint32_t bytes;  // of the load, which passes the end of the allocation
    bool is_found;
  };
  // Inside are three dwords; three pairs; two dwords; three at no multiple of 8; five of eight.
  for (const Case& each : {Case{28, 16, 16, false}, Case{24, 0, 32, false}, Case{28, 20, 16, true},
                           Case{24, 12, 16, true}, Case{28, 8, 32, true}}) {
    CAPTURE(each.allocated, each.offset, each.bytes);
    Dispatch kernel;
    constexpr GpuAddress kBegin = kBlock + 0x20000;
    kernel.checker.allocated({.begin = kBegin, .bytes = each.allocated, .reserved_bytes = 8192});
    kernel.access(Access::write, 4, (1u << each.allocated / 4) - 1, adjacent(kBegin, 4));
    kernel.scalar(kBegin + each.offset, each.bytes);
    CHECK(kernel.take().size() == (each.is_found ? 1 : 0));
  }
}

TEST_CASE("the runtime's copies read memory without contents", "[memory_check]") {
  Dispatch copy(true);
  copy.access(Access::read, 4, kAll, adjacent(kBlock, 4));
  copy.scalar(kBlock, 16);
  CHECK(copy.take().empty());
  copy.access(Access::write, 4, kAll, adjacent(kBlock, 4));
  copy.access(Access::write, 4, kAll, adjacent(kBlock + 900, 4));
  CHECK(copy.take().size() == 1);
}

TEST_CASE("each workgroup has contents of LDS of its own", "[memory_check]") {
  Dispatch kernel;
  kernel.lds(Access::write, 4, 0, {0, 0, 0});
  kernel.lds(Access::read, 4, 0, {0, 0, 0});
  CHECK(kernel.take().empty());
  kernel.lds(Access::read, 4, 0, {1, 0, 0});
  const auto other = kernel.take();
  REQUIRE(other.size() == 1);
  CHECK(other[0].what == Class::lds_uninitialised_read);
  CHECK(other[0].lanes == 64);
  // Another thread runs the rest of the first one.
  std::thread([&] { kernel.lds(Access::read, 4, 0, {0, 0, 0}); }).join();
  CHECK(kernel.take().empty());
  kernel.dispatch.workgroup_ended({.workgroup = {0, 0, 0}});
  kernel.lds(Access::read, 4, 0, {2, 0, 0});  // reuses its bits
  CHECK(kernel.take().size() == 1);
}

TEST_CASE("LDS ends with the packet's group segment", "[memory_check]") {
  Dispatch kernel;
  kernel.lds(Access::write, 4, 1024 - 256, {0, 0, 0});
  CHECK(kernel.take().empty());
  kernel.lds(Access::write, 4, 1024 - 252, {0, 0, 0});
  const auto found = kernel.take();
  REQUIRE(found.size() == 1);
  CHECK(found[0].what == Class::lds_out_of_bounds);
  CHECK(found[0].lane == 63);
  CHECK(found[0].address == 1024);
  CHECK(found[0].group_segment_bytes == 1024);
}

TEST_CASE("a dispatch that has ended uses no memory", "[memory_check]") {
  std::vector<Finding> findings;
  Checker checker([&](const Finding& finding) { findings.push_back(finding); }, false);
  checker.add_buffer(kBlock, 1 << 20, {.is_undefined = true});
  for (const GpuAddress begin : {kBlock, kOther})
    checker.allocated({.begin = begin, .bytes = 1000, .reserved_bytes = 8192});
  std::array<GpuAddress, 64> addresses{};
  {
    CheckedDispatch dispatch(checker, {}, checker.begin({}, {}), false, 0);
    for (const GpuAddress begin : {kBlock, kOther}) {
      addresses[0] = begin;
      dispatch.access(
          {.access = Access::write, .size_bytes = 4, .lanes = 1, .address = addresses.data()});
    }
    checker.freed(kBlock, 1);
    CHECK(findings.size() == 1);
  }
  checker.freed(kOther, 2);
  CHECK(findings.size() == 1);
}

}  // namespace uptempo::vgpu::memory_check
