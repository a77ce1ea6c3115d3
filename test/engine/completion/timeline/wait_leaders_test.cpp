// The threads that wait for one publication, without a signal.
#include "engine/completion/timeline/wait_leaders.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "test/support/catch.hpp"

using namespace std::chrono_literals;
using uptempo::detail::WaitLeaders;

TEST_CASE("each publication has a leader of its own", "[wait_leaders]") {
  WaitLeaders leaders(2);
  CHECK_FALSE(leaders.led(0));
  leaders.lead(0);
  CHECK(leaders.led(0));
  CHECK_FALSE(leaders.led(1));
  CHECK_FALSE(leaders.leave(0));
  CHECK_FALSE(leaders.led(0));
}

TEST_CASE("a leader that leaves learns once that the completion thread relied on it",
          "[wait_leaders]") {
  WaitLeaders leaders(1);
  leaders.lead(0);
  leaders.rely(0);
  CHECK(leaders.leave(0));
  leaders.lead(0);
  CHECK_FALSE(leaders.leave(0));
}

TEST_CASE("a sleeper wakes after its time at the latest", "[wait_leaders]") {
  WaitLeaders leaders(1);
  std::mutex mutex;
  std::unique_lock lock(mutex);
  leaders.sleep(lock, 1ms);
  CHECK(lock.owns_lock());
}

TEST_CASE("one of several waiters leads, and all of them have led when the last one leaves",
          "[wait_leaders]") {
  WaitLeaders leaders(1);
  std::mutex mutex;
  std::atomic<int> leading{0}, most{0}, have_led{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      std::unique_lock lock(mutex);
      // Far longer than the test: a waiter that no leader wakes makes it hang.
      while (leaders.led(0)) leaders.sleep(lock, 10min);
      leaders.lead(0);
      lock.unlock();
      most = std::max(most.load(), ++leading);
      std::this_thread::sleep_for(5ms);
      --leading;
      ++have_led;
      lock.lock();
      (void)leaders.leave(0);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(most == 1);
  CHECK(have_led == 4);
}
