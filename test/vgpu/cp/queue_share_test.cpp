// CU masks and queue priorities. With one worker, the order in which workgroups start is exact.
#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "device_fixture.hpp"
#include "test/support/catch.hpp"

using namespace uptempo::vgpu;
using namespace uptempo::vgpu::test;

namespace {

constexpr uint32_t kLow = 3, kHigh = 11;  // queues start with 7

[[nodiscard]] bool set_priority(DeviceFixture& device, const ComputeQueue& queue,
                                uint32_t priority) {
  return device.processor->update_queue(
      queue.id, reinterpret_cast<GpuAddress>(queue.queue->hsa_queue.base_address),
      queue.packets * 64, 100, priority);
}

// Submits from the processor's thread: through the device's own mapping, which is never protected.
template <typename Packet>
void submit_as_device(ComputeQueue& queue, const Packet& packet) {
  const uint64_t index = queue.write(packet);
  std::atomic_ref<uint64_t>(*queue.bell.alias).store(index, std::memory_order_release);
}

// A kernel whose workgroups append `name` to `order` and end. Each takes a whole slice, so the
// processor reads its queues before the next workgroup starts.
ScriptedKernel* named(DeviceFixture& device, std::string& order, char name,
                      std::function<void()> then = nullptr) {
  ScriptedKernel* kernel = device.kernel([&order, name, then](const Slice&) {
    order += name;
    if (then) then();
    return Result::ended;
  });
  kernel->instructions_per_slice = 8192;
  return kernel;
}

std::string times(size_t count, char name) { return std::string(count, name); }

}  // namespace

TEST_CASE("workgroups of a queue of higher priority start first, also those submitted later",
          "[prompt]") {
  DeviceFixture device(with_workers(1));
  ComputeQueue low(device);
  ComputeQueue normal(device);
  ComputeQueue high(device);
  REQUIRE(set_priority(device, low, kLow));
  REQUIRE(set_priority(device, high, kHigh));
  std::string order;
  amd_signal_t* done = device.signal(3);
  ScriptedKernel* of_high = named(device, order, 'h');
  ScriptedKernel* of_normal = named(device, order, 'n', [&] {
    if (order == "llln") submit_as_device(high, dispatch(of_high, 20, 1, false, done));
  });
  ScriptedKernel* of_low = named(device, order, 'l', [&] {
    // The third of the eight workgroups that the worker has claimed.
    if (order == "lll") submit_as_device(normal, dispatch(of_normal, 30, 1, false, done));
  });
  low.submit(dispatch(of_low, 200, 1, false, done));
  REQUIRE(fires(done));
  CHECK(order == times(3, 'l') + times(1, 'n') + times(20, 'h') + times(29, 'n') + times(197, 'l'));
}

TEST_CASE("queue priorities of one pipe priority take turns", "[prompt]") {
  for (const auto& [one, other] : {std::pair{0u, 6u}, std::pair{7u, 10u}, std::pair{11u, 15u}}) {
    CAPTURE(one, other);
    DeviceFixture device(with_workers(1));
    ComputeQueue first(device);
    ComputeQueue second(device);
    REQUIRE(set_priority(device, first, one));
    REQUIRE(set_priority(device, second, other));
    std::string order;
    amd_signal_t* done = device.signal(2);
    ScriptedKernel* of_second = named(device, order, 's');
    ScriptedKernel* of_first = named(device, order, 'f', [&] {
      if (order == "f") submit_as_device(second, dispatch(of_second, 100, 1, false, done));
    });
    first.submit(dispatch(of_first, 100, 1, false, done));
    REQUIRE(fires(done));
    CHECK(order.find('s') < 20);
    CHECK(order.rfind('f') > 100);
    CHECK(order.size() == 200);
  }
}

TEST_CASE("a new priority holds for dispatches that wait already", "[prompt]") {
  DeviceFixture device(with_workers(1));
  ComputeQueue first(device);
  ComputeQueue second(device);
  std::string order;
  bool updated = false;
  amd_signal_t* done = device.signal(2);
  ScriptedKernel* of_second = named(device, order, 's');
  ScriptedKernel* of_first = named(device, order, 'f', [&] {
    if (order == "f") {
      updated = set_priority(device, second, kLow);
      submit_as_device(second, dispatch(of_second, 50, 1, false, done));
    } else if (order == times(20, 'f')) {
      updated = set_priority(device, second, kHigh) && updated;
    }
  });
  first.submit(dispatch(of_first, 100, 1, false, done));
  REQUIRE(fires(done));
  CHECK(updated);
  CHECK(order == times(20, 'f') + times(50, 's') + times(80, 'f'));
}

TEST_CASE("resident workgroups continue beside a kernel of higher priority that does not end") {
  for (const uint32_t workers : {1u, 3u}) {
    CAPTURE(workers);
    DeviceFixture device(with_workers(workers));
    ComputeQueue low(device);
    ComputeQueue high(device);
    REQUIRE(set_priority(device, low, kLow));
    REQUIRE(set_priority(device, high, kHigh));
    std::atomic<unsigned> low_started{0}, high_slices{0};
    std::atomic<bool> stop{false};
    amd_signal_t* low_done = device.signal(1);
    amd_signal_t* high_done = device.signal(1);
    low.submit(dispatch(device.kernel([&](const Slice& slice) {
      if (slice.turn == 0) ++low_started;
      return high_slices > 1000 ? Result::ended : Result::preempted;
    }),
                        50, 1, false, low_done));
    REQUIRE(eventually([&] { return low_started == 50; }));
    high.submit(dispatch(device.kernel([&](const Slice&) {
      ++high_slices;
      return stop ? Result::ended : Result::preempted;
    }),
                         50, 1, false, high_done));
    CHECK(fires(low_done));
    stop = true;
    CHECK(fires(high_done));
  }
}

TEST_CASE("a kernel that fills the device starts before one of lower priority and ends before it") {
  for (const uint32_t workers : {1u, 3u}) {
    CAPTURE(workers);
    DeviceFixture device(with_workers(workers));
    ComputeQueue low(device);
    ComputeQueue high(device);
    REQUIRE(set_priority(device, low, kLow));
    REQUIRE(set_priority(device, high, kHigh));
    std::atomic<unsigned> high_started{0}, high_ended{0}, ended_before_low{0};
    std::atomic<bool> released{false};
    amd_signal_t* done = device.signal(2);
    // 16 waves a workgroup: 208 of 300 are resident.
    high.submit(dispatch(device.kernel([&](const Slice& slice) {
      if (slice.turn == 0) ++high_started;
      if (!released) return Result::preempted;
      ++high_ended;
      return Result::ended;
    }),
                         300 * 1024, 1024, false, done));
    REQUIRE(eventually([&] { return high_started == 208; }));
    low.submit(dispatch(device.kernel([&](const Slice&) {
      ended_before_low = high_ended.load();
      return Result::ended;
    }),
                        64, 64, false, done));
    settle();
    CHECK(ended_before_low == 0);
    CHECK(high_started == 208);
    released = true;
    CHECK(fires(done));
    CHECK(high_started == 300);
    CHECK(ended_before_low > 0);
  }
}

TEST_CASE("workgroups have the units of their queue's mask, and only theirs") {
  DeviceFixture device(with_workers(3));
  ComputeQueue masked(device);
  ComputeQueue other(device);
  const std::vector<uint32_t> mask{0x101, 0, 0, 0};  // units 0 and 1 of engine 0
  REQUIRE(device.processor->set_cu_mask(masked.id, mask));
  std::atomic<unsigned> in_mask{0}, everywhere{0};
  ScriptedKernel* kernel = device.kernel([&](const Slice& slice) {
    if (slice.units == ComputeUnitSet::all(*device.options.device)) ++everywhere;
    if (slice.units.size() == 2 && slice.units.engine(0) == 3) ++in_mask;
    return Result::ended;
  });
  const auto run = [&](ComputeQueue& queue) {
    amd_signal_t* done = device.signal(1);
    in_mask = everywhere = 0;
    queue.submit(dispatch(kernel, 100, 1, false, done));
    REQUIRE(fires(done));
  };
  run(masked);
  CHECK(in_mask == 100);
  run(other);
  CHECK(everywhere == 100);
  REQUIRE(device.processor->set_cu_mask(masked.id, std::vector<uint32_t>(4, 0xffffffff)));
  run(masked);
  CHECK(everywhere == 100);
}

TEST_CASE("a mask takes effect for workgroups of a running dispatch that start later", "[prompt]") {
  DeviceFixture device(with_workers(1));
  ComputeQueue queue(device);
  std::vector<unsigned> sizes;
  bool masked = false;
  amd_signal_t* done = device.signal(1);
  ScriptedKernel* kernel = device.kernel([&](const Slice& slice) {
    sizes.push_back(slice.units.size());
    if (sizes.size() == 4)
      masked = device.processor->set_cu_mask(queue.id, std::vector<uint32_t>{0x7});
    return Result::ended;
  });
  queue.submit(dispatch(kernel, 100, 1, false, done));
  REQUIRE(fires(done));
  CHECK(masked);
  REQUIRE(sizes.size() == 100);
  // The worker had claimed the first eight.
  CHECK(std::count(sizes.begin(), sizes.end(), 104u) == 8);
  CHECK(std::count(sizes.begin(), sizes.end(), 3u) == 92);
}

TEST_CASE("the wave slots of the mask's units bound the resident workgroups of the queue") {
  for (const uint32_t workers : {1u, 3u}) {
    CAPTURE(workers);
    DeviceFixture device(with_workers(workers));
    ComputeQueue masked(device);
    ComputeQueue other(device);
    REQUIRE(device.processor->set_cu_mask(masked.id, std::vector<uint32_t>{0x5}));
    std::atomic<unsigned> started{0}, resident{0}, most{0};
    std::atomic<bool> released{false};
    amd_signal_t* done = device.signal(2);
    ScriptedKernel* kernel = device.kernel([&](const Slice& slice) {
      if (slice.turn == 0) {
        ++started;
        const unsigned now = ++resident;
        unsigned seen = most;
        while (seen < now && !most.compare_exchange_weak(seen, now)) {
        }
      }
      if (!released) return Result::preempted;
      --resident;
      return Result::ended;
    });
    for (int count = 0; count < 2; ++count)
      masked.submit(dispatch(kernel, 20 * 1024, 1024, false, done));
    // Two units of 32 slots each; a workgroup has 16 waves.
    REQUIRE(eventually([&] { return started >= 4; }));
    amd_signal_t* elsewhere = device.signal(1);
    other.submit(dispatch(device.kernel(), 40 * 1024, 1024, false, elsewhere));
    REQUIRE(fires(elsewhere));
    settle();
    CHECK(started == 4);
    released = true;
    REQUIRE(fires(done));
    CHECK(started == 40);
    CHECK(most == 4);
  }
}

TEST_CASE("a queue without a unit in its mask starts nothing until it gets another mask") {
  const uint32_t workers = GENERATE(1u, 3u);
  CAPTURE(workers);
  DeviceFixture device(with_workers(workers));
  ComputeQueue queue(device);
  ComputeQueue other(device);
  REQUIRE(device.processor->set_cu_mask(queue.id, std::vector<uint32_t>{0, 0, 0, 0xffffff00}));
  std::atomic<unsigned> started{0};
  amd_signal_t* done = device.signal(1);
  queue.submit(dispatch(device.kernel([&](const Slice&) {
    ++started;
    return Result::ended;
  }),
                        64, 1, false, done));
  amd_signal_t* elsewhere = device.signal(1);
  other.submit(dispatch(device.kernel(), 64, 1, false, elsewhere));
  REQUIRE(fires(elsewhere));
  settle();
  CHECK(started == 0);
  SECTION("another mask") {
    REQUIRE(device.processor->set_cu_mask(queue.id, std::vector<uint32_t>{0x1}));
    CHECK(fires(done));
    CHECK(started == 64);
  }
  SECTION("destruction") {
    queue.destroy();
    CHECK(started == 0);
    CHECK(DeviceFixture::value(done) == 1);
  }
}
