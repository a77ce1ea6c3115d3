// Sleep on a signal without an event. The device tests cover signals with one
// (test/engine/completion/device_wait_test.cpp).
#include "engine/completion/timeline/signal_sleep.hpp"

#include <chrono>

#include "test/support/catch.hpp"
#include "test/support/queue_double.hpp"

using namespace std::chrono_literals;
using namespace uptempo;
using namespace uptempo::test;
using Clock = std::chrono::steady_clock;

TEST_CASE("a sleep lasts until the deadline, but no longer than its bound", "[signal_sleep]") {
  CHECK(detail::until(Deadline::never(), 250ms) == 250ms);
  CHECK(detail::until(Deadline::now(), 250ms) == 0ns);
  CHECK(detail::until(Deadline::at(Clock::now() - 1s), 250ms) == 0ns);
  CHECK(detail::until(Deadline::after(1h), 250ms) == 250ms);
  const std::chrono::nanoseconds left = detail::until(Deadline::after(1h), 2h);
  CHECK(left > 0ns);
  CHECK(left <= 1h);
}

TEST_CASE("a thread does not sleep for what is already over", "[signal_sleep]") {
  SignalDouble signal(1);
  int asked = 0;
  detail::sleep_on(signal.handle(), Deadline::never(), [&] { return ++asked == 1; });
  CHECK(asked == 1);
}

TEST_CASE("a thread polls a signal without an event in growing pauses", "[signal_sleep]") {
  SignalDouble signal(1);
  const Clock::time_point start = Clock::now();
  int asked = 0;
  detail::sleep_on(signal.handle(), Deadline::never(), [&] { return ++asked == 100; });
  CHECK(asked == 100);
  // after 64 rounds that spin and 32 that yield: 50, 100 and 200 us
  CHECK(Clock::now() - start >= 350us);
}

TEST_CASE("a thread stops sleeping at the deadline", "[signal_sleep]") {
  SignalDouble signal(1);
  const Clock::time_point start = Clock::now();
  detail::sleep_on(signal.handle(), Deadline::after(20ms), [] { return false; });
  CHECK(Clock::now() - start >= 20ms);
  detail::sleep_on(signal.handle(), Deadline::now(), [] { return false; });
}
