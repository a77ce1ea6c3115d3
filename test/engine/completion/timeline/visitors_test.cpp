// Threads that may read signals, and the owner that waits for them.
#include "engine/completion/timeline/visitors.hpp"

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "test/support/catch.hpp"

using namespace std::chrono_literals;
using uptempo::detail::Visit;
using uptempo::detail::Visitors;

TEST_CASE("threads enter until the visitors are closed, and again after they are opened",
          "[visitors]") {
  Visitors visitors;
  CHECK(Visit(visitors));
  CHECK_FALSE(visitors.closed());
  visitors.close();
  CHECK(visitors.closed());
  CHECK_FALSE(Visit(visitors));
  visitors.wait_for_last();
  visitors.open();
  CHECK(Visit(visitors));
}

TEST_CASE("the wait for the last visitor ends when the last one leaves, and not before",
          "[visitors]") {
  Visitors visitors;
  std::optional<Visit> first(std::in_place, visitors), second(std::in_place, visitors);
  std::atomic<bool> empty{false};
  visitors.close();
  std::thread owner([&] {
    visitors.wait_for_last();
    empty = true;
  });
  first.reset();
  std::this_thread::sleep_for(20ms);
  CHECK_FALSE(empty);
  second.reset();
  owner.join();
  CHECK(empty);
}

TEST_CASE("no thread is inside after the wait, while threads enter and leave without pause",
          "[visitors]") {
  Visitors visitors;
  std::atomic<bool> exists{true}, read_too_late{false}, stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      while (!stop) {
        const Visit visit(visitors);
        if (visit && !exists) read_too_late = true;
      }
    });
  }
  for (int round = 0; round < 200; ++round) {
    visitors.close();
    visitors.wait_for_last();
    exists = false;
    std::this_thread::yield();
    exists = true;
    visitors.open();
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  CHECK_FALSE(read_too_late);
}
