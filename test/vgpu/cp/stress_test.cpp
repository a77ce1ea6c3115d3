// Many packets, many producers, and queues that are created and destroyed.
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "device_fixture.hpp"
#include "test/support/catch.hpp"

using namespace uptempo::vgpu;
using namespace uptempo::vgpu::test;

namespace {

// A producer that shares its queue: hsa_queue_add_write_index, packet, header, doorbell.
void submit_shared(ComputeQueue& queue, const hsa_kernel_dispatch_packet_t& packet) {
  const uint64_t index =
      std::atomic_ref<uint64_t>(const_cast<uint64_t&>(queue.queue->write_dispatch_id))
          .fetch_add(1, std::memory_order_acq_rel);
  while (index - queue.read_index() >= queue.packets) std::this_thread::yield();
  auto* slot = static_cast<hsa_kernel_dispatch_packet_t*>(queue.slot(index));
  std::memcpy(reinterpret_cast<std::byte*>(slot) + 4,
              reinterpret_cast<const std::byte*>(&packet) + 4, 60);
  uint32_t first;
  std::memcpy(&first, &packet, 4);
  std::atomic_ref<uint32_t>(*reinterpret_cast<uint32_t*>(slot))
      .store(first, std::memory_order_release);
  queue.ring(index);
}

}  // namespace

TEST_CASE("thousands of packets of several producers on one queue all run, none twice") {
  DeviceFixture device;
  ComputeQueue queue(device, 64);
  constexpr unsigned producers = 4, each = 2000;
  std::atomic<unsigned> runs{0};
  ScriptedKernel* kernel = device.kernel([&](const Slice&) {
    ++runs;
    return Result::ended;
  });
  amd_signal_t* done = device.signal(producers * each);
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < producers; ++thread) {
    threads.emplace_back([&, thread] {
      for (unsigned index = 0; index < each; ++index)
        submit_shared(queue, dispatch(kernel, 1, 1, (index + thread) % 5 == 0, done));
    });
  }
  for (std::thread& thread : threads) thread.join();
  REQUIRE(fires(done));
  CHECK(runs == producers * each);
  CHECK(queue.read_index() == producers * each);
  CHECK(queue.error() == 0);
}

TEST_CASE("threads create and destroy queues while other queues work") {
  DeviceFixture device;
  constexpr unsigned threads_count = 4, rounds = 30;
  std::atomic<unsigned> failed{0};
  ScriptedKernel* kernel = device.kernel(
      [](const Slice& slice) { return slice.turn == 2 ? Result::ended : Result::preempted; });
  std::vector<std::thread> threads;
  std::mutex fixture;  // its allocator is not thread-safe
  for (unsigned thread = 0; thread < threads_count; ++thread) {
    threads.emplace_back([&, thread] {
      for (unsigned round = 0; round < rounds; ++round) {
        std::unique_lock lock(fixture);
        ComputeQueue queue(device, 16);
        amd_signal_t* done = device.signal(1);
        lock.unlock();
        for (int index = 0; index < 40; ++index) queue.submit(dispatch(kernel, 128, 64));
        queue.submit(dispatch(kernel, 128, 64, true, done));
        // Every third queue is destroyed with work in flight.
        if ((round + thread) % 3 != 0 && !fires(done)) ++failed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(failed == 0);
}

TEST_CASE("memory may be mapped and unmapped while packets are processed") {
  DeviceFixture device;
  ComputeQueue queue(device);
  ScriptedKernel* kernel = device.kernel();
  std::atomic<bool> stop{false};
  auto* page = static_cast<std::byte*>(device.allocate(4096, 4096));
  std::thread mapper([&] {
    while (!stop) {
      Mapping mapping;
      mapping.begin = 0x900000;
      mapping.end = 0x901000;
      mapping.host = page;
      device.memory.map(mapping);
      device.memory.unmap(mapping.begin);
    }
  });
  for (int round = 0; round < 300; ++round) {
    amd_signal_t* done = device.signal(1);
    queue.submit(dispatch(kernel, 256, 64, true, done));
    if (!fires(done)) {
      CHECK(false);
      break;
    }
  }
  stop = true;
  mapper.join();
}
