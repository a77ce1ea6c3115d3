// Invariants of several writers over a SharedRing, each with a patch in test/mutants that turns it
// red. A separate target, because the other tests of shared producers (shared_ring_test.cpp) rely
// on all invariants at once.
#include <random>
#include <string>
#include <vector>

#include "test/aql/shared_ring_fixture.hpp"
#include "test/support/catch.hpp"

using namespace uptempo;
using namespace uptempo::test;

namespace {

// Nested publications, up to three deep, with the reader stepping between any two stores.
class Nest {
 public:
  Nest(Gate gate, uint64_t seed)
      : shared_({.ring_size = 64, .first_index = uint64_t{0} - 700}),
        reader_(shared_.queue, gate, seed),
        random_(seed * 7919) {}

  void run() {
    for (int round = 0; round < 60; ++round) {
      publish(0);
      for (int i = 0;
           i < 100'000 && shared_.queue.read_index().load() != shared_.queue.write_index().load();
           ++i)
        reader_.step();
    }
    CHECK(reader_.defects() == std::vector<std::string>{});
    CHECK(reader_.taken() == ticket_ + 700);
  }

 private:
  void publish(size_t depth) {
    const uint64_t count = 1 + random_() % 10;
    const uint64_t first = ticket_;
    ticket_ += count;
    const auto result = shared_[depth].publish(
        count, Deadline::now(),
        [&](uint64_t i, void* slot) noexcept {
          let_loose();
          const uint32_t word = fill_ticketed(slot, first + i, [&] { let_loose(); });
          if (depth + 1 < 3 && random_() % 4 == 0 && ticket_ + 10 - begin_of_round_ < 64)
            publish(depth + 1);
          let_loose();
          return word;
        },
        {.lead = static_cast<uint32_t>(random_() % 3),
         .chunk = 1 + static_cast<uint32_t>(random_() % 10)});
    CHECK(result);
    if (depth == 0) begin_of_round_ = ticket_;
  }
  void let_loose() {
    const auto kind = random_() % 4;
    for (unsigned i = kind == 0 ? 0 : kind == 1 ? 1 : kind == 2 ? 6 : 400; i > 0; --i)
      reader_.step();
  }

  Shared shared_;
  RingReader reader_;
  std::mt19937_64 random_;
  uint64_t ticket_ = uint64_t{0} - 700;  // tickets are indices: claims follow call order
  uint64_t begin_of_round_ = ticket_;
};

}  // namespace

TEST_CASE("Invariant 2: with shared producers the write index covers published slots only",
          "[shared][invariant]") {
  // A processor that fetches any line below the write index in two pieces, and one that follows the
  // doorbell.
  for (const Gate gate : {Gate::write_index, Gate::doorbell}) {
    for (uint64_t seed = 1; seed <= 60; ++seed) {
      CAPTURE(static_cast<int>(gate), seed);
      Nest(gate, seed).run();
    }
  }
}

TEST_CASE("Invariant 1: with shared producers a processor may take packets before the write index",
          "[shared][invariant]") {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    Nest(Gate::header, seed).run();
  }
}

TEST_CASE(
    "Invariant 6: a publication that finishes while the doorbell is rung gets its own doorbell",
    "[shared][invariant]") {
  Doorbells doorbells;
  Shared shared({.ring_size = 64, .doorbell_kind = AMD_SIGNAL_KIND_USER});
  hsa_calls().on_store = [&](hsa_signal_t, hsa_signal_value_t value) {
    doorbells.rung.push_back(static_cast<uint64_t>(value));
    if (value == 1) CHECK(shared[1].publish(3, Deadline::now(), emit_tickets(2)));
  };
  REQUIRE(shared[0].publish(2, Deadline::now(), emit_tickets(0)));
  CHECK(doorbells.rung == Rung{1, 4});
  CHECK(shared.queue.write_index().load() == 5);
}
