// Fields that firmware ignores. A packet that sets them runs; ignored_field() names them for
// --verbose. HIP 5.7 and 6.4 leave them uninitialised.
#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "cp/packet/aql_packet.hpp"
#include "device_fixture.hpp"
#include "test/support/catch.hpp"

using namespace uptempo::vgpu;
using namespace uptempo::vgpu::test;

namespace {

template <typename Packet>
std::string name_in(const Packet& packet) {
  static_assert(sizeof packet == kAqlPacketBytes);
  return std::string(ignored_field(reinterpret_cast<const std::byte*>(&packet)));
}

}  // namespace

TEST_CASE("a dispatch runs whatever its undeclared dimensions and reserved fields hold") {
  struct Row {
    std::string field;  // that ignored_field() names
    uint32_t workgroups;
    std::function<void(hsa_kernel_dispatch_packet_t&)> make;
  };
  const std::vector<Row> rows{
      {"", 4, [](auto&) {}},
      {"setup bits 2..15", 4, [](auto& packet) { packet.setup |= 0x8004; }},
      {"reserved0", 4, [](auto& packet) { packet.reserved0 = 7; }},
      {"the sizes of y, which the dispatch does not declare", 4,
       [](auto& packet) { packet.grid_size_y = packet.grid_size_z = 0; }},
      {"the sizes of y, which the dispatch does not declare", 4,
       [](auto& packet) { packet.grid_size_y = 9; }},
      {"the sizes of z, which the dispatch does not declare", 8,
       [](auto& packet) {
         packet.setup = 2;
         packet.grid_size_y = 2;
         packet.workgroup_size_z = 0;
       }},
      {"", 8,
       [](auto& packet) {
         packet.setup = 3;
         packet.grid_size_z = 2;
       }},
  };
  DeviceFixture device;
  std::atomic<uint32_t> workgroups{0};
  ScriptedKernel* const kernel = device.kernel([&](const Slice&) {
    ++workgroups;
    return Result::ended;
  });
  for (const Row& row : rows) {
    CAPTURE(row.field, row.workgroups);
    amd_signal_t* const done = device.signal(1);
    auto packet = dispatch(kernel, 256, 64, false, done);
    row.make(packet);
    CHECK(name_in(packet) == row.field);
    ComputeQueue queue(device);
    workgroups = 0;
    queue.submit(packet);
    CHECK(fires(done));
    CHECK(queue.error() == 0);
    CHECK(workgroups == row.workgroups);
  }
}

TEST_CASE("a grid smaller than a workgroup is one workgroup of the grid's size") {
  DeviceFixture device;
  std::atomic<uint32_t> workgroups{0};
  ScriptedKernel* const kernel = device.kernel([&](const Slice&) {
    ++workgroups;
    return Result::ended;
  });
  amd_signal_t* const done = device.signal(1);
  ComputeQueue queue(device);
  queue.submit(dispatch(kernel, 3, 64, false, done));
  CHECK(fires(done));
  CHECK(workgroups == 1);
}

TEST_CASE("a kernarg segment that is not mapped is no error before the kernel reads it") {
  DeviceFixture device;
  ScriptedKernel* const kernel = device.kernel([](const Slice&) { return Result::ended; });
  kernel->kernarg_bytes = 64;
  for (const uint64_t address : {uint64_t{0}, uint64_t{0x1000}}) {
    amd_signal_t* const done = device.signal(1);
    auto packet = dispatch(kernel, 64, 64, false, done);
    packet.kernarg_address = reinterpret_cast<void*>(address);
    ComputeQueue queue(device);
    queue.submit(packet);
    CHECK(fires(done));
  }
}

TEST_CASE("barrier packets complete whatever their reserved fields hold") {
  DeviceFixture device;
  ComputeQueue queue(device);
  amd_signal_t* const done = device.signal(6);
  auto barrier = barrier_and({}, false, done);
  CHECK(name_in(barrier).empty());
  barrier.reserved0 = 1;
  CHECK(name_in(barrier) == "reserved0");
  queue.submit(barrier);
  barrier.reserved0 = 0;
  barrier.reserved1 = 1;
  CHECK(name_in(barrier) == "reserved1");
  queue.submit(barrier);
  auto wait = barrier_value(nullptr, HSA_SIGNAL_CONDITION_EQ, 0, -1, done);
  CHECK(name_in(wait).empty());
  wait.header.reserved = 1;
  CHECK(name_in(wait) == "the header's reserved byte");
  queue.submit(wait);
  wait.header.reserved = 0;
  wait.reserved0 = 1;
  CHECK(name_in(wait) == "reserved0");
  queue.submit(wait);
  wait.reserved0 = 0;
  wait.reserved1 = 0x5a5a5a5a;
  CHECK(name_in(wait) == "reserved1");
  queue.submit(wait);
  wait.reserved1 = 0;
  wait.reserved2 = 0x5a5a5a5a5a5a5a5a;
  CHECK(name_in(wait) == "reserved2");
  queue.submit(wait);
  CHECK(fires(done));
  CHECK(queue.error() == 0);
}
