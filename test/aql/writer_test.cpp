// Tests what AqlQueueWriter stores in a ring and when it rings the doorbell. back_pressure_test.cpp
// tests full rings; publication_test.cpp tests the order of stores as a processor sees it.
#include <uptempo/aql/writer.hpp>

#include <stdexcept>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/hsa_double.hpp"
#include "test/support/queue_double.hpp"
#include "test/support/ring_reader.hpp"

using namespace uptempo;
using aql::AqlQueueWriter;
using test::emit_tickets;
using test::hsa_calls;
using test::QueueDouble;
using test::ticketed_packet;

namespace {

// Takes all published packets out of the ring, as a processor would, and moves the read index.
void drain(QueueDouble& queue) {
  for (uint64_t i = queue.read_index().load(); i != queue.write_index().load(); ++i)
    queue.invalidate(i);
  queue.read_index().store(queue.write_index().load());
}

}  // namespace

TEST_CASE("publishing writes the packets to consecutive slots and moves the write index past them",
          "[writer]") {
  QueueDouble queue({.ring_size = 64});
  auto writer = AqlQueueWriter::borrow(queue.queue());
  const auto result = writer.publish(3, Deadline::now(), emit_tickets(0));
  REQUIRE(result);
  CHECK(result.requested == 3);
  CHECK(result.last_index == 2);
  CHECK(writer.next_index() == 3);
  CHECK(queue.write_index().load() == 3);
  CHECK(queue.doorbell().load() == 2);
  for (uint64_t i = 0; i < 3; ++i) CHECK(queue.slot(i) == ticketed_packet(i));
}

TEST_CASE("publishing touches no byte outside its slots", "[writer]") {
  QueueDouble queue({.ring_size = 64});
  auto writer = AqlQueueWriter::borrow(queue.queue());
  REQUIRE(writer.publish(3, Deadline::now(), emit_tickets(0)));
  for (uint64_t i = 3; i < 64; ++i) {
    CAPTURE(i);
    CHECK(queue.slot(i).word[0] == aql::first_word(aql::kInvalidHeader));
    for (size_t w = 1; w < 16; ++w) CHECK(queue.slot(i).word[w] == 0xcccccccc);
  }
}

TEST_CASE("finished packets are published from a span", "[writer]") {
  QueueDouble queue;
  auto writer = AqlQueueWriter::borrow(queue.queue());
  const std::vector<aql::Packet64> packets{ticketed_packet(0), ticketed_packet(1)};
  REQUIRE(writer.publish(packets, Deadline::now()));
  CHECK(queue.slot(0) == packets[0]);
  CHECK(queue.slot(1) == packets[1]);
}

TEST_CASE("publishing no packets changes nothing", "[writer]") {
  QueueDouble queue;
  auto writer = AqlQueueWriter::borrow(queue.queue());
  const auto result = writer.publish(0, Deadline::now(), emit_tickets(0));
  CHECK(result);
  CHECK(queue.write_index().load() == 0);
  CHECK(queue.doorbell().load() == UINT64_MAX);
}

TEST_CASE("packets wrap around the ring's end", "[writer]") {
  // Includes the wrap of the indices themselves.
  for (const uint64_t first :
       {uint64_t{0}, uint64_t{60}, (uint64_t{1} << 32) - 3, UINT64_MAX - 5}) {
    QueueDouble queue({.ring_size = 64, .first_index = first});
    auto writer = AqlQueueWriter::borrow(queue.queue());
    uint64_t index = first;
    for (const uint64_t count : {5u, 64u, 63u, 1u, 40u, 30u, 64u}) {
      const auto result = writer.publish(count, Deadline::now(), emit_tickets(index));
      REQUIRE(result);
      for (uint64_t i = 0; i < count; ++i)
        REQUIRE(queue.slot(index + i) == ticketed_packet(index + i));
      index += count;
      CHECK(result.last_index == index - 1);
      CHECK(queue.doorbell().load() == index - 1);
      drain(queue);
    }
  }
}

TEST_CASE("a publication makes no HSA call if the doorbell is a hardware one", "[writer]") {
  QueueDouble queue;
  auto writer = AqlQueueWriter::borrow(queue.queue());
  CHECK(writer.direct_doorbell());
  hsa_calls().reset();
  for (int i = 0; i < 500; ++i) {
    REQUIRE(writer.publish(16, Deadline::now(), emit_tickets(0), {.lead = 4, .chunk = 4}));
    drain(queue);
  }
  CHECK(hsa_calls().total() == 0);
}

TEST_CASE("a queue without AMD's layout is driven through HSA calls, with the same result",
          "[writer]") {
  QueueDouble queue({.ring_size = 64, .amd_layout = false});
  auto writer = AqlQueueWriter::borrow(queue.queue());
  hsa_calls().reset();
  for (uint64_t index = 0; index < 320; index += 32) {
    REQUIRE(writer.publish(32, Deadline::now(), emit_tickets(index)));
    for (uint64_t i = 0; i < 32; ++i) REQUIRE(queue.slot(index + i) == ticketed_packet(index + i));
    drain(queue);
  }
  CHECK(queue.write_index().load() == 320);
  CHECK(hsa_calls().write_index >= 10);
  CHECK(hsa_calls().load_read_index >= 4);
}

TEST_CASE("a writer by HSA calls loads and stores each index and doorbell by one call",
          "[writer]") {
  QueueDouble queue({.ring_size = 64, .doorbell_kind = AMD_SIGNAL_KIND_USER});
  auto writer = AqlQueueWriter::borrow(queue.queue(), nullptr, aql::RingAccess::hsa_calls);
  CHECK_FALSE(writer.direct_indices());
  CHECK_FALSE(writer.direct_doorbell());
  hsa_calls().reset();
  REQUIRE(writer.publish(10, Deadline::now(), emit_tickets(0), {.lead = 4, .chunk = 6}));
  CHECK(hsa_calls().write_index == 2);
  CHECK(hsa_calls().signal_store == 2);
  CHECK(hsa_calls().load_read_index == 0);
  CHECK(writer.visible_write_index() == 10);
  CHECK(hsa_calls().write_index == 3);
  CHECK(queue.write_index().load() == 10);
  CHECK(queue.doorbell().load() == 9);
  for (uint64_t i = 0; i < 10; ++i) CHECK(queue.slot(i) == ticketed_packet(i));
}

TEST_CASE("a queue with an invalid ring is refused by the writer's constructor", "[writer]") {
  QueueDouble single({.type = HSA_QUEUE_TYPE_SINGLE});
  CHECK_THROWS_AS(AqlQueueWriter::borrow(nullptr), std::invalid_argument);
  CHECK_NOTHROW(AqlQueueWriter::borrow(single.queue()));

  QueueDouble odd;
  odd.queue()->size = 63;
  CHECK_THROWS_AS(AqlQueueWriter::borrow(odd.queue()), std::invalid_argument);
  QueueDouble shifted;
  shifted.queue()->base_address = static_cast<char*>(shifted.queue()->base_address) + 8;
  CHECK_THROWS_AS(AqlQueueWriter::borrow(shifted.queue()), std::invalid_argument);
}

TEST_CASE("a writer sees that other code has published to its queue", "[writer]") {
  for (const bool amd_layout : {true, false}) {
    QueueDouble queue({.amd_layout = amd_layout});
    auto writer = AqlQueueWriter::borrow(queue.queue());
    CHECK_FALSE(writer.has_intruder());
    REQUIRE(writer.publish(2, Deadline::now(), emit_tickets(0)));
    CHECK_FALSE(writer.has_intruder());
    queue.write_index().fetch_add(3);            // another producer's packets
    CHECK(writer.has_intruder() == amd_layout);  // HSA's functions may lead to a tool's own index
  }
}
