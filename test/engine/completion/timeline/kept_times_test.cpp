// Times of timed publications, before and after their signals are reused.
#include <uptempo/completion/timeline/kept_times.hpp>

#include <vector>

#include "test/support/catch.hpp"

using uptempo::PacketTime;
using uptempo::detail::KeptTimes;

namespace {

// Appends one packet time and counts the reads.
KeptTimes::Read reader(int& reads, uint64_t start_ns) {
  return [&reads, start_ns](std::vector<PacketTime>& times) {
    ++reads;
    times.push_back({.start_ns = start_ns, .end_ns = start_ns + 5});
  };
}

}  // namespace

TEST_CASE("times are read from the signals once, and stay after that", "[kept_times]") {
  KeptTimes kept(2);
  int reads = 0;
  kept.expect(1, 5, reader(reads, 100));
  CHECK(reads == 0);
  kept.keep(1);
  kept.keep(1);
  CHECK(reads == 1);
  for (int i = 0; i < 2; ++i) {
    const std::vector<PacketTime> times = kept.of(1, 5);
    REQUIRE(times.size() == 1);
    CHECK(times[0].start_ns == 100);
    CHECK(times[0].duration().count() == 5);
  }
  CHECK(reads == 1);
}

TEST_CASE("a place has the times of one publication only", "[kept_times]") {
  KeptTimes kept(2);
  int earlier = 0, later = 0;
  kept.expect(0, 2, reader(earlier, 100));
  CHECK(kept.of(0, 4).empty());
  CHECK(earlier == 0);
  CHECK(kept.of(0, 2).size() == 1);
  kept.expect(0, 4, reader(later, 200));
  CHECK(kept.of(0, 2).empty());
  const std::vector<PacketTime> times = kept.of(0, 4);
  REQUIRE(times.size() == 1);
  CHECK(times[0].start_ns == 200);
  CHECK(kept.of(1, 1).empty());
}

TEST_CASE("closing keeps the times of complete publications and reads no other signals",
          "[kept_times]") {
  KeptTimes kept(4);
  int complete = 0, unfinished = 0;
  kept.expect(1, 1, reader(complete, 100));
  kept.expect(2, 2, reader(unfinished, 200));
  kept.close([](uint64_t value) { return value <= 1; });
  CHECK(complete == 1);
  CHECK(kept.of(1, 1).size() == 1);
  CHECK(kept.of(2, 2).empty());
  CHECK(complete == 1);
  CHECK(unfinished == 0);
}
