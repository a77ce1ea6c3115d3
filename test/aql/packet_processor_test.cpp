// Tests that the processor double keeps its rules; other tests rely on it.
#include "test/support/packet_processor.hpp"

#include <chrono>
#include <set>

#include <uptempo/aql/amd_abi.hpp>
#include <uptempo/aql/writer.hpp>
#include "test/support/catch.hpp"
#include "test/support/soon.hpp"

using namespace uptempo;
using namespace std::chrono_literals;
using aql::AqlQueueWriter;
using aql::Barrier;
using aql::FenceScope;
using test::PacketProcessor;
using test::SignalDouble;

namespace {

constexpr aql::HeaderFlags kWithBarrier{Barrier::on, FenceScope::agent, FenceScope::agent};
constexpr aql::HeaderFlags kWithoutBarrier{Barrier::off, FenceScope::agent, FenceScope::agent};

aql::Packet64 kernel(aql::HeaderFlags flags, uint64_t object, hsa_signal_t signal = {0}) {
  return aql::to_packet(aql::KernelDispatch{.flags = flags,
                                            .grid = {64},
                                            .workgroup = {64},
                                            .kernel_object = object,
                                            .completion_signal = signal});
}

std::vector<uint64_t> order_of_completion(const PacketProcessor& device) {
  std::vector<uint64_t> order;
  for (const auto& completed : device.completed()) order.push_back(completed.index);
  return order;
}

// The first kernel is long; all others are short.
test::PacketProcessorOptions first_is_long() {
  return {.duration = [](const hsa_kernel_dispatch_packet_t& p) {
    return p.kernel_object == 1 ? 200u : 1u;
  }};
}

}  // namespace

TEST_CASE("a thread that acquires a completion signal sees the kernel's effects", "[double]") {
  SignalDouble signal(1);
  uint64_t effect = 0;  // not atomic: the signal orders it
  PacketProcessor device(
      {}, [&](const hsa_kernel_dispatch_packet_t& p, uint64_t) { effect = p.kernel_object; });
  auto writer = AqlQueueWriter::borrow(device.queue(), &device.error());
  const std::vector<aql::Packet64> packets{kernel(kWithBarrier, 42, signal.handle())};
  REQUIRE(writer.publish(packets, Deadline::now()));
  while (aql::load_acquire(signal.handle()) != 0) std::this_thread::yield();
  CHECK(effect == 42);
  const auto times = aql::signal_times(signal.handle());
  CHECK(times.start_ticks > 0);
  CHECK(times.end_ticks > times.start_ticks);
}

TEST_CASE("a packet overtakes an earlier one only without its barrier bit", "[double]") {
  for (const auto flags : {kWithoutBarrier, kWithBarrier}) {
    PacketProcessor device(first_is_long());
    auto writer = AqlQueueWriter::borrow(device.queue());
    const std::vector<aql::Packet64> packets{kernel(kWithoutBarrier, 1), kernel(flags, 2)};
    REQUIRE(writer.publish(packets, Deadline::now()));
    REQUIRE(device.wait_completed(2));
    const auto expected =
        flags == kWithBarrier ? std::vector<uint64_t>{0, 1} : std::vector<uint64_t>{1, 0};
    CHECK(order_of_completion(device) == expected);
  }
}

TEST_CASE("the read index passes a packet at its completion, or at its launch by option",
          "[double]") {
  for (const bool early : {false, true}) {
    auto options = first_is_long();
    options.early_read_index = early;
    std::atomic<bool> release{false};
    options.duration = [](const hsa_kernel_dispatch_packet_t&) { return 1u; };
    PacketProcessor device(options, [&](const hsa_kernel_dispatch_packet_t&, uint64_t) {
      while (!release) std::this_thread::yield();
    });
    auto writer = AqlQueueWriter::borrow(device.queue());
    const std::vector<aql::Packet64> packets{kernel(kWithBarrier, 1)};
    REQUIRE(writer.publish(packets, Deadline::now()));
    if (early) {
      while (writer.read_index() != 1) std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(2ms);
      CHECK(writer.read_index() == 0);
    }
    release = true;
    REQUIRE(device.wait_completed(1));
    while (writer.read_index() != 1) std::this_thread::yield();
  }
}

TEST_CASE("barrier packets wait for their dependencies", "[double]") {
  SignalDouble first(1);
  SignalDouble second(1);
  PacketProcessor device;
  auto writer = AqlQueueWriter::borrow(device.queue());
  std::vector<aql::Packet64> packets;
  SECTION("AND: for all") {
    packets = {aql::to_packet(aql::BarrierAnd{kWithBarrier, {{first.handle(), second.handle()}}})};
    REQUIRE(writer.publish(packets, Deadline::now()));
    first.set(0);
    std::this_thread::sleep_for(2ms);
    CHECK(device.completed_count() == 0);
    second.set(0);
  }
  SECTION("OR: for one") {
    packets = {aql::to_packet(aql::BarrierOr{kWithBarrier, {{first.handle(), second.handle()}}})};
    REQUIRE(writer.publish(packets, Deadline::now()));
    std::this_thread::sleep_for(2ms);
    CHECK(device.completed_count() == 0);
    second.set(0);
  }
  SECTION("value: for the condition") {
    packets = {aql::to_packet(aql::BarrierValue{.flags = kWithBarrier,
                                                .signal = first.handle(),
                                                .value = 1,
                                                .mask = 1,
                                                .condition = HSA_SIGNAL_CONDITION_NE})};
    REQUIRE(writer.publish(packets, Deadline::now()));
    std::this_thread::sleep_for(2ms);
    CHECK(device.completed_count() == 0);
    first.set(0);
  }
  CHECK(device.wait_completed(1));
}

TEST_CASE("a packet that cannot be executed stops the queue with an error", "[double]") {
  PacketProcessor device;
  auto writer = AqlQueueWriter::borrow(device.queue(), &device.error());
  aql::Packet64 packet{};
  packet.word[0] = aql::first_word(aql::make_header(aql::PacketType::agent_dispatch, kWithBarrier));
  REQUIRE(writer.publish(std::vector<aql::Packet64>{packet}, Deadline::now()));
  CHECK_FALSE(device.wait_completed(1));
  CHECK(device.error() == HSA_STATUS_ERROR_INVALID_PACKET_FORMAT);
  CHECK(writer.publish(std::vector<aql::Packet64>{packet}, Deadline::never()).status ==
        aql::PublishStatus::queue_failed);
}

TEST_CASE("many publications of random kernels each run exactly once", "[double][stress]") {
  for (const uint64_t seed : {1u, 2u, 3u}) {
    PacketProcessor device({.ring_size = 64, .seed = seed, .early_read_index = seed == 2});
    auto writer = AqlQueueWriter::borrow(device.queue(), &device.error());
    std::mt19937_64 random(seed);
    uint64_t object = 0;
    while (object < 3000) {
      std::vector<aql::Packet64> packets;
      for (uint64_t n = 1 + random() % 60; n > 0; --n) {
        packets.push_back(kernel(random() % 4 == 0 ? kWithBarrier : kWithoutBarrier, object++));
      }
      while (writer.room().free < packets.size()) std::this_thread::yield();
      REQUIRE(writer.publish(packets, Deadline::now(), {.lead = 8, .chunk = 16}));
    }
    REQUIRE(device.wait_completed(object));
    std::set<uint64_t> objects;
    for (const auto& c : device.completed()) {
      objects.insert(aql::packet_as<hsa_kernel_dispatch_packet_t>(c.packet).kernel_object);
      CHECK(c.packet == kernel(aql::header_flags(c.packet.header()), c.index));
    }
    CHECK(objects.size() == object);
  }
}

TEST_CASE("a writer never waits for slots that a processor frees only with later packets",
          "[processor]") {
  for (const uint32_t ring_size : {16u, 64u}) {
    for (uint64_t first = 1; first <= 8; ++first) {
      CAPTURE(ring_size, first);
      PacketProcessor device({.ring_size = ring_size, .read_index_step = 8});
      auto writer = AqlQueueWriter::borrow(device.queue(), &device.error());
      const std::vector<aql::Packet64> packets(ring_size, kernel(kWithBarrier, 1));
      uint64_t total = 0;
      for (const uint64_t count :
           {first, uint64_t{writer.longest_run()}, uint64_t{1}, uint64_t{writer.longest_run()}}) {
        CAPTURE(count);
        const auto published = writer.publish(std::span(packets).first(count), test::soon());
        CHECK(published);
        total += count;
        REQUIRE(device.wait_completed(total));
      }
    }
  }
}
