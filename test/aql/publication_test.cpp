// The order of a publication's stores, as adversarial processors see it (ring_reader.hpp). Each invariant is tried twice: step by step in
// one thread, with the reader let loose between any two stores of the writer, in many seeded orders; and with the reader in a
// thread of its own, which is also what ThreadSanitizer judges.
//
// These tests keep the ring from filling up: what a full ring does is back_pressure_test.cpp's, with one stress run below.
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "aql/writer.hpp"
#include "support/catch.hpp"
#include "support/hsa_double.hpp"
#include "support/queue_double.hpp"
#include "support/ring_reader.hpp"

using namespace uptempo;
using namespace std::chrono_literals;
using aql::AqlQueueWriter;
using aql::Producers;
using test::fill_ticketed;
using test::Gate;
using test::hsa_calls;
using test::QueueDouble;
using test::RingReader;
using test::ticketed_packet;

namespace {

// Lets the reader take some steps: none, a few, or as many as it takes to swallow all there is.
class Interleaver {
 public:
  Interleaver(RingReader& reader, uint64_t seed) : reader_(reader), random_(seed) {}

  void here() {
    const unsigned kind = static_cast<unsigned>(random_() % 4);
    const unsigned steps = kind == 0 ? 0 : kind == 1 ? 1 : kind == 2 ? 6 : 400;
    for (unsigned i = 0; i < steps; ++i) reader_.step();
  }
  uint64_t draw(uint64_t from, uint64_t to) { return from + random_() % (to - from + 1); }

 private:
  RingReader& reader_;
  std::mt19937_64 random_;
};

// Until the reader has taken everything and given the slots back.
void catch_up(QueueDouble& queue, RingReader& reader) {
  for (int i = 0; i < 100'000 && queue.read_index().load() != queue.write_index().load(); ++i) reader.step();
}

void interleaved(Producers producers, Gate gate, uint64_t seed) {
  CAPTURE(static_cast<int>(gate), seed);
  QueueDouble queue({.ring_size = 64});
  RingReader reader(queue, gate, seed);
  Interleaver interleave(reader, seed * 7919);
  auto writer = AqlQueueWriter::borrow(queue.queue(), producers);
  uint64_t ticket = 0;
  for (int publication = 0; publication < 40; ++publication) {
    const uint64_t count = interleave.draw(1, 40);
    const aql::Chunking chunking{.lead = static_cast<uint32_t>(interleave.draw(0, 4)),
                                 .chunk = static_cast<uint32_t>(interleave.draw(1, 20))};
    const auto result = writer.publish(
        count, Deadline::now(),
        [&](uint64_t i, void* slot) noexcept {
          interleave.here();
          const uint32_t first = fill_ticketed(slot, ticket + i, [&] { interleave.here(); });
          interleave.here();
          return first;
        },
        chunking);
    REQUIRE(result);
    ticket += count;
    interleave.here();
    catch_up(queue, reader);
  }
  CHECK(reader.defects() == std::vector<std::string>{});
  CHECK(reader.taken() == ticket);
}

// One reader thread against `writers` producers, each publishing `packets` packets. `full_ring` lets the writers run into the ring's end.
void threaded(Producers producers, Gate gate, uint64_t seed, uint32_t ring_size, unsigned writers,
              uint64_t packets, bool full_ring) {
  CAPTURE(static_cast<int>(gate), seed, ring_size);
  QueueDouble queue({.ring_size = ring_size});
  RingReader reader(queue, gate, seed);
  if (writers > 1) reader.expect_tickets_in_any_order();
  std::thread device([&] { reader.run(writers * packets); });
  std::atomic<uint64_t> announced{0};
  std::atomic<unsigned> refused{0};

  const auto produce = [&](unsigned which) {
    auto writer = AqlQueueWriter::borrow(queue.queue(), producers);
    std::mt19937_64 random(seed * 31 + which);
    for (uint64_t done = 0; done < packets;) {
      uint64_t count = 1 + random() % (full_ring ? 2 * ring_size : ring_size / 4 / writers);
      if (count > packets - done) count = packets - done;
      if (!full_ring) {
        announced += count;
        while (announced.load() - queue.read_index().load() > ring_size / 2) std::this_thread::yield();
      }
      const uint64_t first = which * packets + done;
      const aql::Chunking chunking{.lead = static_cast<uint32_t>(random() % 3),
                                   .chunk = 1 + static_cast<uint32_t>(random() % 16)};
      const auto result = writer.publish(
          count, Deadline::after(60s),
          [&](uint64_t i, void* slot) noexcept { return fill_ticketed(slot, first + i, [] {}); }, chunking);
      if (!result) {
        ++refused;
        reader.stop();
        return;
      }
      done += count;
    }
  };
  std::vector<std::thread> others;
  for (unsigned w = 1; w < writers; ++w) others.emplace_back(produce, w);
  produce(0);
  for (auto& other : others) other.join();
  device.join();

  CHECK(refused == 0);
  CHECK(reader.defects() == std::vector<std::string>{});
  CHECK(reader.taken() == writers * packets);
  if (writers > 1) {
    const auto tickets = reader.tickets();
    CHECK(std::set<uint64_t>(tickets.begin(), tickets.end()).size() ==
          writers * packets);  // each exactly once
  }
}

}  // namespace

TEST_CASE("Invariant 1: a packet's first 32 bits are stored last, and read INVALID until then",
          "[writer][invariant]") {
  // A processor that believes in headers alone.
  for (uint64_t seed = 1; seed <= 40; ++seed) interleaved(Producers::exclusive, Gate::header, seed);
  for (uint64_t seed = 1; seed <= 40; ++seed) interleaved(Producers::foreign, Gate::header, seed);
  threaded(Producers::exclusive, Gate::header, 1, 256, 1, 50'000, false);
}

TEST_CASE("Invariant 2: with exclusive producers the write index moves over published slots only",
          "[writer][invariant]") {
  // A processor that fetches any line below the write index in two pieces, at two moments.
  for (uint64_t seed = 1; seed <= 40; ++seed) interleaved(Producers::exclusive, Gate::write_index, seed);
  threaded(Producers::exclusive, Gate::write_index, 2, 256, 1, 50'000, false);
}

TEST_CASE("Invariant 6: the doorbell is rung once per chunk, last of all, with the index of its last packet",
          "[writer][invariant]") {
  SECTION("a processor that sleeps until the doorbell finds everything published") {
    for (uint64_t seed = 1; seed <= 40; ++seed) interleaved(Producers::exclusive, Gate::doorbell, seed);
    threaded(Producers::exclusive, Gate::doorbell, 3, 256, 1, 50'000, false);
  }
  SECTION("once per chunk, through hsa_signal_store_screlease where the doorbell is not of kind DOORBELL") {
    QueueDouble queue({.ring_size = 64, .doorbell_kind = AMD_SIGNAL_KIND_USER});
    auto writer = AqlQueueWriter::borrow(queue.queue(), Producers::exclusive);
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
    REQUIRE(
        writer.publish(20, Deadline::now(),
                       [](uint64_t i, void* slot) noexcept { return aql::fill(slot, ticketed_packet(i)); },
                       {.lead = 8, .chunk = 6}));
    hsa_calls().on_store = nullptr;
    CHECK(rung == std::vector<hsa_signal_value_t>{7, 13, 19});
    CHECK(all_published);
    CHECK(hsa_calls().total() == 3);
  }
}

TEST_CASE("Every packet is taken whole, once and in order from a ring that keeps filling up",
          "[writer][stress]") {
  for (const auto gate : {Gate::header, Gate::write_index, Gate::doorbell}) {
    for (const uint32_t ring_size : {64u, 128u, 1024u}) {
      threaded(Producers::exclusive, gate, ring_size, ring_size, 1, 20'000, true);
    }
  }
}

TEST_CASE("Foreign producers share a ring: every packet is taken whole and exactly once",
          "[writer][stress]") {
  for (const uint32_t ring_size : {64u, 512u})
    threaded(Producers::foreign, Gate::header, ring_size, ring_size, 3, 10'000, true);
}
