// Streams over HSA queues of the caller's, who publishes packets of its own in between.
#include <hsa/hsa.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "test/engine/error_code.hpp"
#include "test/engine/stream/stream_devices.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/eventually.hpp"

using namespace uptempo;
using namespace uptempo::test;
using aql::Barrier;

namespace {

// Queues that the test owns, over which Streams are made.
struct Owner {
  static PacketProcessorOptions with(Log& log, PacketProcessorOptions options) {
    options.duration = [&log](const hsa_kernel_dispatch_packet_t& packet) {
      log.begin(number_of(packet));
      return 4u;
    };
    return options;
  }
  static uint32_t number_of(const hsa_kernel_dispatch_packet_t& packet) {
    return *static_cast<const volatile uint32_t*>(packet.kernarg_address);
  }

  explicit Owner(const PacketProcessorOptions& options = {.paused = true})
      : one(with(log, options),
            [this](const auto& packet, uint64_t) { log.end(number_of(packet)); }),
        two(with(log, options),
            [this](const auto& packet, uint64_t) { log.end(number_of(packet)); }) {
    of_streams.streams.queues = {{one.queue(), &one.error()}, {two.queue(), &two.error()}};
  }
  void resume() {
    one.resume();
    two.resume();
  }

  Log log{1 << 10};
  PacketProcessor one, two;
  StreamDevicesOptions of_streams;
};

aql::Packet64 barrier_packet(hsa_signal_t completion, Barrier barrier) {
  return aql::to_packet(
      aql::BarrierAnd{.flags = {barrier, aql::FenceScope::none, aql::FenceScope::system},
                      .completion_signal = completion});
}

// The kinds of the packets in a ring that is paused: "D" for a dispatch, "B" for others.
std::string kinds(PacketProcessor& processor) {
  std::string text;
  QueueDouble& memory = processor.memory();
  for (uint64_t i = memory.read_index().load(); i < memory.write_index().load(); ++i)
    text +=
        aql::packet_type(memory.slot(i).header()) == aql::PacketType::kernel_dispatch ? 'D' : 'B';
  return text;
}

}  // namespace

TEST_CASE("streams share the caller's queues, and others get queues of the library",
          "[stream][borrowed]") {
  Owner owner;
  StreamDevices devices(owner.of_streams);
  CHECK(devices.streams().hardware_queues() == 2);
  Stream a(devices), b(devices), c(devices), urgent(devices, {.priority = StreamPriority::high});
  CHECK(hardware_queue(a) != hardware_queue(b));
  for (const Stream* const stream : {&a, &b, &c})
    CHECK((hardware_queue(*stream) == owner.one.queue() ||
           hardware_queue(*stream) == owner.two.queue()));
  CHECK(hardware_queue(urgent) != owner.one.queue());
  CHECK(hardware_queue(urgent) != owner.two.queue());
  CHECK(devices.streams().hardware_queues() == 3);
  CHECK(contains(devices.streams().describe(), "3, of at most the caller's 2"));
  launch(a, 1);
  launch(b, 2);
  launch(c, 3);
  owner.resume();
  devices.streams().synchronize();
  for (uint32_t number = 1; number <= 3; ++number) CHECK(owner.log.ended(number) != 0);
}

TEST_CASE("queues with one producer, no queue, and a queue twice are refused",
          "[stream][borrowed]") {
  Owner owner;
  const auto refused = [&](std::vector<BorrowedQueue> queues) {
    owner.of_streams.streams.queues = std::move(queues);
    return error_of<Error>([&] { const StreamDevices devices(owner.of_streams); });
  };
  PacketProcessor single({.type = HSA_QUEUE_TYPE_SINGLE});
  const std::string error = refused({{owner.one.queue()}, {single.queue()}});
  CHECK(contains(error, "type HSA_QUEUE_TYPE_SINGLE, which has one producer"));
  CHECK(contains(error, "create it with HSA_QUEUE_TYPE_MULTI"));
  CHECK(contains(refused({{nullptr}}), "a null pointer"));
  CHECK(contains(refused({{owner.one.queue()}, {owner.two.queue()}, {owner.one.queue()}}),
                 "an HSA queue of the caller's twice"));
}

TEST_CASE("the caller's own packets stand in the queue between those of streams",
          "[stream][borrowed]") {
  Owner owner;
  owner.of_streams.streams.queues.pop_back();
  StreamDevices devices(owner.of_streams);
  Stream a(devices), b(devices);
  SignalDouble own(1), later(1);
  std::vector<uint64_t> rooms;
  launch(a, 1);
  launch(b, 2);
  devices.streams().publish_own(owner.one.queue(), [&](uint64_t room) {
    rooms.push_back(room);
    owner.one.publish(barrier_packet(own.handle(), Barrier::on));
    owner.one.publish(barrier_packet({}, Barrier::off));
  });
  launch(a, 3);
  CHECK_THROWS_AS(devices.streams().publish_own(owner.one.queue(),
                                                [&](uint64_t room) {
                                                  rooms.push_back(room);
                                                  owner.one.publish(
                                                      barrier_packet(later.handle(), Barrier::on));
                                                  throw std::runtime_error("the caller's");
                                                }),
                  std::runtime_error);
  launch(b, 4);
  CHECK(kinds(owner.one) == "DDBBDBD");
  CHECK(rooms == std::vector<uint64_t>{62, 59});
  CHECK(own.value() == 1);
  owner.resume();
  devices.streams().synchronize();
  CHECK(own.value() == 0);
  CHECK(later.value() == 0);
  for (uint32_t number = 1; number <= 4; ++number) CHECK(owner.log.ended(number) != 0);
  CHECK(owner.log.is_before(1, 3));
  CHECK(owner.log.is_before(2, 4));
}

TEST_CASE("many rings full of the caller's and the streams' packets lose none",
          "[stream][borrowed]") {
  Owner owner(PacketProcessorOptions{.ring_size = 64});
  owner.of_streams.streams.queues.pop_back();
  StreamDevices devices(owner.of_streams);
  Stream stream(devices);
  SignalDouble own(0);
  int64_t published = 0;
  for (uint32_t number = 1; number < 1000; ++number) {
    launch(stream, number);
    if (number % 3 != 0) continue;
    devices.streams().publish_own(owner.one.queue(), [&](uint64_t room) {
      for (uint64_t i = 0; i < std::min<uint64_t>(room, number % 7); ++i, ++published)
        owner.one.publish(barrier_packet(own.handle(), Barrier::off));
    });
  }
  devices.streams().synchronize();
  CHECK(published > 500);
  REQUIRE(eventually([&] { return own.value() == -published; }));
  for (uint32_t number = 2; number < 1000; ++number)
    REQUIRE(owner.log.is_before(number - 1, number));
}

TEST_CASE(
    "a kernel that reads its packet keeps its slot from the caller until it ends, and no longer",
    "[stream][borrowed]") {
  Owner owner({.early_read_index = true, .paused = true, .reads_packet = kReadsPacket});
  owner.of_streams.streams.queues.pop_back();
  StreamDevices devices(owner.of_streams);
  Stream stream(devices);
  stream.launch(late_reader(), Grid{1}, 1u);
  SignalDouble own(0);
  int64_t published = 0;
  const auto fill = [&] {
    devices.streams().publish_own(owner.one.queue(), [&](uint64_t room) {
      for (uint64_t i = 0; i < room; ++i, ++published)
        owner.one.publish(barrier_packet(own.handle(), Barrier::on));
    });
  };
  fill();
  CHECK(published == 62);  // beside the launch and the marker that ends its hold
  CHECK(kinds(owner.one).substr(0, 3) == "DBB");
  owner.resume();
  // No stream does anything meanwhile.
  REQUIRE(eventually([&] {
    fill();
    return published > 5 * 64;
  }));
  REQUIRE(eventually([&] { return own.value() == -published; }));
  CHECK(owner.log.ended(1) != 0);
}

TEST_CASE("an epoch that cannot be closed keeps a slot for its marker from the caller",
          "[stream][borrowed]") {
  Owner owner({.early_read_index = true, .paused = true, .reads_packet = kReadsPacket});
  owner.of_streams.streams.queues.pop_back();
  owner.of_streams.streams.queue.publications = 2;
  StreamDevices devices(owner.of_streams);
  Stream stream(devices);
  for (uint32_t number = 1; number <= 3; ++number) {
    stream.launch(late_reader(), Grid{1}, number);
    if (number < 3) (void)stream.record();  // the third finds no completion signal
  }
  uint64_t room = 0;
  devices.streams().publish_own(owner.one.queue(), [&](uint64_t slots) { room = slots; });
  CHECK(kinds(owner.one) == "DBDBD");
  CHECK(room == 64 - 5 - 1);
  owner.resume();
  devices.streams().synchronize();
  CHECK(owner.log.ended(3) != 0);
}

TEST_CASE("a stream refuses a queue to which other code publishes on its own",
          "[stream][borrowed]") {
  Owner owner(PacketProcessorOptions{});
  owner.of_streams.streams.queues.pop_back();
  StreamDevices devices(owner.of_streams);
  Stream stream(devices);
  launch(stream, 1);
  stream.synchronize();
  owner.one.publish(barrier_packet({}, Barrier::off));
  const std::string error = error_of<Error>([&] { launch(stream, 2); });
  CHECK(contains(error, "other code publishes to this HSA queue, too"));
  CHECK(contains(error, "publish_own()"));
  CHECK(code_of_error([&] { devices.streams().publish_own(owner.one.queue(), [](uint64_t) {}); }) ==
        "unavailable");
  CHECK(contains(
      error_of<Error>([&] { devices.streams().publish_own(owner.two.queue(), [](uint64_t) {}); }),
      "none of StreamsOptions::queues"));
  CHECK(owner.log.ended(2) == 0);
}

TEST_CASE("streams learn of a borrowed queue's failure from its owner", "[stream][borrowed]") {
  Owner owner;
  StreamDevices devices(owner.of_streams);
  Stream a(devices), b(devices);
  PacketProcessor& of_a = hardware_queue(a) == owner.one.queue() ? owner.one : owner.two;
  PacketProcessor& of_b = &of_a == &owner.one ? owner.two : owner.one;
  launch(a, 1);
  of_a.fail(HSA_STATUS_ERROR_INVALID_ISA);
  of_b.resume();
  CHECK_THROWS_AS(a.synchronize(), Error);
  CHECK_THROWS_AS(launch(a, 2), Error);
  launch(b, 3);
  b.synchronize();
  Stream next(devices);
  CHECK(hardware_queue(next) == of_b.queue());
  of_b.fail(HSA_STATUS_ERROR_INVALID_ISA);
  CHECK_THROWS_AS(launch(b, 4), Error);
  CHECK(contains(error_of<Error>([&] { const Stream none(devices); }), "all 2 have failed"));
}
