// Publications against an adversarial processor (ring_reader.hpp). Each runs twice: in one thread,
// with the reader stepping between any two stores of the writer, in many seeded orders; and with
// the reader in its own thread, which ThreadSanitizer also checks.
//
// A parameter selects how packets get into the ring: a function object publish(writer,
// first_ticket, count, deadline, chunking, here) that calls here() between its stores.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include <uptempo/aql/writer.hpp>
#include "test/support/catch.hpp"
#include "test/support/queue_double.hpp"
#include "test/support/ring_reader.hpp"
#include "test/support/soon.hpp"

namespace uptempo::test {

// Lets the reader take some steps: none, a few, or as many as it needs to take all packets.
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

// Runs until the reader has taken all packets and freed their slots.
inline void catch_up(QueueDouble& queue, RingReader& reader) {
  for (int i = 0; i < 100'000 && queue.read_index().load() != queue.write_index().load(); ++i)
    reader.step();
}

// Takes all published packets out of the ring, as a processor would, and moves the read index.
inline void drain(QueueDouble& queue) {
  for (uint64_t i = queue.read_index().load(); i != queue.write_index().load(); ++i)
    queue.invalidate(i);
  queue.read_index().store(queue.write_index().load());
}

struct OneByOne {
  template <class Here>
  aql::PublishResult operator()(aql::AqlQueueWriter& writer, uint64_t first_ticket, uint64_t count,
                                Deadline deadline, aql::Chunking chunking, const Here& here) const {
    return writer.publish(
        count, deadline,
        [&](uint64_t i, void* slot) noexcept {
          here();
          const uint32_t word = fill_ticketed(slot, first_ticket + i, here);
          here();
          return word;
        },
        chunking);
  }
};

// Stores the header first, then the rest in two halves, so that only the gate protects the slot.
template <class Here>
void store_header_first(aql::Packet64& slot, uint64_t ticket, const Here& here) noexcept {
  slot.word[0] = ticketed_packet(ticket).word[0];
  here();
  (void)fill_ticketed(&slot, ticket, here);
}

// Publishes with a RunEmitter that stores each packet header first.
struct ByTheRun {
  template <class Here>
  struct Emit {
    uint32_t operator()(uint64_t i, void* slot) const noexcept {
      here();
      const uint32_t word = fill_ticketed(slot, first_ticket + i, here);
      here();
      return word;
    }
    void operator()(uint64_t i, std::span<aql::Packet64> slots) const noexcept {
      for (aql::Packet64& slot : slots) {
        here();
        store_header_first(slot, first_ticket + i++, here);
      }
      here();
    }
    uint64_t first_ticket;
    const Here& here;
  };
  template <class Here>
  aql::PublishResult operator()(aql::AqlQueueWriter& writer, uint64_t first_ticket, uint64_t count,
                                Deadline deadline, aql::Chunking chunking, const Here& here) const {
    static_assert(aql::RunEmitter<Emit<Here>>);
    return writer.publish(count, deadline, Emit<Here>{first_ticket, here}, chunking);
  }
};

// Publishes finished packets with the writer's own code.
struct FromSpan {
  template <class Here>
  aql::PublishResult operator()(aql::AqlQueueWriter& writer, uint64_t first_ticket, uint64_t count,
                                Deadline deadline, aql::Chunking chunking, const Here&) const {
    std::vector<aql::Packet64> packets;
    for (uint64_t i = 0; i < count; ++i) packets.push_back(ticketed_packet(first_ticket + i));
    return writer.publish(packets, deadline, chunking);
  }
};

// Runs in one thread.
template <class Publish>
void interleaved(Gate gate, uint64_t seed, uint64_t first_index = 0) {
  CAPTURE(static_cast<int>(gate), seed, first_index);
  QueueDouble queue({.ring_size = 64, .first_index = first_index});
  RingReader reader(queue, gate, seed);
  Interleaver interleave(reader, seed * 7919);
  auto writer = aql::AqlQueueWriter::borrow(queue.queue());
  uint64_t ticket = first_index;
  for (int publication = 0; publication < 40; ++publication) {
    const uint64_t count = interleave.draw(1, 40);
    const aql::Chunking chunking{.lead = static_cast<uint32_t>(interleave.draw(0, 4)),
                                 .chunk = static_cast<uint32_t>(interleave.draw(1, 20))};
    const auto result =
        Publish{}(writer, ticket, count, Deadline::now(), chunking, [&] { interleave.here(); });
    REQUIRE(result);
    ticket += count;
    interleave.here();
    catch_up(queue, reader);
  }
  CHECK(reader.defects() == std::vector<std::string>{});
  CHECK(reader.taken() == ticket - first_index);
}

// Runs a reader thread against a thread that publishes `packets` packets. With `full_ring`, the
// writer waits for room, up to the whole ring.
template <class Publish>
void threaded(Gate gate, uint64_t seed, uint32_t ring_size, uint64_t packets, bool full_ring) {
  CAPTURE(static_cast<int>(gate), seed, ring_size);
  QueueDouble queue({.ring_size = ring_size});
  RingReader reader(queue, gate, seed);
  std::thread device([&] { reader.run(packets); });
  auto writer = aql::AqlQueueWriter::borrow(queue.queue());
  std::mt19937_64 random(seed * 31);
  bool refused = false;
  for (uint64_t done = 0; done < packets && !refused;) {
    uint64_t count = 1 + random() % (full_ring ? ring_size : ring_size / 4);
    if (count > packets - done) count = packets - done;
    while (!full_ring && done + count - queue.read_index().load() > ring_size / 2)
      std::this_thread::yield();
    const aql::Chunking chunking{.lead = static_cast<uint32_t>(random() % 3),
                                 .chunk = 1 + static_cast<uint32_t>(random() % 16)};
    refused = !Publish{}(writer, done, count, soon(), chunking, [] {});
    done += count;
  }
  if (refused) reader.stop();
  device.join();

  CHECK_FALSE(refused);
  CHECK(reader.defects() == std::vector<std::string>{});
  CHECK(reader.taken() == packets);
}

}  // namespace uptempo::test
