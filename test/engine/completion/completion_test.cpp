// Completions as values: waits, deadlines, times, and life beyond the queue. Against the packet
// processor double.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include <uptempo/runtime/error.hpp>
#include "test/engine/double_device.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"

using namespace uptempo;
using namespace uptempo::test;
using namespace std::chrono_literals;

namespace {

using uptempo::test::contains;
using uptempo::test::error_of;

}  // namespace

TEST_CASE("times are recorded for every packet, for first and last, or for none", "[submit]") {
  DoubleDevice device({.device = {.ring_size = 64},
                       .queue = {.packets = 64,
                                 .publications = 16,
                                 .kernarg_bytes = 8192,
                                 .kernarg_slab_bytes = 1024},
                       .signals = 32});
  const auto kernel = number_kernel();
  const std::pair<Timing, size_t> expected[] = {
      {Timing::none, 0}, {Timing::batch, 2}, {Timing::each, 6}};
  for (const auto& [timing, count] : expected) {
    BatchSubmitter batch(device.queue(), {.timing = timing});
    for (uint32_t i = 0; i < 6; ++i) batch.dispatch(kernel, Grid{1}, i);
    const Completion completion = batch.submit();
    REQUIRE(completion.wait(soon(), kActiveWait));
    const std::vector<PacketTime> times = completion.times();
    REQUIRE(times.size() == count);
    for (size_t i = 0; i < times.size(); ++i) {
      CHECK(times[i].start_ns > 0);
      CHECK(times[i].end_ns >= times[i].start_ns);
      if (i > 0) CHECK(times[i].start_ns >= times[i - 1].end_ns);
    }
    device.queue().reclaim();
    CHECK(completion.times().size() == count);  // kept after the signals were returned
    if (count > 0) CHECK(completion.times().front().start_ns == times.front().start_ns);
  }
  CHECK(device.queue().pressure().signals.free() == 32);
}

TEST_CASE("times that the device has not stored are an error, not zeros", "[submit]") {
  DoubleDevice device({.device = {.times = false},
                       .queue = {.packets = 64,
                                 .publications = 4,
                                 .timing_signals = 16,
                                 .kernarg_bytes = 8192,
                                 .kernarg_slab_bytes = 1024},
                       .signals = 32});
  BatchSubmitter batch(device.queue(), {.timing = Timing::batch});
  batch.dispatch(number_kernel(), Grid{1}, 1u);
  const Completion completion = batch.submit();
  REQUIRE(completion.wait(soon(), kActiveWait));
  const std::string error = error_of<Error>([&] { (void)completion.times(); });
  CHECK(contains(error, "device times of publication 1"));
  CHECK(contains(error, "the device has stored none"));
}

TEST_CASE("a Completion outlives its queue", "[submit]") {
  Completion done;
  {
    DoubleDevice device;
    const auto kernel = number_kernel();
    {
      BatchSubmitter batch(device.queue(), {});
      batch.dispatch(kernel, Grid{1}, 1);
      done = batch.submit();
    }
    device.destroy_queue();
  }
  CHECK(done.ready());
  done.wait();
  // The next queue of that size continues the same timeline; the old completion stays complete.
  DoubleDevice other;
  CHECK(done.ready());
}

TEST_CASE("many threads wait for the same and for different publications while the owner submits",
          "[submit]") {
  std::atomic<uint32_t> ran{0};
  DoubleDevice device({.device = {.ring_size = 64}},
                      [&](uint32_t) { ran.fetch_add(1, std::memory_order_relaxed); });
  const auto kernel = number_kernel();
  std::mutex mutex;
  std::vector<Completion> completions;
  std::atomic<bool> stop{false};
  std::atomic<unsigned> waits{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const WaitPolicy policy = t % 2 == 0 ? WaitPolicy::blocked() : WaitPolicy{.spin = 5us};
      do {
        Completion completion;
        {
          const std::lock_guard lock(mutex);
          if (!completions.empty())
            completion = completions[completions.size() - 1 -
                                     (waits + t) % std::min<size_t>(completions.size(), 3)];
        }
        if (!completion.wait(soon(), policy)) FAIL("a publication did not complete");
        ++waits;
      } while (!stop.load());
    });
  }
  BatchSubmitter batch(device.queue(), {});
  for (uint32_t round = 0; round < 300; ++round) {
    for (uint32_t i = 0; i < 3; ++i) batch.dispatch(kernel, Grid{1}, i);
    const Completion completion = batch.submit();
    const std::lock_guard lock(mutex);
    completions.push_back(completion);
  }
  CHECK(completions.back().wait(soon()));
  stop = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(ran == 900);
  CHECK(waits > 0);
  for (const Completion& completion : completions) CHECK(completion.ready());
}

TEST_CASE("a wait ends at its deadline and can be repeated", "[submit]") {
  DoubleDevice device({.device = {.ring_size = 64, .paused = true}});
  const auto kernel = number_kernel();
  BatchSubmitter batch(device.queue(), {});
  batch.dispatch(kernel, Grid{1}, 1);
  const Completion completion = batch.submit();
  for (const WaitPolicy mode : {WaitPolicy::active(), WaitPolicy::blocked(), WaitPolicy{}}) {
    const auto start = std::chrono::steady_clock::now();
    CHECK_FALSE(completion.wait(Deadline::after(15ms), mode));
    CHECK(std::chrono::steady_clock::now() - start >= 15ms);
  }
  CHECK_FALSE(completion.ready());
  CHECK(contains(error_of<Error>([&] { completion.times(); }), "not complete"));
  device.processor().resume();
  CHECK(completion.wait(soon(), WaitPolicy::blocked()));
}
