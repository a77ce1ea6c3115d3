// Values, signals and reclamation of publications, without a queue.
#include <uptempo/completion/timeline/publication_ring.hpp>

#include <hsa/hsa.h>

#include <atomic>
#include <thread>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/queue_double.hpp"

using namespace uptempo::test;
using uptempo::detail::PublicationRing;
using Reading = PublicationRing::Reading;

TEST_CASE("values count up from one, and there is room for as many as the capacity",
          "[publication_ring]") {
  PublicationRing ring(3);
  SignalDouble signals[3];
  CHECK(ring.capacity() == 3);
  CHECK(ring.places() == 4);
  CHECK(ring.last_begun() == 0);
  for (uint64_t value = 1; value <= 3; ++value) {
    REQUIRE(ring.has_room());
    CHECK(ring.begin(signals[value - 1].handle()) == value);
    CHECK(ring.last_begun() == value);
    CHECK(ring.pending() == value);
  }
  CHECK_FALSE(ring.has_room());
  for (uint64_t value = 1; value <= 3; ++value)
    CHECK(ring.signal_of(value).handle == signals[value - 1].handle().handle);
  REQUIRE(ring.try_reclaim_oldest());
  CHECK(ring.oldest_pending() == 2);
  CHECK(ring.has_room());
}

TEST_CASE("a publication reads pending, complete or negative, as its signal is",
          "[publication_ring]") {
  PublicationRing ring(2);
  SignalDouble signal(1);
  const uint64_t value = ring.begin(signal.handle());
  CHECK(ring.read(value) == Reading::pending);
  signal.set(-1);
  CHECK(ring.read(value) == Reading::negative);
  signal.set(0);
  CHECK(ring.read(value) == Reading::complete);
  CHECK_FALSE(ring.is_known(value));  // reading notes nothing
}

TEST_CASE("a publication whose place was reused reads complete, whatever the new signal holds",
          "[publication_ring]") {
  PublicationRing ring(1);
  SignalDouble signal(0);
  const uint64_t earlier = ring.begin(signal.handle());
  ring.note(earlier);
  REQUIRE(ring.try_reclaim_oldest());
  signal.set(1);
  const uint64_t later = ring.begin(signal.handle());
  REQUIRE(ring.place(later) == ring.place(earlier));
  CHECK(ring.read(earlier) == Reading::complete);
  signal.set(-1);
  CHECK(ring.read(earlier) == Reading::complete);
  CHECK(ring.read(later) == Reading::negative);
}

TEST_CASE("a noted value makes all lower ones known, and a lower note changes nothing",
          "[publication_ring]") {
  PublicationRing ring(4);
  SignalDouble signal;
  for (int i = 0; i < 4; ++i) ring.begin(signal.handle());
  ring.note(3);
  CHECK(ring.is_known(1));
  CHECK(ring.is_known(3));
  CHECK_FALSE(ring.is_known(4));
  ring.note(2);
  CHECK(ring.last_known() == 3);
}

TEST_CASE("a publication is not reclaimed before its last pin has ended", "[publication_ring]") {
  PublicationRing ring(2);
  SignalDouble signal(0);
  const uint64_t value = ring.begin(signal.handle());
  hsa_signal_t pinned{0}, other{0};
  REQUIRE(ring.pin(value, pinned));
  CHECK(pinned.handle == signal.handle().handle);
  REQUIRE(ring.pin(value, other));
  CHECK(other.handle == signal.handle().handle);
  ring.unpin(value);
  CHECK_FALSE(ring.try_reclaim_oldest());
  CHECK(ring.pending() == 1);
  ring.unpin(value);
  CHECK(ring.try_reclaim_oldest());
  other = {0};
  CHECK_FALSE(ring.pin(value, other));
  CHECK(other.handle == 0);
}

TEST_CASE("only publications that are neither known nor reclaimed are unfinished",
          "[publication_ring]") {
  PublicationRing ring(4);
  std::vector<uint64_t> unfinished;
  const auto collect = [&](hsa_signal_t signal) { unfinished.push_back(signal.handle); };
  SignalDouble signals[4];
  for (const SignalDouble& signal : signals) ring.begin(signal.handle());
  REQUIRE(ring.try_reclaim_oldest());  // not noted
  ring.for_each_unfinished(collect);
  CHECK(unfinished == std::vector<uint64_t>{signals[1].handle().handle, signals[2].handle().handle,
                                            signals[3].handle().handle});
  unfinished.clear();
  ring.note(3);
  ring.for_each_unfinished(collect);
  CHECK(unfinished == std::vector<uint64_t>{signals[3].handle().handle});
  unfinished.clear();
  ring.note(4);
  ring.reclaim_all();
  ring.for_each_unfinished(collect);
  CHECK(unfinished.empty());
  CHECK(ring.pending() == 0);
}

TEST_CASE("a signal is not reused while another thread has its publication pinned",
          "[publication_ring]") {
  PublicationRing ring(1);
  SignalDouble signal(0);
  constexpr uint64_t rounds = 20000;
  std::atomic<bool> in_use{false}, broken{false};
  std::thread waiter([&] {
    for (uint64_t value = 0; value < rounds;) {
      value = ring.last_begun();
      hsa_signal_t pinned{0};
      if (value == 0 || !ring.pin(value, pinned)) continue;
      in_use.store(true);
      if (ring.last_begun() != value) broken.store(true);
      in_use.store(false);
      ring.unpin(value);
    }
  });
  for (uint64_t value = 1; value <= rounds; ++value) {
    ring.begin(signal.handle());
    if (value == rounds) break;
    while (!ring.try_reclaim_oldest()) std::this_thread::yield();
    if (in_use.load()) broken.store(true);
  }
  waiter.join();
  CHECK_FALSE(broken);
}
