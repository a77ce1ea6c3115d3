// Completion of packets: signals, slots, interrupts and times.
#include <algorithm>

#include "device/clock.hpp"
#include "device_fixture.hpp"
#include "test/support/catch.hpp"

using namespace uptempo::vgpu;
using namespace uptempo::vgpu::test;

TEST_CASE("each packet decrements its completion signal by one, and a null signal is allowed") {
  DeviceFixture device;
  ComputeQueue queue(device);
  amd_signal_t* done = device.signal(3);
  queue.write(dispatch(device.kernel(), 256, 64, false, done));
  queue.write(barrier_and({}, false, done));
  queue.write(dispatch(device.kernel(), 1, 1));
  queue.write(barrier_value(nullptr, HSA_SIGNAL_CONDITION_EQ, 9, -1, done));
  queue.ring();
  CHECK(fires(done));
  CHECK(eventually([&] { return queue.read_index() == 4; }));
}

TEST_CASE("a packet's slot is free when its signal has fired") {
  constexpr uint64_t kPackets = 200;
  DeviceFixture device;
  ComputeQueue queue(device, 256);
  amd_signal_t* done = device.signal(kPackets, 77);
  // Runs on the processor's thread in the middle of its turn, so the read index cannot have moved
  // since.
  uint64_t fired = 0, free = 0;
  device.interrupts.when_raised = [&](uint32_t) {
    const uint64_t packet = fired++;
    if (queue.read_index() > packet && queue.header(packet) == HSA_PACKET_TYPE_INVALID) ++free;
  };
  for (uint64_t index = 0; index < kPackets; ++index) {
    if (index % 2 == 0) {
      queue.write(dispatch(device.kernel(), 1, 1, true, done));
    } else {
      queue.write(barrier_and({}, true, done));
    }
  }
  queue.ring();
  REQUIRE(eventually([&] { return device.interrupts.raised(77) == kPackets; }));
  CHECK(fired == kPackets);
  CHECK(free == kPackets);
}

TEST_CASE("a kernel's stores are visible when its signal has fired") {
  DeviceFixture device;
  ComputeQueue queue(device);
  auto* words = device.allocate_object<uint32_t>(4096);
  ScriptedKernel* kernel = device.kernel([&](const Slice& slice) {
    ++words[slice.id[0]];
    return Result::ended;
  });
  for (uint32_t round = 1; round <= 50; ++round) {
    amd_signal_t* done = device.signal(1);
    queue.submit(dispatch(kernel, 4096, 1, true, done));
    REQUIRE(fires(done));
    CHECK(std::all_of(words, words + 4096, [&](uint32_t word) { return word == round; }));
  }
}

TEST_CASE(
    "an interrupt signal gets its event id in the mailbox and raises the event, after the value "
    "has "
    "changed") {
  DeviceFixture device;
  ComputeQueue queue(device);
  amd_signal_t* quiet = device.signal(1);
  amd_signal_t* loud = device.signal(1, 42);
  queue.submit(barrier_and({}, false, quiet));
  REQUIRE(fires(quiet));
  CHECK(device.interrupts.raised(0) == 0);
  queue.submit(barrier_and({}, false, loud));
  REQUIRE(eventually([&] { return device.interrupts.raised(42) == 1; }));
  CHECK(DeviceFixture::value(loud) == 0);
  CHECK(*reinterpret_cast<const uint64_t*>(loud->event_mailbox_ptr) == 42);
}

TEST_CASE("start and end times are written, in GPU ticks, when the queue's profiling is on") {
  DeviceFixture device;
  ComputeQueue queue(device);
  amd_signal_t* untimed = device.signal(1);
  queue.submit(dispatch(device.kernel(), 64, 64, true, untimed));
  REQUIRE(fires(untimed));
  CHECK(untimed->start_ts == 0);
  CHECK(untimed->end_ts == 0);

  queue.set_property(AMD_QUEUE_PROPERTIES_ENABLE_PROFILING, true);
  amd_signal_t* timed = device.signal(1);
  ScriptedKernel* kernel = device.kernel([](const Slice&) {
    const auto end = gpu_clock_ticks() + 2000;  // 20 us
    while (gpu_clock_ticks() < end) {
    }
    return Result::ended;
  });
  const uint64_t before = gpu_clock_ticks();
  queue.submit(dispatch(kernel, 1, 1, true, timed));
  REQUIRE(fires(timed));
  CHECK(timed->start_ts >= before);
  CHECK(timed->end_ts >= timed->start_ts + 2000);
  CHECK(timed->end_ts <= gpu_clock_ticks());
}

TEST_CASE("the last packet of a chain has its own start and end times") {
  DeviceFixture device;
  ComputeQueue queue(device);
  queue.set_property(AMD_QUEUE_PROPERTIES_ENABLE_PROFILING, true);
  for (int round = 0; round < 3; ++round) {  // a kernel is chained from its second dispatch on
    std::atomic<uint64_t> last_start{0};
    ScriptedKernel* kernel = device.kernel([&](const Slice&) {
      last_start = gpu_clock_ticks();
      return Result::ended;
    });
    amd_signal_t* done = device.signal(1);
    for (int i = 0; i < 5; ++i) queue.write(dispatch(kernel, 1, 1, true));
    queue.submit(dispatch(kernel, 1, 1, true, done));
    REQUIRE(fires(done));
    CHECK(done->start_ts != 0);
    CHECK(done->start_ts <= last_start);
    CHECK(done->end_ts >= last_start);
  }
}

TEST_CASE("profiling enabled while packets are in flight gives each packet its own times or none") {
  std::atomic<bool> running{false};
  std::atomic<bool> end{false};
  DeviceFixture device;
  ComputeQueue queue(device);
  queue.set_property(AMD_QUEUE_PROPERTIES_ENABLE_PROFILING, true);
  amd_signal_t* earlier = device.signal(1);
  queue.submit(barrier_and({}, false, earlier));
  REQUIRE(fires(earlier));
  queue.set_property(AMD_QUEUE_PROPERTIES_ENABLE_PROFILING, false);
  amd_signal_t* dispatched = device.signal(1);
  amd_signal_t* dependency = device.signal(1);
  amd_signal_t* waited = device.signal(1);
  queue.write(dispatch(device.kernel([&](const Slice&) {
    running = true;
    return end ? Result::ended : Result::preempted;
  }),
                       1, 1, false, dispatched));
  queue.write(barrier_and({dependency}, false, waited));
  queue.ring();
  REQUIRE(eventually([&] { return running.load(); }));
  device.end_turn();
  const uint64_t switched_on = gpu_clock_ticks();
  queue.set_property(AMD_QUEUE_PROPERTIES_ENABLE_PROFILING, true);
  SECTION("a waiting barrier is timed from then on") {
    device.end_turn();  // which may have read the switch before, but the dependency afterwards
    const uint64_t resolved = gpu_clock_ticks();
    DeviceFixture::set(dependency, 0);
    REQUIRE(fires(waited));
    CHECK(waited->start_ts >= switched_on);
    CHECK(waited->end_ts >= resolved);
  }
  SECTION("a running dispatch started without a time and gets none") {
    end = true;
    REQUIRE(fires(dispatched));
    CHECK(dispatched->start_ts == 0);
    CHECK(dispatched->end_ts == 0);
  }
  end = true;
  DeviceFixture::set(dependency, 0);
  CHECK(eventually([&] { return queue.read_index() == 3; }));
}

TEST_CASE("a dependency between two queues makes the first queue's results visible to the second") {
  DeviceFixture device;
  ComputeQueue first(device);
  ComputeQueue second(device);
  auto* word = device.allocate_object<uint32_t>();
  for (uint32_t round = 1; round <= 100; ++round) {
    amd_signal_t* produced = device.signal(1);
    amd_signal_t* consumed = device.signal(1);
    std::atomic<uint32_t> found{0};
    second.write(barrier_and({produced}));
    second.write(dispatch(device.kernel([&](const Slice&) {
      found = *word;
      return Result::ended;
    }),
                          1, 1, true, consumed));
    second.ring();
    first.submit(dispatch(device.kernel([&](const Slice&) {
      *word = round;
      return Result::ended;
    }),
                          1, 1, true, produced));
    REQUIRE(fires(consumed));
    REQUIRE(found == round);
  }
}
