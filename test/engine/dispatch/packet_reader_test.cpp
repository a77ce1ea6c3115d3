// Kernels that read their packets while they run, on a processor whose read index passes a packet
// at its launch. A slot that is reused too early gives such a kernel the argument of another
// dispatch.
#include <hsa/hsa.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include <uptempo/recording/recording.hpp>
#include <uptempo/runtime/error.hpp>
#include "test/engine/dispatch/shared_device.hpp"
#include "test/engine/double_device.hpp"
#include "test/engine/stream/stream_devices.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"

using namespace uptempo;
using namespace uptempo::test;
using namespace std::chrono_literals;

namespace {

constexpr uint64_t kSeeds = 6;

PacketProcessorOptions early(uint64_t seed) {
  return {.ring_size = 64, .seed = seed, .early_read_index = true, .reads_packet = kReadsPacket};
}

// The numbers from 0 that are missing or occur more than once.
std::vector<uint32_t> wrong_among(std::vector<uint32_t> numbers, uint32_t count) {
  std::vector<uint32_t> seen(count, 0), wrong;
  for (const uint32_t number : numbers)
    if (number < count) ++seen[number];
  for (uint32_t number = 0; number < count; ++number)
    if (seen[number] != 1) wrong.push_back(number);
  return wrong;
}

}  // namespace

TEST_CASE("a producer that reuses a slot at the read index changes the packet of a running kernel",
          "[holds]") {
  // Stops the processor when it has launched the first kernel, which then stays active.
  PacketProcessor* stopped = nullptr;
  PacketProcessorOptions options = early(1);
  options.duration = [&](const hsa_kernel_dispatch_packet_t&) {
    if (stopped != nullptr) stopped->pause();
    return 8u;
  };
  std::vector<uint32_t> numbers;
  options.paused = true;
  PacketProcessor device(options, [&](const hsa_kernel_dispatch_packet_t& packet, uint64_t) {
    numbers.push_back(*static_cast<const uint32_t*>(packet.kernarg_address));
  });
  stopped = &device;
  alignas(64) uint32_t arguments[65][16] = {};
  std::vector<aql::Packet64> packets;
  for (uint32_t i = 0; i < 65; ++i) {
    arguments[i][0] = i;
    packets.push_back(aql::to_packet(aql::KernelDispatch{.grid = {1, 1, 1},
                                                         .workgroup = {1, 1, 1},
                                                         .dimensions = 1,
                                                         .kernel_object = kReadsPacket,
                                                         .kernarg_address = arguments[i]}));
  }
  auto writer = aql::AqlQueueWriter::borrow(device.queue());
  REQUIRE(writer.publish(std::span(packets).first(1), Deadline::now()));
  device.resume();
  REQUIRE(eventually([&] { return device.paused() && writer.read_index() == 1; }));
  REQUIRE(writer.publish(std::span(packets).subspan(1), Deadline::now()));
  stopped = nullptr;
  device.resume();
  REQUIRE(device.wait_completed(65));
  // The last packet was stored into the first one's slot.
  CHECK(wrong_among(numbers, 65) == std::vector<uint32_t>{0, 64});
}

TEST_CASE("batches of any length keep the packets of running kernels", "[holds][stress]") {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    CAPTURE(seed);
    std::vector<uint32_t> numbers;
    DoubleDevice device({.device = early(seed)},
                        [&](uint32_t number) { numbers.push_back(number); });
    const auto reader = late_reader(), other = number_kernel();
    std::mt19937_64 random(seed);
    BatchSubmitter readers(device.queue(), {.chunking = {.chunk = 5}});
    BatchSubmitter others(device.queue());
    uint32_t next = 0;
    Completion last;
    for (int round = 0; round < 60; ++round) {
      // Sometimes longer than the ring, and than twice the ring.
      const uint32_t count = 1 + static_cast<uint32_t>(random() % (round % 8 == 0 ? 200 : 40));
      BatchSubmitter& batch = round % 5 == 0 ? others : readers;
      for (uint32_t i = 0; i < count; ++i) {
        auto dispatch = batch.dispatch(random() % 4 == 0 ? other : reader, Grid{1}, next++);
        if (random() % 2 == 0) dispatch.without_barrier();
      }
      last = batch.submit(Deadline::after(60s));
    }
    REQUIRE(last.wait(soon(), kActiveWait));
    CHECK(numbers.size() == next);
    CHECK(wrong_among(numbers, next).empty());
  }
}

TEST_CASE("a batch longer than the ring resumes after a deadline, with readers of packets",
          "[holds]") {
  std::vector<uint32_t> numbers;
  PacketProcessorOptions options = early(1);
  options.paused = true;
  DoubleDevice device({.device = options}, [&](uint32_t number) { numbers.push_back(number); });
  const auto reader = late_reader();
  BatchSubmitter batch(device.queue(), {});
  for (uint32_t i = 0; i < 200; ++i) batch.dispatch(reader, Grid{1}, i);
  CHECK_THROWS_AS(batch.submit(Deadline::after(5ms)), Error);
  CHECK(numbers.empty());
  device.processor().resume();
  REQUIRE(batch.submit(Deadline::after(60s)).wait(soon(), kActiveWait));
  CHECK(wrong_among(numbers, 200).empty());
  // The rest of the ring is free again.
  for (uint32_t i = 0; i < 64; ++i) batch.dispatch(reader, Grid{1}, i);
  CHECK(batch.submit(Deadline::after(60s)).wait(soon(), kActiveWait));
}

TEST_CASE("a finished dispatch packet, whose kernel is unknown, keeps its slot until completion",
          "[holds]") {
  PacketProcessorOptions options = early(1);
  PacketProcessor* stopped = nullptr;
  options.duration = [&](const hsa_kernel_dispatch_packet_t&) {
    if (stopped != nullptr) stopped->pause();
    return 8u;
  };
  options.paused = true;
  DoubleDevice device({.device = options});
  stopped = &device.processor();
  BatchSubmitter batch(device.queue(), {});
  alignas(64) uint32_t argument[16] = {};
  batch.raw(aql::to_packet(aql::KernelDispatch{.grid = {1, 1, 1},
                                               .workgroup = {1, 1, 1},
                                               .dimensions = 1,
                                               .kernel_object = 0x1000,
                                               .kernarg_address = argument}));
  batch.submit();
  device.processor().resume();
  REQUIRE(eventually([&] { return device.processor().paused(); }));
  const auto kernel = number_kernel();
  BatchSubmitter others(device.queue(), {});
  // The finished packet, the barrier packet that completes it, and 62 more fill the ring.
  for (uint32_t i = 0; i < 62; ++i) {
    others.dispatch(kernel, Grid{1}, i);
    if (i == 30 || i == 61) REQUIRE(others.try_submit());
  }
  others.dispatch(kernel, Grid{1}, 62u);
  CHECK_FALSE(others.try_submit());
  stopped = nullptr;
  device.processor().resume();
  CHECK(others.submit(Deadline::after(60s)).wait(soon(), kActiveWait));
}

TEST_CASE("replays keep the packets of running kernels", "[holds][stress]") {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    CAPTURE(seed);
    std::atomic<uint32_t> wrong{0}, ran{0};
    uint32_t expected = 0;
    DoubleDevice device({.device = early(seed)}, [&](uint32_t number) {
      wrong += number != expected++ % 90;
      ++ran;
    });
    const auto reader = late_reader();
    struct alignas(64) Line {
      std::byte bytes[64];
    };
    std::vector<Line> kernargs(4096);
    auto recording = device.recording({kernargs.front().bytes, kernargs.size() * 64}, {});
    for (uint32_t i = 0; i < 90; ++i) recording->dispatch(reader, Grid{1}, i);
    Completion last;
    for (int i = 0; i < 20; ++i) last = recording->replay(device.queue(), Deadline::after(60s));
    REQUIRE(last.wait(soon(), kActiveWait));
    CHECK(ran == 20 * 90);
    CHECK(wrong == 0);
  }
}

TEST_CASE("threads that share a ring keep the packets of one another's running kernels",
          "[holds][stress]") {
  constexpr uint32_t kThreads = 4, kEach = 500;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    CAPTURE(seed);
    std::vector<uint32_t> numbers;
    SharedDevice device(kThreads, {.device = early(seed)},
                        [&](uint32_t number) { numbers.push_back(number); });
    std::atomic<uint32_t> failed{0};
    const auto produce = [&](uint32_t which) {
      std::mt19937_64 random(seed * 31 + which);
      // One thread has no reader of its own.
      const auto kernel = which == 0 ? number_kernel() : late_reader();
      BatchSubmitter batch(device[which], {});
      Completion last;
      for (uint32_t done = 0; done < kEach;) {
        uint32_t count = 1 + static_cast<uint32_t>(random() % (random() % 16 == 0 ? 150 : 20));
        count = std::min(count, kEach - done);
        for (uint32_t i = 0; i < count; ++i)
          batch.dispatch(kernel, Grid{1}, which * kEach + done + i);
        last = batch.submit(Deadline::after(60s));
        done += count;
      }
      failed += !last.wait(Deadline::after(60s), kActiveWait);
    };
    std::vector<std::thread> others;
    for (uint32_t which = 1; which < kThreads; ++which) others.emplace_back(produce, which);
    produce(0);
    for (std::thread& other : others) other.join();
    CHECK(failed == 0);
    CHECK(wrong_among(numbers, kThreads * kEach).empty());
  }
}

TEST_CASE("the running kernel of a destroyed queue keeps its slot until it ends, and no longer",
          "[holds]") {
  DoubleOptions options{.device = early(1)};
  options.queue.drain_timeout = 5ms;
  options.device.paused = true;
  PacketProcessor* stopped = nullptr;
  options.device.duration = [&](const hsa_kernel_dispatch_packet_t&) {
    if (stopped != nullptr) stopped->pause();
    return 8u;
  };
  std::vector<uint32_t> numbers;
  SharedDevice device(2, options, [&](uint32_t number) { numbers.push_back(number); });
  stopped = &device.processor();
  Completion lost;
  {
    BatchSubmitter batch(device[0], {});
    batch.dispatch(late_reader(), Grid{1}, 0u);
    lost = batch.submit();
  }
  device.processor().resume();
  REQUIRE(eventually([&] { return device.processor().paused(); }));
  device.destroy_queue(0);
  CHECK(contains(error_of<Error>([&] { (void)lost.ready(); }), "destroyed before the work"));

  const auto kernel = number_kernel();
  BatchSubmitter batch(device[1], {});
  for (uint32_t i = 1; i < 57; ++i) batch.dispatch(kernel, Grid{1}, i);
  REQUIRE(batch.try_submit());
  for (uint32_t i = 57; i < 65; ++i) batch.dispatch(kernel, Grid{1}, i);
  CHECK_FALSE(batch.try_submit());  // seven slots are free
  stopped = nullptr;
  device.processor().resume();
  for (uint32_t i = 65; i < 3 * 64; ++i) batch.dispatch(kernel, Grid{1}, i);
  CHECK(batch.submit(soon()).wait(soon(), kActiveWait));
  CHECK(wrong_among(numbers, 3 * 64).empty());
  CHECK(contains(error_of<Error>([&] { (void)lost.ready(); }), "destroyed before the work"));
}

TEST_CASE("streams keep the packets of running kernels, also when signals are short",
          "[holds][stress]") {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    CAPTURE(seed);
    StreamDevicesOptions options;
    options.streams.hardware_queues = 2;
    // Few signals: epochs often stay open, although only their end frees the slots.
    options.streams.queue.publications = 2;
    options.device = early(seed);
    std::mutex mutex;
    std::vector<uint32_t> numbers;
    options.at_end = [&](const hsa_kernel_dispatch_packet_t& packet) {
      const std::lock_guard lock(mutex);
      numbers.push_back(*static_cast<const uint32_t*>(packet.kernarg_address));
    };
    StreamDevices devices(options);
    const auto reader = late_reader(), other = number_kernel();
    std::mt19937_64 random(seed);
    std::deque<Stream> streams;
    for (int i = 0; i < 5; ++i) streams.emplace_back(devices);
    constexpr uint32_t kLaunches = 2000;
    Event event;
    for (uint32_t number = 0; number < kLaunches; ++number) {
      Stream& stream = streams[random() % streams.size()];
      stream.launch(random() % 4 == 0 ? other : reader, Grid{1}, number);
      if (random() % 16 == 0) stream.after(event);
      if (random() % 64 == 0) event = stream.record();
    }
    devices.streams().synchronize();
    CHECK(wrong_among(numbers, kLaunches).empty());
  }
}
