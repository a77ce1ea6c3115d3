// Packets after a gate, as adversarial processors see them (publication_fixture.hpp): published by
// the run, or stored in the ring before publication. These tests store packets after a gate header
// first, so that only the gate protects them.
//
// A separate target, because each patch of test/mutants must turn exactly one test of its target
// red.
#include <algorithm>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <uptempo/aql/writer.hpp>
#include "test/aql/publication_fixture.hpp"
#include "test/aql/shared_ring_fixture.hpp"
#include "test/support/catch.hpp"
#include "test/support/hsa_double.hpp"

using namespace uptempo;
using namespace uptempo::test;
using aql::AqlQueueWriter;
using aql::Chunking;

namespace {

constexpr uint64_t kBeforeTheWrap = uint64_t{0} - 700;  // index wrap

void let_loose(Gate gate) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    interleaved<ByTheRun>(gate, seed);
    interleaved<ByTheRun>(gate, seed, kBeforeTheWrap);
    interleaved<FromSpan>(gate, seed);
  }
}

// Answers each doorbell before the writer continues, so that each publication finds the ring empty.
void up_to_the_whole_ring(Gate gate, uint64_t seed) {
  CAPTURE(static_cast<int>(gate), seed);
  QueueDouble queue(
      {.ring_size = 64, .doorbell_kind = AMD_SIGNAL_KIND_USER, .first_index = kBeforeTheWrap});
  RingReader reader(queue, gate, seed);
  Interleaver interleave(reader, seed * 7919);
  hsa_calls().reset();
  hsa_calls().on_store = [&](hsa_signal_t, hsa_signal_value_t value) {
    queue.doorbell().store(static_cast<uint64_t>(value));
    catch_up(queue, reader);
  };
  auto writer = AqlQueueWriter::borrow(queue.queue());
  uint64_t ticket = kBeforeTheWrap;
  for (int publication = 0; publication < 8; ++publication) {
    const uint64_t count = interleave.draw(33, 64);
    const Chunking chunking{.lead = static_cast<uint32_t>(interleave.draw(0, 40)),
                            .chunk = static_cast<uint32_t>(interleave.draw(1, 80))};
    const auto result =
        ByTheRun{}(writer, ticket, count, Deadline::now(), chunking, [&] { interleave.here(); });
    CHECK(result);
    ticket += count;
  }
  hsa_calls().reset();
  CHECK(reader.defects() == std::vector<std::string>{});
  CHECK(reader.taken() == ticket - kBeforeTheWrap);
}

// Publications by the run nested in publications by the run, up to three deep, each with its own
// writer.
class Nest {
 public:
  Nest(Gate gate, uint64_t seed)
      : shared_({.ring_size = 64, .first_index = kBeforeTheWrap}),
        reader_(shared_.queue, gate, seed),
        interleave_(reader_, seed * 7919) {}

  void run() {
    for (int round = 0; round < 60; ++round) {
      begin_of_round_ = ticket_;
      publish(0);
      catch_up(shared_.queue, reader_);
    }
    CHECK(reader_.defects() == std::vector<std::string>{});
    CHECK(reader_.taken() == ticket_ - kBeforeTheWrap);
  }

 private:
  void publish(size_t depth) {
    const uint64_t count = interleave_.draw(1, 10), first = ticket_;
    ticket_ += count;
    const Chunking chunking{.lead = static_cast<uint32_t>(interleave_.draw(0, 2)),
                            .chunk = static_cast<uint32_t>(interleave_.draw(1, 10))};
    const auto result =
        ByTheRun{}(shared_[depth], first, count, Deadline::now(), chunking, [this, depth] {
          interleave_.here();
          if (depth + 1 < 3 && interleave_.draw(1, 16) == 1 && ticket_ + 10 - begin_of_round_ < 64)
            publish(depth + 1);
        });
    CHECK(result);
  }

  Shared shared_;
  RingReader reader_;
  Interleaver interleave_;
  uint64_t ticket_ = kBeforeTheWrap;  // tickets are indices: claims follow call order
  uint64_t begin_of_round_ = kBeforeTheWrap;
};

void nested(Gate gate) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(static_cast<int>(gate), seed);
    Nest(gate, seed).run();
  }
}

}  // namespace

TEST_CASE(
    "Invariant 1: packets by the run are whole before the header of the chunk's first one is "
    "stored",
    "[writer][invariant]") {
  // A processor that follows only headers, and therefore relies on the gate.
  let_loose(Gate::header);
  threaded<ByTheRun>(Gate::header, 1, 256, 50'000, false);
  threaded<FromSpan>(Gate::header, 1, 256, 50'000, false);
  for (uint64_t seed = 1; seed <= 20; ++seed) up_to_the_whole_ring(Gate::header, seed);
  nested(Gate::header);
}

TEST_CASE("Invariant 2: packets by the run are published before the write index moves over them",
          "[writer][invariant]") {
  let_loose(Gate::write_index);
  threaded<ByTheRun>(Gate::write_index, 2, 256, 50'000, false);
  threaded<FromSpan>(Gate::write_index, 2, 256, 50'000, false);
  for (uint64_t seed = 1; seed <= 20; ++seed) up_to_the_whole_ring(Gate::write_index, seed);
  nested(Gate::write_index);
}

TEST_CASE("Invariant 6: the doorbell of a chunk by the run is rung last of all",
          "[writer][invariant]") {
  let_loose(Gate::doorbell);
  threaded<ByTheRun>(Gate::doorbell, 3, 256, 50'000, false);
  threaded<FromSpan>(Gate::doorbell, 3, 256, 50'000, false);
  for (uint64_t seed = 1; seed <= 20; ++seed) up_to_the_whole_ring(Gate::doorbell, seed);
  nested(Gate::doorbell);
}

TEST_CASE("Invariant 4: a run overwrites no packet in a ring that keeps filling up",
          "[writer][invariant]") {
  for (const uint32_t ring_size : {64u, 128u, 1024u}) {
    threaded<ByTheRun>(Gate::all, ring_size, ring_size, 50'000, true);
    threaded<FromSpan>(Gate::all, ring_size, ring_size, 50'000, true);
  }
}

TEST_CASE("packets by the run reach the emitter in one piece, or in two around the ring's end",
          "[writer]") {
  // Index of the first packet, and their number.
  using Pieces = std::vector<std::pair<uint64_t, uint64_t>>;
  struct Emit {
    uint32_t operator()(uint64_t i, void* slot) const noexcept {
      return aql::fill(slot, ticketed_packet(i));
    }
    void operator()(uint64_t i, std::span<aql::Packet64> slots) const noexcept {
      pieces.push_back({i, slots.size()});
      for (aql::Packet64& slot : slots) slot = ticketed_packet(i++);
    }
    Pieces& pieces;
  };
  const auto pieces_of = [](uint64_t first_index, uint64_t count, Chunking chunking) {
    QueueDouble queue({.ring_size = 64, .first_index = first_index});
    auto writer = AqlQueueWriter::borrow(queue.queue());
    Pieces pieces;
    CHECK(writer.publish(count, Deadline::now(), Emit{pieces}, chunking));
    for (uint64_t i = 0; i < count; ++i) CHECK(queue.slot(first_index + i) == ticketed_packet(i));
    return pieces;
  };
  CHECK(pieces_of(0, 1, {}) == Pieces{});
  CHECK(pieces_of(0, 56, {}) == Pieces{{1, 55}});
  CHECK(pieces_of(0, 64, {}) == Pieces{{1, 63}});
  CHECK(pieces_of(60, 10, {}) == Pieces{{1, 3}, {4, 6}});
  CHECK(pieces_of(63, 10, {}) == Pieces{{1, 9}});
  CHECK(pieces_of(62, 9, {.lead = 1, .chunk = 4}) == Pieces{{2, 3}, {6, 3}});
}
