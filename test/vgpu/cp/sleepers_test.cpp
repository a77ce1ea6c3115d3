// Helpers that sleep until a worker wakes them.
#include "cp/scheduler/sleepers.hpp"

#include <atomic>
#include <thread>
#include <vector>

#include "test/support/catch.hpp"

using uptempo::vgpu::Sleepers;

TEST_CASE("a helper that sees work does not sleep") {
  Sleepers sleepers;
  sleepers.sleep([] { return true; });
  CHECK(sleepers.count() == 0);
}

TEST_CASE("a wake for more helpers than sleep is not kept for the next one") {
  Sleepers sleepers;
  sleepers.wake(5);
  std::atomic<bool> awake{false};
  std::thread helper([&] {
    sleepers.sleep([] { return false; });
    awake = true;
  });
  while (sleepers.count() != 1) std::this_thread::yield();
  CHECK_FALSE(awake);
  sleepers.wake(5);
  helper.join();
  CHECK(awake);
  CHECK(sleepers.count() == 0);
}

// A lost wake leaves a helper asleep, and this test runs into its limit.
TEST_CASE("each sleep ends, however many threads sleep and wake at once") {
  constexpr int kSleeps = 20000;
  Sleepers sleepers;
  std::atomic<int> asleep{10};  // threads that have sleeps left
  std::atomic<int> sleeps{0};
  std::vector<std::thread> threads;
  for (int i = asleep; i > 0; --i)
    threads.emplace_back([&] {
      for (int k = 0; k < kSleeps; ++k) {
        sleepers.sleep([] { return false; });
        sleeps.fetch_add(1);
      }
      asleep.fetch_sub(1);
    });
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      while (asleep.load() != 0) {
        if (sleepers.count() != 0)
          sleepers.wake(2);
        else
          std::this_thread::yield();
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(sleeps == 10 * kSleeps);
  CHECK(sleepers.count() == 0);
}
