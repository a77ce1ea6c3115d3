// Order of a publication's stores, as adversarial processors see it (publication_fixture.hpp), for
// packets published one by one. run_publication_test.cpp tests publication by the run.
//
// Each test covers one rule alone, as test/mutants proves. The readers of invariants 1, 2 and 6
// never see a full ring; the reader of the full ring relies on all other rules.
// back_pressure_test.cpp tests the rest of back-pressure.
#include <vector>

#include <uptempo/aql/writer.hpp>
#include "test/aql/publication_fixture.hpp"
#include "test/support/catch.hpp"
#include "test/support/hsa_double.hpp"
#include "test/support/queue_double.hpp"
#include "test/support/ring_reader.hpp"

using namespace uptempo;
using aql::AqlQueueWriter;
using aql::PublishStatus;
using test::emit_tickets;
using test::Gate;
using test::hsa_calls;
using test::OneByOne;
using test::QueueDouble;
using test::ticketed_packet;

namespace {

std::vector<uint64_t> doorbells_of(uint64_t packets, aql::Chunking chunking, uint32_t ring_size) {
  QueueDouble queue({.ring_size = ring_size, .doorbell_kind = AMD_SIGNAL_KIND_USER});
  std::vector<uint64_t> rung;
  hsa_calls().reset();
  hsa_calls().on_store = [&](hsa_signal_t, hsa_signal_value_t value) {
    rung.push_back(static_cast<uint64_t>(value));
    test::drain(queue);
  };
  auto writer = AqlQueueWriter::borrow(queue.queue());
  const aql::PublishResult result =
      writer.publish(packets, Deadline::now(), emit_tickets(0), chunking);
  hsa_calls().reset();
  REQUIRE(result);
  return rung;
}

void check_slot_lifetime() {
  QueueDouble queue({.ring_size = 64});
  auto writer = AqlQueueWriter::borrow(queue.queue());
  REQUIRE(writer.publish(64, Deadline::now(), emit_tickets(0)));
  // Completion has been observed and headers are INVALID again, but the read index has not moved.
  for (uint64_t i = 0; i < 64; ++i) queue.invalidate(i);
  const aql::Packet64 before = queue.slot(0);
  CHECK(writer.publish(1, Deadline::now(), emit_tickets(64)).status ==
        PublishStatus::resource_full);
  CHECK(queue.slot(0) == before);
  CHECK(writer.room().free == 0);

  queue.read_index().store(1);
  CHECK(writer.room().free == 1);
  REQUIRE(writer.publish(1, Deadline::now(), emit_tickets(64)));
  CHECK(queue.slot(64) == ticketed_packet(64));
  CHECK(writer.publish(1, Deadline::now(), emit_tickets(65)).status ==
        PublishStatus::resource_full);
}

}  // namespace

TEST_CASE("Invariant 1: a packet's first 32 bits are stored last, and read INVALID until then",
          "[writer][invariant]") {
  // A processor that follows only headers.
  for (uint64_t seed = 1; seed <= 40; ++seed) test::interleaved<OneByOne>(Gate::header, seed);
  test::threaded<OneByOne>(Gate::header, 1, 256, 50'000, false);
}

TEST_CASE("Invariant 2: with exclusive producers the write index covers published slots only",
          "[writer][invariant]") {
  // A processor that fetches any line below the write index in two pieces, at two times.
  for (uint64_t seed = 1; seed <= 40; ++seed) test::interleaved<OneByOne>(Gate::write_index, seed);
  test::threaded<OneByOne>(Gate::write_index, 2, 256, 50'000, false);
}

TEST_CASE(
    "Invariant 6: the doorbell is rung once per chunk, last of all, with the index of its last "
    "packet",
    "[writer][invariant]") {
  SECTION("a processor that sleeps until the doorbell finds all packets published") {
    for (uint64_t seed = 1; seed <= 40; ++seed) test::interleaved<OneByOne>(Gate::doorbell, seed);
    test::threaded<OneByOne>(Gate::doorbell, 3, 256, 50'000, false);
  }
  SECTION(
      "once per chunk, through hsa_signal_store_screlease where the doorbell is not of kind "
      "DOORBELL") {
    QueueDouble queue({.ring_size = 64, .doorbell_kind = AMD_SIGNAL_KIND_USER});
    auto writer = AqlQueueWriter::borrow(queue.queue());
    std::vector<hsa_signal_value_t> rung;
    bool all_published = true;
    hsa_calls().reset();
    hsa_calls().on_store = [&](hsa_signal_t signal, hsa_signal_value_t value) {
      rung.push_back(value);
      const auto last = static_cast<uint64_t>(value);
      all_published = all_published && signal.handle == queue.doorbell_signal().handle &&
                      queue.write_index().load() == last + 1;
      for (uint64_t i = 0; i <= last; ++i)
        all_published = all_published && queue.slot(i) == ticketed_packet(i);
    };
    REQUIRE(writer.publish(
        20, Deadline::now(),
        [](uint64_t i, void* slot) noexcept { return aql::fill(slot, ticketed_packet(i)); },
        {.lead = 8, .chunk = 6}));
    hsa_calls().on_store = nullptr;
    CHECK(rung == std::vector<hsa_signal_value_t>{7, 13, 19});
    CHECK(all_published);
    CHECK(hsa_calls().total() == 3);
  }
  SECTION("a publication rings one doorbell per chunk") {
    using V = std::vector<uint64_t>;
    CHECK(doorbells_of(120, {}, 256) == V{119});
    CHECK(doorbells_of(1, {.lead = 8, .chunk = 256}, 256) == V{0});
    CHECK(doorbells_of(8, {.lead = 8, .chunk = 256}, 256) == V{7});
    CHECK(doorbells_of(120, {.lead = 8, .chunk = 256}, 256) == V{7, 119});
    CHECK(doorbells_of(120, {.lead = 8, .chunk = 50}, 256) == V{7, 57, 107, 119});
    CHECK(doorbells_of(10, {.lead = 0, .chunk = 4}, 64) == V{3, 7, 9});
    CHECK(doorbells_of(3, {.lead = 1, .chunk = 0}, 64) == V{0, 1, 2});
  }
}

TEST_CASE("Invariant 4: a slot is free when the read index has passed it, and not before",
          "[writer][invariant]") {
  SECTION("a writer whose ring is full") { check_slot_lifetime(); }
  SECTION("no packet is overwritten in a ring that keeps filling up") {
    for (const uint32_t ring_size : {64u, 128u, 1024u}) {
      test::threaded<OneByOne>(Gate::all, ring_size, ring_size, 50'000, true);
    }
  }
}
