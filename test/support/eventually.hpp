// Waits for an event of another thread.
//
//   REQUIRE(eventually([&] { return task.done(); }));
//
// A test passes however late the event comes: only a hang reaches the limit. A test that needs an
// event before its next step waits for the event, never for a time.
//
// Cost: the waiting thread yields for the first looks and then sleeps between them. On a busy
// machine a thread that yields gets its processor back after milliseconds, one that sleeps at once.
#pragma once

#include <chrono>
#include <thread>

namespace uptempo::test {

constexpr std::chrono::seconds kHang{60};

// Returns whether `condition` holds before the limit passes.
template <class Condition>
bool eventually(Condition&& condition, std::chrono::nanoseconds limit = kHang) {
  constexpr unsigned kYields = 50;
  const auto end = std::chrono::steady_clock::now() + limit;
  for (unsigned looks = 0; !condition(); ++looks) {
    if (std::chrono::steady_clock::now() > end) return condition();
    if (looks < kYields) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  return true;
}

}  // namespace uptempo::test
