#include <uptempo/aql/pause.hpp>

#include <chrono>

#include "test/support/catch.hpp"

using namespace std::chrono_literals;
using uptempo::Deadline;
using uptempo::aql::Pause;
using Clock = Deadline::Clock;

TEST_CASE("a pause without time left ends at once", "[pause]") {
  Pause pause(Deadline::now());
  CHECK_FALSE(pause.wait());
  CHECK_FALSE(pause.wait());
}

TEST_CASE("pauses follow one another until the deadline, and none exceeds it", "[pause]") {
  const Clock::time_point start = Clock::now();
  const Deadline deadline = Deadline::at(start + 20ms);
  int rounds = 0;
  for (Pause pause(deadline); pause.wait();) ++rounds;
  CHECK(Clock::now() >= deadline.when());
  CHECK(rounds > 0);
}

TEST_CASE("pauses without a deadline grow up to the longest", "[pause]") {
  Pause pause(Deadline::never(), 100us);
  for (int round = 0; round < 96; ++round) CHECK(pause.wait());  // spins and yields
  const Clock::time_point start = Clock::now();
  for (int round = 0; round < 10; ++round) CHECK(pause.wait());
  CHECK(Clock::now() - start >= 950us);  // 50 us, then 100 us each
}
