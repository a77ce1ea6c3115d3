// Several writers over a SharedRing: in-order commit, back-pressure, and many threads at once. A
// model checks the protocol itself (test/models); these tests check, also under ThreadSanitizer,
// that the code follows it. shared_invariants_test.cpp tests the invariants.
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <optional>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "test/aql/shared_ring_fixture.hpp"
#include "test/support/catch.hpp"
#include "test/support/soon.hpp"

using namespace uptempo;
using namespace uptempo::test;
using namespace std::chrono_literals;
using aql::AqlQueueWriter;
using aql::PublishResult;
using aql::PublishStatus;
using aql::SharedRing;

TEST_CASE("shared writers publish to consecutive slots in the order of their claims", "[shared]") {
  const Doorbells doorbells;
  for (const uint64_t first : {uint64_t{0}, uint64_t{0} - 5, (uint64_t{1} << 63) - 2}) {
    Shared shared({.ring_size = 64, .first_index = first});
    CHECK(shared[0].is_shared());
    for (uint64_t i = 0; i < 90; i += 3) {
      const PublishResult result =
          shared[i % 2].publish(3, Deadline::now(), emit_tickets(first + i));
      REQUIRE(result);
      CHECK(result.last_index == first + i + 2);
      CHECK(result.doorbells == 1);
      CHECK(shared.queue.write_index().load() == first + i + 3);
      CHECK(shared.queue.doorbell().load() == first + i + 2);
      for (uint64_t p = i; p < i + 3; ++p)
        CHECK(shared.queue.slot(first + p) == ticketed_packet(first + p));
      if (i >= 30) take(shared.queue, 3);
    }
    CHECK(shared[0].next_index() == first + 90);
    CHECK(shared[1].room().occupancy == 30);
  }
}

TEST_CASE(
    "writers of a ring by HSA calls commit each publication by one call for index and doorbell",
    "[shared]") {
  test::QueueDouble queue({.ring_size = 64, .doorbell_kind = AMD_SIGNAL_KIND_USER});
  SharedRing ring(queue.queue(), aql::RingAccess::hsa_calls);
  auto writer = AqlQueueWriter::share(ring);
  CHECK_FALSE(writer.direct_indices());
  test::hsa_calls().reset();
  REQUIRE(writer.publish(10, Deadline::now(), emit_tickets(0)));
  CHECK(test::hsa_calls().write_index == 1);
  CHECK(test::hsa_calls().signal_store == 1);
  CHECK(queue.write_index().load() == 10);
  CHECK(queue.doorbell().load() == 9);
}

TEST_CASE(
    "a writer that finishes out of turn does not wait, and the oldest commits its packets with one "
    "doorbell",
    "[shared]") {
  for (const uint64_t first : {uint64_t{0}, uint64_t{0} - 5, (uint64_t{1} << 63) - 2}) {
    Doorbells doorbells;
    Shared shared({.ring_size = 64, .doorbell_kind = AMD_SIGNAL_KIND_USER, .first_index = first});
    const PublishResult outer =
        shared[0].publish(2, Deadline::now(), emit_tickets(first, [&] {
                            CHECK(shared[1].publish(3, Deadline::now(), emit_tickets(first + 2)));
                            CHECK(shared[2].publish(1, Deadline::now(), emit_tickets(first + 5)));
                            CHECK(shared[1].publish(4, Deadline::now(), emit_tickets(first + 6)));
                            CHECK(shared.queue.write_index().load() == first);
                            CHECK(doorbells.rung.empty());
                          }));
    REQUIRE(outer);
    CHECK(shared.queue.write_index().load() == first + 10);
    CHECK(doorbells.rung == Rung{first + 9});
    for (uint64_t p = 0; p < 10; ++p)
      CHECK(shared.queue.slot(first + p) == ticketed_packet(first + p));
    CHECK(outer.doorbells == 1);
  }
}

TEST_CASE("the oldest writer commits finished publications only up to the first gap", "[shared]") {
  Doorbells doorbells;
  Shared shared({.ring_size = 64, .doorbell_kind = AMD_SIGNAL_KIND_USER});
  // Claim order 0, 1, 2; finish order 2, 1, 0.
  REQUIRE(shared[0].publish(1, Deadline::now(), emit_tickets(0, [&] {
                              CHECK(shared[1].publish(
                                  2, Deadline::now(), emit_tickets(1, [&] {
                                    CHECK(shared[2].publish(3, Deadline::now(), emit_tickets(3)));
                                    CHECK(shared.queue.write_index().load() == 0);
                                  })));
                              CHECK(shared.queue.write_index().load() == 0);
                            })));
  CHECK(doorbells.rung == Rung{5});
  // The oldest writer has published its first chunk and writes its second; no later publication
  // becomes visible.
  REQUIRE(shared[0].publish(2, Deadline::now(),
                            [&](uint64_t i, void* slot) noexcept {
                              const uint32_t word = aql::fill(slot, ticketed_packet(6 + i));
                              if (i == 1) {
                                CHECK(doorbells.rung == Rung{5, 6});
                                CHECK(shared[1].publish(1, Deadline::now(), emit_tickets(8)));
                                CHECK(shared.queue.write_index().load() == 7);
                              }
                              return word;
                            },
                            {.chunk = 1}));
  CHECK(doorbells.rung == Rung{5, 6, 8});
}

namespace {

// Eight producer threads, delayed at random between claim and headers, and one reader thread.
constexpr unsigned kProducers = 8;

struct Delays {
  std::mt19937_64 random;
  void here() {
    const auto draw = random() % 256;
    if (draw < 4) {
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
    } else if (draw < 40) {
      std::this_thread::yield();
    }
  }
};

void stress(QueueDouble& queue, Gate gate, uint64_t seed, uint64_t packets_each) {
  CAPTURE(static_cast<int>(gate), seed);
  SharedRing ring(queue.queue());
  RingReader reader(queue, gate, seed);
  reader.expect_tickets_in_any_order();
  std::atomic<unsigned> refused{0};

  const auto produce = [&](uint64_t which) {
    auto writer = AqlQueueWriter::share(ring);
    Delays delays{std::mt19937_64(seed * 31 + which)};
    for (uint64_t done = 0; done < packets_each;) {
      // Mostly short; sometimes longer than half the ring, up to all of it.
      const auto draw = delays.random();
      uint64_t count = 1 + (draw >> 8) % (draw % 16 == 0 ? 64 : draw % 4 == 0 ? 40 : 4);
      if (count > packets_each - done) count = packets_each - done;
      const auto result = writer.publish(
          count, Deadline::after(60s),
          [&, first = which << 32 | done](uint64_t i, void* slot) noexcept {
            delays.here();
            return fill_ticketed(slot, first + i, [&] { delays.here(); });
          },
          {.lead = static_cast<uint32_t>(draw % 3), .chunk = 1 + static_cast<uint32_t>(draw % 16)});
      if (!result) {
        ++refused;
        reader.stop();
        return;
      }
      done += count;
    }
  };
  std::vector<std::thread> threads;
  for (uint64_t which = 0; which < kProducers; ++which) threads.emplace_back(produce, which);
  reader.run(kProducers * packets_each);
  for (auto& thread : threads) thread.join();

  CHECK(refused == 0);
  CHECK(reader.defects() == std::vector<std::string>{});
  CHECK(queue.doorbell().load() + 1 == queue.write_index().load());
  // Each packet once, each producer's packets in order.
  std::array<uint64_t, kProducers> next{};
  bool in_order = true;
  for (const uint64_t ticket : reader.tickets())
    in_order = in_order && next[ticket >> 32]++ == (ticket & 0xffffffff);
  CHECK(in_order);
  for (const uint64_t count : next) CHECK(count == packets_each);
}

}  // namespace

TEST_CASE(
    "with eight delayed producers on a ring of 64, every packet is taken once, whole, in its "
    "producer's "
    "order",
    "[shared][stress]") {
  for (const Gate gate : {Gate::header, Gate::write_index, Gate::doorbell}) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      QueueDouble queue({.ring_size = 64, .first_index = uint64_t{0} - 1000});
      stress(queue, gate, seed, 1500);
    }
  }
}

TEST_CASE("doorbells of several producers grow, even if ringing one takes long",
          "[shared][stress]") {
  QueueDouble queue({.ring_size = 64, .doorbell_kind = AMD_SIGNAL_KIND_USER});
  hsa_calls().reset();
  // Not atomic, because only one thread at a time rings.
  hsa_signal_value_t last = -1;
  bool grows = true;
  Delays delays{std::mt19937_64(5)};
  hsa_calls().on_store = [&](hsa_signal_t, hsa_signal_value_t value) {
    grows = grows && value > last;
    last = value;
    delays.here();
  };
  stress(queue, Gate::doorbell, 9, 1500);
  hsa_calls().reset();
  CHECK(grows);
}

TEST_CASE("when no producer is publishing, all packets are visible and rung", "[shared][stress]") {
  constexpr unsigned threads = 4;
  constexpr int rounds = 3000;
  QueueDouble queue({.ring_size = 64});
  SharedRing ring(queue.queue());
  unsigned lost = 0;
  std::barrier round(threads, [&]() noexcept {
    const uint64_t claimed = ring.claimed();
    lost += queue.write_index().load() != claimed || queue.doorbell().load() + 1 != claimed;
    take(queue, claimed - queue.read_index().load());
  });
  std::atomic<unsigned> refused{0};
  const auto produce = [&](uint64_t which) {
    auto writer = AqlQueueWriter::share(ring);
    for (int i = 0; i < rounds; ++i) {
      for (unsigned k = 0; k < 4; ++k)
        refused += !writer.publish(1 + (which + k) % 3, Deadline::now(), emit_tickets(0));
      round.arrive_and_wait();
    }
  };
  std::vector<std::thread> others;
  for (uint64_t which = 1; which < threads; ++which) others.emplace_back(produce, which);
  produce(0);
  for (auto& other : others) other.join();
  CHECK(refused == 0);
  CHECK(lost == 0);
}

TEST_CASE(
    "a thread commits for others for at most sixteen rounds while another producer is to follow",
    "[shared]") {
  QueueDouble queue({.ring_size = 64, .doorbell_kind = AMD_SIGNAL_KIND_USER});
  SharedRing ring(queue.queue());
  constexpr unsigned others = 20;
  std::array<std::atomic<bool>, others + 1> go{}, finished{};
  std::atomic<unsigned> refused{0};
  std::vector<std::thread> threads;
  auto first = AqlQueueWriter::share(ring);
  hsa_calls().reset();
  unsigned doorbells = 0;
  // At each doorbell of the first writer, one more writer finishes after the packets just rung.
  hsa_calls().on_store = [&](hsa_signal_t, hsa_signal_value_t) {
    const unsigned which = doorbells++;
    if (which >= others) return;
    go[which] = true;
    while (!finished[which]) std::this_thread::yield();
  };
  const PublishResult result = first.publish(
      1, Deadline::now(), emit_tickets(0, [&] {
        for (unsigned which = 0; which <= others; ++which) {  // all claim, in this order, and stop
          threads.emplace_back([&, which] {
            auto writer = AqlQueueWriter::share(ring);
            refused += !writer.publish(1, Deadline::now(), emit_tickets(1 + which, [&, which] {
                                         while (!go[which]) std::this_thread::yield();
                                       }));
            finished[which] = true;
          });
          while (ring.claimed() != which + 2) std::this_thread::yield();
        }
      }));
  CHECK(result.doorbells == 16);
  CHECK(queue.write_index().load() == 16);
  CHECK(ring.claimed() == others + 2);
  hsa_calls().on_store = nullptr;
  for (auto& flag : go) flag = true;
  for (auto& thread : threads) thread.join();
  hsa_calls().reset();
  CHECK(refused == 0);
  CHECK(queue.write_index().load() == others + 2);
  CHECK(queue.doorbell().load() == others + 1);
}

TEST_CASE("a full ring refuses shared writers and strands no slot", "[shared]") {
  Shared shared({.ring_size = 64});
  REQUIRE(shared[0].publish(62, Deadline::now(), emit_tickets(0)));
  SECTION("a try reports at once and leaves no trace") {
    const PublishResult result =
        shared[1].publish(10, Deadline::now(), emit_tickets(62), {.lead = 1, .chunk = 1});
    CHECK(result.status == PublishStatus::resource_full);
    CHECK(result.ring_size == 64);
    CHECK(result.occupancy == 62);
    CHECK(shared.ring.claimed() == 62);
    CHECK(shared.queue.slot(62).word[0] == aql::first_word(aql::kInvalidHeader));
    aql::Slots slots{10};
    CHECK_FALSE(shared[1].try_reserve(slots));
    REQUIRE(shared[2].publish(2, Deadline::now(), emit_tickets(62)));
    CHECK(shared.queue.write_index().load() == 64);
  }
  SECTION("the deadline is kept") {
    const auto start = Deadline::Clock::now();
    CHECK(shared[1].publish(10, Deadline::after(20ms), emit_tickets(62)).status ==
          PublishStatus::resource_full);
    CHECK(Deadline::Clock::now() - start >= 20ms);
  }
  SECTION("room that becomes free in time is used") {
    std::thread processor([&] {
      std::this_thread::sleep_for(5ms);
      take(shared.queue, 20);
    });
    const PublishResult result = shared[1].publish(10, soon(), emit_tickets(62));
    processor.join();
    REQUIRE(result);
    CHECK(result.last_index == 71);
  }
  SECTION("a failed queue refuses publications and ends a wait") {
    std::atomic<hsa_status_t> error{HSA_STATUS_SUCCESS};
    auto writer = AqlQueueWriter::share(shared.ring, &error);
    std::thread device([&] {
      std::this_thread::sleep_for(5ms);
      error = HSA_STATUS_ERROR_EXCEPTION;
    });
    CHECK(writer.publish(10, Deadline::never(), emit_tickets(62)).status ==
          PublishStatus::queue_failed);
    device.join();
    CHECK(writer.publish(1, Deadline::now(), emit_tickets(62)).queue_error ==
          HSA_STATUS_ERROR_EXCEPTION);
    CHECK(shared.ring.claimed() == 62);
  }
}

TEST_CASE("a waiter that a ring full of packets has overtaken is served next", "[shared]") {
  Shared shared({.ring_size = 64});
  REQUIRE(shared[0].publish(64, Deadline::now(), emit_tickets(0)));
  // Frees one slot at a time and takes it again, until the claim is refused.
  const auto overtake_until_refused = [&] {
    for (int overtaken = 0; overtaken < 1'000'000; ++overtaken) {
      take(shared.queue, 1);
      if (!shared[0].publish(1, Deadline::now(), emit_tickets(0))) return overtaken;
      if (overtaken > 64) std::this_thread::sleep_for(10us);
    }
    return -1;
  };
  SECTION("until it has its slots, others are refused") {
    std::optional<PublishResult> result;
    std::thread waiter(
        [&] { result = shared[1].publish(40, Deadline::after(60s), emit_tickets(0)); });
    std::this_thread::sleep_for(2ms);
    const int overtaken = overtake_until_refused();
    CHECK(overtaken >= 0);
    CHECK(shared[2].room().free == 1);
    take(shared.queue, 39);
    waiter.join();
    REQUIRE(result->status == PublishStatus::ok);
    take(shared.queue, 1);
    CHECK(shared[2].publish(1, Deadline::now(), emit_tickets(0)));
  }
  SECTION("after it has given up, others are served") {
    std::optional<PublishResult> result;
    std::atomic<hsa_status_t> error{HSA_STATUS_SUCCESS};
    auto writer = AqlQueueWriter::share(shared.ring, &error);
    std::thread waiter([&] { result = writer.publish(40, Deadline::never(), emit_tickets(0)); });
    std::this_thread::sleep_for(2ms);
    CHECK(overtake_until_refused() >= 0);
    error = HSA_STATUS_ERROR_EXCEPTION;
    waiter.join();
    CHECK(result->status == PublishStatus::queue_failed);
    CHECK(shared[0].publish(1, Deadline::now(), emit_tickets(0)));
  }
}

TEST_CASE(
    "a ring that others have filled and the processor has emptied meanwhile is not reported as "
    "full",
    "[shared]") {
  // The index of the next slot was loaded before that, the read index after it.
  Shared shared({.ring_size = 64, .amd_layout = false});
  REQUIRE(shared[0].publish(64, Deadline::now(), emit_tickets(0)));
  hsa_calls().reset();
  hsa_calls().on_load_read_index = [&] {
    hsa_calls().on_load_read_index = nullptr;
    take(shared.queue, 64);
    CHECK(shared[1].publish(64, Deadline::now(), emit_tickets(0)));
    take(shared.queue, 64);
  };
  CHECK(shared[0].publish(1, Deadline::now(), emit_tickets(0)));
  hsa_calls().reset();
}

TEST_CASE("a SharedRing needs a valid ring", "[shared]") {
  QueueDouble single({.type = HSA_QUEUE_TYPE_SINGLE}), odd;
  CHECK_THROWS_AS(SharedRing(nullptr), std::invalid_argument);
  odd.queue()->size = 63;
  CHECK_THROWS_AS(SharedRing(odd.queue()), std::invalid_argument);
  CHECK_NOTHROW(SharedRing(single.queue()));  // one producer at a time stores indices and doorbell
}
