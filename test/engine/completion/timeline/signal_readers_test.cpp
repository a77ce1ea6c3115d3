// Threads that may read signals, and the owner that waits for them.
#include <uptempo/completion/timeline/signal_readers.hpp>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "test/support/catch.hpp"

using namespace std::chrono_literals;
using uptempo::detail::SignalRead;
using uptempo::detail::SignalReaders;

TEST_CASE("threads enter until the readers are closed, and again after they are opened",
          "[readers]") {
  SignalReaders readers;
  CHECK(SignalRead(readers));
  CHECK_FALSE(readers.closed());
  readers.close();
  CHECK(readers.closed());
  CHECK_FALSE(SignalRead(readers));
  readers.wait_for_last();
  readers.open();
  CHECK(SignalRead(readers));
}

TEST_CASE("the wait for the last reader ends when the last one leaves, and not before",
          "[readers]") {
  SignalReaders readers;
  std::optional<SignalRead> first(std::in_place, readers), second(std::in_place, readers);
  std::atomic<bool> empty{false};
  readers.close();
  std::thread owner([&] {
    readers.wait_for_last();
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
          "[readers]") {
  SignalReaders readers;
  std::atomic<bool> exists{true}, read_too_late{false}, stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      while (!stop) {
        const SignalRead reads(readers);
        if (reads && !exists) read_too_late = true;
      }
    });
  }
  for (int round = 0; round < 200; ++round) {
    readers.close();
    readers.wait_for_last();
    exists = false;
    std::this_thread::yield();
    exists = true;
    readers.open();
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  CHECK_FALSE(read_too_late);
}
