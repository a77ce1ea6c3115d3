// The device's counters of packets, doorbells and signals (device/device_counts.hpp).
#include "device/device_counts.hpp"

#include "device_fixture.hpp"
#include "sdma_ring.hpp"
#include "test/support/catch.hpp"

using namespace uptempo::vgpu;
using namespace uptempo::vgpu::test;

TEST_CASE("barrier bits and scopes of completed packets are counted by their headers", "[counts]") {
  DeviceFixture device;
  ComputeQueue queue(device);
  const ScriptedKernel* kernel = device.kernel();
  const auto write = [&](bool barrier, hsa_fence_scope_t acquire, hsa_fence_scope_t release) {
    auto packet = dispatch(kernel);
    packet.header = header_of(HSA_PACKET_TYPE_KERNEL_DISPATCH, barrier, acquire, release);
    queue.write(packet);
  };
  write(true, kSystem, kAgent);
  write(false, kAgent, kAgent);
  write(false, kNone, kNone);
  amd_signal_t* done = device.signal(1);
  auto last = barrier_and({}, true, done);
  last.header = header_of(HSA_PACKET_TYPE_BARRIER_AND, true, kAgent, kSystem);
  queue.submit(last);
  REQUIRE(fires(done));

  CHECK(device.counts.dispatches() == 3);
  CHECK(device.counts.others() == 1);
  CHECK(device.counts.barrier_bits() == 2);
  CHECK(device.counts.acquires(FenceScope::none) == 1);
  CHECK(device.counts.acquires(FenceScope::agent) == 2);
  CHECK(device.counts.acquires(FenceScope::system) == 1);
  CHECK(device.counts.releases(FenceScope::none) == 1);
  CHECK(device.counts.releases(FenceScope::agent) == 2);
  CHECK(device.counts.releases(FenceScope::system) == 1);
  CHECK(device.counts.doorbells() == 1);
  CHECK(device.counts.signal_updates() == 1);
  CHECK(device.counts.interrupts() == 0);
}

TEST_CASE("a packet without completion signal updates no signal", "[counts]") {
  DeviceFixture device;
  ComputeQueue queue(device);
  queue.submit(dispatch(device.kernel()));
  REQUIRE(eventually([&] { return device.counts.dispatches() == 1; }));
  REQUIRE(eventually([&] { return queue.read_index() == 1; }));
  CHECK(device.counts.signal_updates() == 0);
}

TEST_CASE("a signal with an event is an interrupt, counted before the signal can be seen",
          "[counts]") {
  DeviceFixture device;
  ComputeQueue queue(device);
  for (uint64_t round = 1; round <= 50; ++round) {
    amd_signal_t* done = device.signal(1, 7);
    queue.submit(barrier_and({}, true, done));
    while (device.value(done) != 0) {
    }
    CHECK(device.counts.interrupts() == round);
    CHECK(device.counts.signal_updates() == round);
    CHECK(device.counts.others() == round);
    CHECK(device.counts.doorbells() == round);
  }
}

TEST_CASE("the interrupt of a copy is counted once, before the copy's signal can be seen",
          "[counts]") {
  DeviceFixture device;
  SdmaRing ring(device);
  amd_signal_t* silent = device.signal(1);  // has no event
  amd_signal_t* done = device.signal(1, 77);
  auto* open = device.allocate_object<uint32_t>(1);
  ring.write(decrement(const_cast<int64_t*>(&silent->value)));
  ring.write(poll(open, 1));
  ring.write(decrement(const_cast<int64_t*>(&done->value)));
  ring.write(poll(open, 2));  // keeps the engine between the signal and its interrupt
  ring.submit(trap(77));
  REQUIRE(fires(silent));
  CHECK(device.counts.signal_updates() == 1);
  CHECK(device.counts.interrupts() == 0);
  std::atomic_ref<uint32_t>(*open).store(1);
  REQUIRE(fires(done));
  CHECK(device.counts.signal_updates() == 2);
  CHECK(device.counts.interrupts() == 1);
  CHECK(device.interrupts.raised(77) == 0);
  std::atomic_ref<uint32_t>(*open).store(2);
  REQUIRE(eventually([&] { return device.interrupts.raised(77) == 1; }));
  CHECK(device.counts.interrupts() == 1);

  ring.submit(trap(77));  // of no signal
  REQUIRE(ring.drained());
  CHECK(device.counts.interrupts() == 2);
}
