// The ordering rules of a compute queue.
#include <algorithm>
#include <array>
#include <mutex>

#include "device_fixture.hpp"
#include "test/support/catch.hpp"

using namespace uptempo::vgpu;
using namespace uptempo::vgpu::test;

namespace {

// A kernel that runs until it is released.
struct Gate {
  std::atomic<bool> open{false};
  std::atomic<unsigned> entered{0};
  Body body() {
    return [this](const Slice& slice) {
      if (slice.turn == 0) ++entered;
      return open.load(std::memory_order_acquire) ? Result::ended : Result::preempted;
    };
  }
};

}  // namespace

TEST_CASE("a dispatch runs every workgroup of its grid once, partial ones included") {
  DeviceFixture device;
  ComputeQueue queue(device);
  std::mutex mutex;
  std::vector<WorkgroupId> seen;
  ScriptedKernel* kernel = device.kernel([&](const Slice& slice) {
    const std::lock_guard lock(mutex);
    seen.push_back(slice.id);
    return Result::ended;
  });
  amd_signal_t* done = device.signal(1);
  auto packet = dispatch(kernel, 10, 4, false, done);
  packet.setup = 3;
  packet.grid_size_y = 3;
  packet.workgroup_size_y = 2;
  packet.grid_size_z = 2;
  queue.submit(packet);
  REQUIRE(fires(done));
  std::sort(seen.begin(), seen.end());
  std::vector<WorkgroupId> expected;
  for (uint32_t x = 0; x < 3; ++x)
    for (uint32_t y = 0; y < 2; ++y)
      for (uint32_t z = 0; z < 2; ++z) expected.push_back({x, y, z});
  CHECK(seen == expected);
}

TEST_CASE(
    "dispatches without barrier bit run concurrently and complete out of order, while slots are "
    "released "
    "in order") {
  DeviceFixture device;
  ComputeQueue queue(device);
  Gate gate;
  amd_signal_t* slow = device.signal(1);
  amd_signal_t* fast = device.signal(1);
  queue.write(dispatch(device.kernel(gate.body()), 1, 1, false, slow));
  queue.write(dispatch(device.kernel(), 1, 1, false, fast));
  queue.ring();
  REQUIRE(fires(fast));
  CHECK(DeviceFixture::value(slow) == 1);
  CHECK(queue.read_index() == 0);
  gate.open = true;
  REQUIRE(fires(slow));
  CHECK(queue.read_index() == 2);
  CHECK(queue.header(0) == HSA_PACKET_TYPE_INVALID);
  CHECK(queue.header(1) == HSA_PACKET_TYPE_INVALID);
}

TEST_CASE("a barrier bit waits for all earlier packets of its queue and for no others") {
  DeviceFixture device;
  ComputeQueue queue(device);
  ComputeQueue other(device);
  Gate gate;
  Gate elsewhere;
  amd_signal_t* done = device.signal(1);
  std::atomic<bool> ran{false};
  other.submit(dispatch(device.kernel(elsewhere.body())));
  queue.write(dispatch(device.kernel(gate.body())));
  queue.write(dispatch(device.kernel(gate.body())));
  queue.write(dispatch(device.kernel([&](const Slice&) {
    ran = true;
    return Result::ended;
  }),
                       1, 1, true, done));
  queue.ring();
  REQUIRE(eventually([&] { return gate.entered == 2; }));
  settle();
  CHECK_FALSE(ran);
  gate.open = true;
  CHECK(fires(done));
  elsewhere.open = true;
  CHECK(eventually([&] { return other.read_index() == 1; }));
}

TEST_CASE("a barrier packet blocks all later packets, with or without barrier bit") {
  DeviceFixture device;
  ComputeQueue queue(device);
  amd_signal_t* dependency = device.signal(1);
  amd_signal_t* done = device.signal(1);
  std::atomic<bool> ran{false};
  queue.write(barrier_and({dependency}));
  queue.write(dispatch(device.kernel([&](const Slice&) {
    ran = true;
    return Result::ended;
  }),
                       1, 1, false, done));
  queue.ring();
  settle();
  CHECK_FALSE(ran);
  CHECK(queue.read_index() == 0);
  DeviceFixture::set(dependency, 0);
  CHECK(fires(done));
}

TEST_CASE("a barrier packet without barrier bit completes while an earlier dispatch still runs") {
  DeviceFixture device;
  ComputeQueue queue(device);
  Gate gate;
  amd_signal_t* barrier = device.signal(1);
  queue.write(dispatch(device.kernel(gate.body())));
  queue.write(barrier_and({}, false, barrier));
  queue.ring();
  CHECK(fires(barrier));
  CHECK_FALSE(gate.open);
  CHECK(queue.read_index() == 0);
  gate.open = true;
  CHECK(eventually([&] { return queue.read_index() == 2; }));
}

TEST_CASE("a barrier-AND waits for all five dependencies to be 0") {
  DeviceFixture device;
  ComputeQueue queue(device);
  std::vector<amd_signal_t*> dependencies;
  std::vector<const amd_signal_t*> as_const;
  for (int index = 0; index < 5; ++index) {
    dependencies.push_back(device.signal(index + 1));
    as_const.push_back(dependencies.back());
  }
  amd_signal_t* done = device.signal(1);
  queue.submit(barrier_and(as_const, false, done));
  for (amd_signal_t* dependency : dependencies) {
    settle();
    REQUIRE(DeviceFixture::value(done) == 1);
    DeviceFixture::set(dependency, 0);
  }
  CHECK(fires(done));
}

TEST_CASE("only 0 satisfies a dependency: a negative value does not") {
  DeviceFixture device;
  ComputeQueue queue(device);
  amd_signal_t* dependency = device.signal(-1);
  amd_signal_t* done = device.signal(1);
  queue.submit(barrier_and({dependency}, false, done));
  settle();
  CHECK(DeviceFixture::value(done) == 1);
  DeviceFixture::set(dependency, 0);
  CHECK(fires(done));
}

TEST_CASE("a barrier-OR waits for any dependency to be 0, and null handles do not count") {
  DeviceFixture device;
  ComputeQueue queue(device);
  amd_signal_t* first = device.signal(1);
  amd_signal_t* second = device.signal(1);
  amd_signal_t* done = device.signal(1);
  queue.submit(barrier_or({first, second}, false, done));
  settle();
  REQUIRE(DeviceFixture::value(done) == 1);
  DeviceFixture::set(second, 0);
  CHECK(fires(done));
}

TEST_CASE("a barrier-value packet compares the masked value") {
  struct Row {
    hsa_signal_condition32_t condition;
    int64_t reference, mask, blocks, passes;
  };
  const std::vector<Row> rows{
      {HSA_SIGNAL_CONDITION_EQ, 5, -1, 4, 5},        {HSA_SIGNAL_CONDITION_NE, 5, -1, 5, 6},
      {HSA_SIGNAL_CONDITION_LT, 5, -1, 5, -9},       {HSA_SIGNAL_CONDITION_GTE, 5, -1, 4, 7},
      {HSA_SIGNAL_CONDITION_EQ, 2, 0xf, 0x21, 0x32},
  };
  for (const Row& row : rows) {
    CAPTURE(row.condition, row.mask);
    DeviceFixture device;
    ComputeQueue queue(device);
    amd_signal_t* signal = device.signal(row.blocks);
    amd_signal_t* done = device.signal(1);
    queue.submit(barrier_value(signal, row.condition, row.reference, row.mask, done));
    settle();
    CHECK(DeviceFixture::value(done) == 1);
    DeviceFixture::set(signal, row.passes);
    CHECK(fires(done));
  }
}

TEST_CASE("the processor waits for a header that reads INVALID, also after a doorbell") {
  DeviceFixture device;
  ComputeQueue queue(device);
  amd_signal_t* done = device.signal(1);
  const auto packet = barrier_and({}, false, done);
  auto late = packet;
  late.header = HSA_PACKET_TYPE_INVALID;
  queue.submit(late);
  settle();
  CHECK(queue.read_index() == 0);
  CHECK(queue.error() == 0);
  std::atomic_ref<uint16_t>(*static_cast<uint16_t*>(queue.slot(0)))
      .store(packet.header, std::memory_order_release);
  CHECK(fires(done));
}

TEST_CASE(
    "no packet is taken before a doorbell, and none beyond the write index whatever the doorbell's "
    "value") {
  DeviceFixture device;
  ComputeQueue queue(device);
  amd_signal_t* first = device.signal(1);
  amd_signal_t* second = device.signal(1);
  queue.write(barrier_and({}, false, first));
  settle();
  CHECK(DeviceFixture::value(first) == 1);
  // The second packet is in the ring, but the write index has not passed it.
  const auto packet = barrier_and({}, false, second);
  *static_cast<hsa_barrier_and_packet_t*>(queue.slot(1)) = packet;
  queue.ring(1);
  REQUIRE(fires(first));
  settle();
  CHECK(DeviceFixture::value(second) == 1);
  queue.set_write_index(2);
  CHECK(fires(second));
}

TEST_CASE("doorbells of several producers may come in any order: a lower one revokes nothing") {
  DeviceFixture device;
  ComputeQueue queue(device);
  amd_signal_t* done = device.signal(3);
  for (int index = 0; index < 3; ++index) queue.write(barrier_and({}, false, done));
  queue.ring(0);
  CHECK(fires(done));
  queue.write(barrier_and({}, false, done));
  queue.write(barrier_and({}, false, done));
  queue.ring(4);
  queue.ring(3);
  CHECK(eventually([&] { return DeviceFixture::value(done) == -2; }));
}

TEST_CASE("a ring wraps many times") {
  DeviceFixture device;
  ComputeQueue queue(device, 16);
  std::atomic<unsigned> runs{0};
  ScriptedKernel* kernel = device.kernel([&](const Slice&) {
    ++runs;
    return Result::ended;
  });
  amd_signal_t* done = device.signal(1);
  for (int index = 0; index < 999; ++index) queue.submit(dispatch(kernel, 1, 1, index % 3 == 0));
  queue.submit(dispatch(kernel, 1, 1, true, done));
  REQUIRE(fires(done));
  CHECK(runs == 1000);
  CHECK(queue.read_index() == 1000);
}

TEST_CASE("a queue created with percentage 0 does nothing until it is updated") {
  DeviceFixture device;
  ComputeQueue queue(device, 64, true);
  amd_signal_t* done = device.signal(1);
  queue.submit(barrier_and({}, false, done));
  settle();
  CHECK(DeviceFixture::value(done) == 1);
  CHECK(device.processor->update_queue(
      queue.id,
      DeviceFixture::address(static_cast<std::byte*>(queue.queue->hsa_queue.base_address)),
      queue.packets * 64, 100, 15));
  CHECK(fires(done));
}

TEST_CASE(
    "an update with percentage 0 or ring size 0 suspends a queue, and other queues continue") {
  DeviceFixture device;
  ComputeQueue queue(device);
  ComputeQueue other(device);
  const auto ring =
      DeviceFixture::address(static_cast<std::byte*>(queue.queue->hsa_queue.base_address));
  bool by_size = false;
  SECTION("by percentage") { by_size = false; }
  SECTION("by ring size") { by_size = true; }
  CHECK(device.processor->update_queue(queue.id, ring, by_size ? 0 : queue.packets * 64,
                                       by_size ? 100 : 0, 7));
  amd_signal_t* done = device.signal(1);
  amd_signal_t* elsewhere = device.signal(1);
  queue.submit(barrier_and({}, false, done));
  other.submit(barrier_and({}, false, elsewhere));
  CHECK(fires(elsewhere));
  settle();
  CHECK(DeviceFixture::value(done) == 1);
}

TEST_CASE("queues that do not exist are not destroyed, updated or masked") {
  DeviceFixture device;
  const std::array<uint32_t, 1> mask{1};
  CHECK_FALSE(device.processor->destroy_queue(77));
  CHECK_FALSE(device.processor->update_queue(77, 0, 0, 0, 0));
  CHECK_FALSE(device.processor->set_cu_mask(77, mask));
  ComputeQueue queue(device);
  CHECK(device.processor->set_cu_mask(queue.id, mask));
  CHECK(device.processor->destroy_queue(queue.id));
  CHECK_FALSE(device.processor->destroy_queue(queue.id));
}

TEST_CASE("null kernels complete without running, blit kernels of the runtime run") {
  Options options;
  options.null_kernels = true;
  DeviceFixture device(options);
  ComputeQueue queue(device);
  std::atomic<unsigned> user{0};
  std::atomic<unsigned> blit{0};
  ScriptedKernel* user_kernel = device.kernel([&](const Slice&) {
    ++user;
    return Result::ended;
  });
  ScriptedKernel* blit_kernel = device.kernel([&](const Slice&) {
    ++blit;
    return Result::ended;
  });
  blit_kernel->legacy = true;
  amd_signal_t* done = device.signal(2);
  queue.write(dispatch(user_kernel, 1024, 64, true, done));
  queue.write(dispatch(blit_kernel, 128, 64, true, done));
  queue.ring();
  REQUIRE(fires(done));
  CHECK(user == 0);
  CHECK(blit == 2);
}

TEST_CASE("the read index of the program's queues moves in groups of eight on request") {
  Options options;
  options.grouped_read_index = true;
  DeviceFixture device(options);
  // Two sessions of HSA: in each, the first queue is ROCr's own.
  for (int session = 0; session < 2; ++session) {
    ComputeQueue runtime_queue(device);
    ComputeQueue queue(device);
    ScriptedKernel* kernel = device.kernel([](const Slice&) { return Result::ended; });
    for (const uint64_t total : {1u, 7u, 8u, 13u, 16u, 23u}) {
      CAPTURE(session, total);
      amd_signal_t* done = device.signal(2);
      for (ComputeQueue* const each : {&runtime_queue, &queue}) {
        while (each->write_index() + 1 < total) each->write(dispatch(kernel));
        each->submit(dispatch(kernel, 1, 1, true, done));
      }
      REQUIRE(fires(done));
      CHECK(runtime_queue.read_index() == total);
      CHECK(queue.read_index() == total / 8 * 8);
    }
    // ROCr reads the packet at the read index of a queue that stops.
    hsa_kernel_dispatch_packet_t bad = dispatch(kernel);
    bad.header = header_of(static_cast<hsa_packet_type_t>(6));
    queue.submit(bad);
    REQUIRE(eventually([&] { return queue.error() != 0; }));
    settle();
    CHECK(queue.read_index() == 23);
  }
}

TEST_CASE(
    "an eager processor takes packets whose headers are valid, in order, without a doorbell") {
  for (const bool eager : {false, true}) {
    CAPTURE(eager);
    Options options;
    options.eager_packets = eager;
    DeviceFixture device(options);
    const ComputeQueue runtime_queue(device);  // the first one is ROCr's own
    ComputeQueue queue(device);
    Gate gate;
    ScriptedKernel* kernel = device.kernel(gate.body());
    amd_signal_t* done = device.signal(2);
    // Packet 0 keeps the device awake. Nobody rings for packets 1 and 3, or covers them by the
    // write index; slot 2 stays INVALID.
    queue.submit(dispatch(kernel));
    REQUIRE(eventually([&] { return gate.entered == 1; }));
    queue.write(barrier_and({}, false, done));
    queue.write(barrier_and({}));
    queue.write(barrier_and({}, false, done));
    const auto header = [&](uint64_t index) {
      return std::atomic_ref(*static_cast<uint16_t*>(queue.slot(index)));
    };
    const auto value = [](amd_signal_t* signal) {
      return std::atomic_ref(const_cast<int64_t&>(signal->value)).load();
    };
    header(2) = HSA_PACKET_TYPE_INVALID;
    if (!eager) queue.set_write_index(1);
    CHECK(eventually([&] { return value(done) == (eager ? 1 : 2); }));
    settle();
    CHECK(value(done) == (eager ? 1 : 2));
    header(2) = header_of(HSA_PACKET_TYPE_BARRIER_AND);
    CHECK(eventually([&] { return value(done) == (eager ? 0 : 2); }));
    gate.open = true;
    CHECK(eventually([&] { return queue.read_index() == (eager ? 4 : 1); }));
  }
}

TEST_CASE("the read index passes a running dispatch only on request and on the program's queues") {
  uint64_t passed = 0;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    Options options;
    options.early_read_index = true;
    options.seed = seed;
    DeviceFixture device(options);
    ComputeQueue runtime_queue(device);  // the first one is ROCr's own
    ComputeQueue queue(device);
    Gate gate;
    std::atomic<unsigned> kept{0}, overwritten{0}, wrong{0};
    ScriptedKernel* kernel = device.kernel([&](const Slice& slice) {
      const Result result = gate.body()(slice);
      if (result == Result::preempted) return result;
      // A kernel that reads its packet late finds what the slot then holds.
      const auto* packet =
          reinterpret_cast<const hsa_kernel_dispatch_packet_t*>(slice.executor.memory.translate(
              slice.dispatch.packet_address, sizeof(hsa_kernel_dispatch_packet_t), Access::read));
      if (packet == nullptr || packet->kernel_object != slice.dispatch.packet.kernel_object) {
        ++wrong;
      } else {
        ++(packet->grid_size_x == 64 ? kept : overwritten);
      }
      // The geometry of the dispatch is that of its launch.
      if (slice.dispatch.packet.grid_size_x != 64) ++wrong;
      return result;
    });
    for (int index = 0; index < 32; ++index) {
      queue.write(dispatch(kernel, 64, 64));
      runtime_queue.write(dispatch(kernel, 64, 64));
    }
    queue.ring();
    runtime_queue.ring();
    REQUIRE(eventually([&] { return gate.entered == 64; }));
    passed += queue.read_index();
    CHECK(queue.read_index() < 32);
    CHECK(runtime_queue.read_index() == 0);
    const auto reused = static_cast<unsigned>(queue.read_index());
    for (uint64_t index = 0; index < reused; ++index)
      static_cast<hsa_kernel_dispatch_packet_t*>(queue.slot(index))->grid_size_x = 0xdead;
    settle();
    gate.open = true;
    CHECK(eventually([&] { return queue.read_index() == 32 && runtime_queue.read_index() == 32; }));
    // The read index passes kernels that still run.
    CHECK(eventually([&] { return kept + overwritten + wrong == 64; }));
    CHECK(wrong == 0);
    CHECK(overwritten == reused);
    CHECK(kept == 64 - reused);
  }
  CHECK(passed > 0);
}
