// Progress and fairness of workgroups, and the deterministic order.
#include <algorithm>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "device_fixture.hpp"
#include "test/support/catch.hpp"

using namespace uptempo::vgpu;
using namespace uptempo::vgpu::test;

TEST_CASE(
    "a kernel that spins on a kernel of another queue lets it run, with one worker as with "
    "several") {
  for (const uint32_t workers : {1u, 2u, 4u}) {
    CAPTURE(workers);
    DeviceFixture device(with_workers(workers));
    ComputeQueue first(device);
    ComputeQueue second(device);
    std::atomic<bool> released{false};
    amd_signal_t* waited = device.signal(1);
    first.submit(dispatch(
        device.kernel([&](const Slice&) { return released ? Result::ended : Result::preempted; }),
        4096, 64, false, waited));
    settle();
    second.submit(dispatch(device.kernel([&](const Slice&) {
      released = true;
      return Result::ended;
    }),
                           64, 64));
    CHECK(fires(waited));
  }
}

TEST_CASE("a kernel that spins on the host lets queues be served") {
  DeviceFixture device(with_workers(1));
  ComputeQueue queue(device);
  ComputeQueue other(device);
  auto* word = device.allocate_object<uint32_t>();
  amd_signal_t* waited = device.signal(1);
  queue.submit(dispatch(device.kernel([&](const Slice&) {
    return std::atomic_ref<uint32_t>(*word).load(std::memory_order_acquire) != 0
               ? Result::ended
               : Result::preempted;
  }),
                        1, 1, false, waited));
  for (int round = 0; round < 50; ++round) {
    amd_signal_t* done = device.signal(1);
    other.submit(dispatch(device.kernel(), 256, 64, true, done));
    REQUIRE(fires(done));
  }
  CHECK(DeviceFixture::value(waited) == 1);
  std::atomic_ref<uint32_t>(*word).store(1, std::memory_order_release);
  CHECK(fires(waited));
}

TEST_CASE("workgroups that wait for all others of their dispatch become resident together") {
  for (const uint32_t workers : {1u, 3u}) {
    CAPTURE(workers);
    DeviceFixture device(with_workers(workers));
    ComputeQueue queue(device);
    constexpr unsigned groups = 416;  // four workgroups on each of 104 compute units
    std::atomic<unsigned> arrived{0};
    std::atomic<unsigned> slices{0};
    amd_signal_t* done = device.signal(1);
    queue.submit(dispatch(device.kernel([&](const Slice& slice) {
      ++slices;
      if (slice.turn == 0) ++arrived;
      return arrived == groups ? Result::ended : Result::preempted;
    }),
                          groups * 256, 256, false, done));
    CHECK(fires(done));
    // Waiting workgroups that give up their slices at once do not get one turn each between any two
    // starts.
    if (workers == 1) CHECK(slices < 20 * groups);
  }
}

TEST_CASE("workgroups that have ended leave their room to all others of their dispatch") {
  for (const uint32_t workers : {1u, 2u, 3u, 5u}) {
    CAPTURE(workers);
    DeviceFixture device(with_workers(workers));
    ComputeQueue queue(device);
    // Two workgroups of 16 waves fit on each of 104 compute units. A worker's part are blocks of
    // eight in turn. Of the last part all wait for one another, and the others end at once.
    constexpr unsigned kRoom = 208;
    const unsigned groups = kRoom * workers;
    std::atomic<unsigned> arrived{0};
    amd_signal_t* done = device.signal(1);
    queue.submit(dispatch(device.kernel([&](const Slice& slice) {
      if (slice.id[0] / 8 % workers != workers - 1) return Result::ended;
      if (slice.turn == 0) ++arrived;
      return arrived == kRoom ? Result::ended : Result::preempted;
    }),
                          groups * 1024, 1024, false, done));
    CHECK(fires(done));
  }
}

TEST_CASE("no more workgroups of a dispatch are resident than compute units have room for") {
  for (const uint32_t workers : {1u, 2u, 5u}) {
    CAPTURE(workers);
    DeviceFixture device(with_workers(workers));
    ComputeQueue queue(device);
    std::atomic<int> resident{0}, most{0};
    amd_signal_t* done = device.signal(1);
    hsa_kernel_dispatch_packet_t packet = dispatch(device.kernel([&](const Slice& slice) {
      if (slice.turn == 0) {
        const int now = ++resident;
        int seen = most;
        while (seen < now && !most.compare_exchange_weak(seen, now)) {
        }
      }
      if (slice.turn < slice.id[0] % 5) return Result::preempted;
      --resident;
      return Result::ended;
    }),
                                                   4000 * 64, 64, false, done);
    packet.group_segment_size = 22000;  // 22016 bytes in blocks of 512: two on a compute unit
    queue.submit(packet);
    CHECK(fires(done));
    CHECK(most <= 208);
  }
}

TEST_CASE("a grid may have 2^62 work-items: only each dimension is limited") {
  Options options;
  options.deterministic = true;  // starts at a random workgroup, not at the first one
  DeviceFixture device(options);
  ComputeQueue queue(device);
  std::mutex mutex;
  std::set<std::array<uint32_t, 3>> started;
  ScriptedKernel* kernel = device.kernel([&](const Slice& slice) {
    const std::lock_guard guard(mutex);
    if (started.size() == 1000) return Result::preempted;
    started.insert(slice.id);
    return Result::ended;
  });
  hsa_kernel_dispatch_packet_t packet = dispatch(kernel, 1u << 31, 1024);
  packet.setup = 2;
  packet.grid_size_y = 1u << 31;
  queue.submit(packet);
  CHECK(eventually([&] {
    const std::lock_guard guard(mutex);
    return started.size() == 1000;
  }));
  queue.destroy();
  const auto above = [&](unsigned axis, uint32_t half) {
    return std::ranges::count_if(started, [&](const auto& id) { return id[axis] >= half; });
  };
  CHECK(above(0, 1u << 21) == 0);
  CHECK(above(0, 1u << 20) > 0);
  CHECK(above(1, 1u << 11) == 1000);  // numbers of workgroups above 2^32
  CHECK(above(2, 1) == 0);
}

TEST_CASE("the last workgroup of a grid of 2^32 - 1 work-items is partial") {
  DeviceFixture device;
  ComputeQueue queue(device);
  std::atomic<uint64_t> last{0};
  ScriptedKernel* kernel = device.kernel([&](const Slice& slice) {
    last = slice.dispatch.workgroups()[0];
    return Result::preempted;
  });
  queue.submit(dispatch(kernel, 0xffffffff, 1024));
  CHECK(eventually([&] { return last == 1u << 22; }));
  queue.destroy();
}

TEST_CASE("a dispatch beside one that never ends gets a fair share") {
  DeviceFixture device(with_workers(1));
  ComputeQueue queue(device);
  ComputeQueue other(device);
  std::atomic<bool> stop{false};
  ScriptedKernel* hog =
      device.kernel([&](const Slice&) { return stop ? Result::ended : Result::preempted; });
  hog->instructions_per_slice = 4096;
  queue.submit(dispatch(hog, 64 * 64, 64));
  settle();
  amd_signal_t* done = device.signal(1);
  ScriptedKernel* worker = device.kernel();
  worker->instructions_per_slice = 1000;
  other.submit(dispatch(worker, 1000 * 64, 64, false, done));
  CHECK(fires(done));
  stop = true;
  CHECK(eventually([&] { return queue.read_index() == 1; }));
}

TEST_CASE("deterministic: only the seed determines the order of workgroups") {
  const auto order = [](uint64_t seed) {
    Options options;
    options.deterministic = true;
    options.seed = seed;
    DeviceFixture device(options);
    ComputeQueue queue(device);
    std::vector<uint32_t> ids;
    ScriptedKernel* kernel = device.kernel([&](const Slice& slice) {
      if (slice.turn == 0) ids.push_back(slice.id[0]);
      return slice.turn == slice.id[0] % 3 ? Result::ended : Result::preempted;
    });
    for (int round = 0; round < 5; ++round) {
      amd_signal_t* done = device.signal(1);
      queue.submit(dispatch(kernel, 101, 1, true, done));
      if (!fires(done)) return std::vector<uint32_t>{};
    }
    return ids;
  };
  const auto first = order(1);
  REQUIRE(first.size() == 505);
  CHECK(order(1) == first);
  CHECK(order(2) != first);
}

TEST_CASE("destroying a queue abandons its kernels and does not affect other queues") {
  for (const uint32_t workers : {1u, 3u}) {
    CAPTURE(workers);
    DeviceFixture device(with_workers(workers));
    ComputeQueue other(device);
    std::atomic<uint64_t> runs{0};
    ScriptedKernel* endless = device.kernel([&](const Slice&) {
      ++runs;
      return Result::preempted;
    });
    for (int round = 0; round < 20; ++round) {
      ComputeQueue queue(device);
      amd_signal_t* never = device.signal(1);
      for (int index = 0; index < 10; ++index)
        queue.write(dispatch(endless, 640, 64, false, never));
      queue.ring();
      const uint64_t seen = runs;
      REQUIRE(eventually([&] { return runs > seen + 10; }));
      queue.destroy();
      const uint64_t after = runs;
      amd_signal_t* done = device.signal(1);
      other.submit(dispatch(device.kernel(), 640, 64, true, done));
      REQUIRE(fires(done));
      CHECK(runs == after);
      CHECK(DeviceFixture::value(never) == 1);
    }
  }
}

TEST_CASE(
    "abandoned dispatches release their residency: a grid that must be resident as a whole still "
    "fits") {
  bool faults = false;
  SECTION("after queues that were destroyed") { faults = false; }
  SECTION("after kernels that faulted") { faults = true; }
  std::atomic<bool> fault{false};
  std::atomic<unsigned> resident{0};
  std::atomic<unsigned> arrived{0};
  DeviceFixture device(with_workers(2));
  ScriptedKernel* endless = device.kernel([&](const Slice& slice) {
    if (slice.turn == 0) ++resident;
    if (!fault) return Result::preempted;
    slice.executor.fault =
        gfx9::Executor::Fault{QueueError::illegal_instruction, std::nullopt, "s_bogus"};
    return Result::faulted;
  });
  constexpr unsigned kDeviceWaves = 104 * 4 * 8;
  constexpr unsigned kGroups = 104, kWavesPerGroup = 4;
  for (unsigned abandoned = 0; abandoned <= kDeviceWaves; abandoned += kGroups * kWavesPerGroup) {
    ComputeQueue queue(device);
    resident = 0;
    fault = false;
    queue.submit(dispatch(endless, kGroups * 256, 256));
    REQUIRE(eventually([&] { return resident == kGroups; }));
    fault = faults;
    if (faults) REQUIRE(eventually([&] { return queue.error() != 0; }));
  }
  ComputeQueue queue(device);
  amd_signal_t* done = device.signal(1);
  queue.submit(dispatch(device.kernel([&](const Slice& slice) {
    if (slice.turn == 0) ++arrived;
    return arrived == kGroups ? Result::ended : Result::preempted;
  }),
                        kGroups * 256, 256, false, done));
  CHECK(fires(done));
}

TEST_CASE("workgroups of several dispatches run concurrently, also if each dispatch has only one") {
  std::mutex mutex;
  std::set<std::thread::id> workers;
  DeviceFixture device(with_workers(2));
  ComputeQueue first(device);
  ComputeQueue second(device);
  ScriptedKernel* kernel = device.kernel([&](const Slice&) {
    const std::lock_guard lock(mutex);
    workers.insert(std::this_thread::get_id());
    return workers.size() == 2 ? Result::ended : Result::preempted;
  });
  kernel->instructions_per_slice = 8192;
  amd_signal_t* done = device.signal(2);
  REQUIRE(falls_asleep("vgpu-worker"));
  first.submit(dispatch(kernel, 64, 64, false, done));
  second.submit(dispatch(kernel, 64, 64, false, done));
  CHECK(fires(done));
}
