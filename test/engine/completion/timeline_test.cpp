// A timeline alone: which threads may read a signal and until when, permanent errors, and reuse.
#include <hsa/hsa.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "test/engine/double_device.hpp"
#include "test/support/catch.hpp"
#include "test/support/hsa_double.hpp"

using namespace uptempo;
using namespace uptempo::test;
using namespace std::chrono_literals;

namespace {

// Each test has a capacity of its own, so it does not share a list of free timelines with others in
// the process.
constexpr uint32_t kCapacityOfReuse = 3, kCapacityOfLoss = 5;

}  // namespace

TEST_CASE("an error of the watched source is a permanent failure, whatever fires or changes later",
          "[timeline]") {
  Timeline& timeline = Timeline::acquire(7);
  std::atomic<hsa_status_t> source{HSA_STATUS_SUCCESS};
  timeline.watch(&source);
  SignalDouble first(0), second(1);
  const uint64_t complete = timeline.begin(first.handle());
  const uint64_t pending = timeline.begin(second.handle());
  source = HSA_STATUS_ERROR_OUT_OF_RESOURCES;
  const WaitMode mode = GENERATE(WaitMode::active, WaitMode::blocked, WaitMode::hybrid);
  REQUIRE(timeline.wait(pending, {.mode = mode}, soon()) == WaitResult::failed);
  CHECK(timeline.failure().status == HSA_STATUS_ERROR_OUT_OF_RESOURCES);

  hsa_signal_store_screlease(second.handle(), 0);
  source = HSA_STATUS_SUCCESS;
  CHECK(timeline.failed());
  CHECK(timeline.wait(pending, {.mode = mode}, soon()) == WaitResult::failed);
  CHECK_FALSE(timeline.is_done(pending));
  CHECK(timeline.is_done(complete));
  CHECK(timeline.failure().status == HSA_STATUS_ERROR_OUT_OF_RESOURCES);
  timeline.release();
}

TEST_CASE("a timed publication that is withdrawn leaves no times to the next one", "[timeline]") {
  Timeline& timeline = Timeline::acquire(11);
  SignalDouble first(1), second(0);
  bool read = false;
  timeline.begin(first.handle());
  timeline.time([&](std::vector<PacketTime>& times) {
    read = true;
    times.push_back({});
  });
  timeline.cancel();
  const uint64_t value = timeline.begin(second.handle());
  CHECK(timeline.is_done(value));
  CHECK(timeline.times(value).empty());
  timeline.release();
  CHECK_FALSE(read);
}

TEST_CASE("a timeline does not close while another thread reads a signal", "[timeline]") {
  Timeline& timeline = Timeline::acquire(9);
  SignalDouble signal(1);
  // a call loads its value, and this test can block that call
  signal.abi().kind = AMD_SIGNAL_KIND_INVALID;
  const uint64_t value = timeline.begin(signal.handle());
  std::atomic<bool> inside{false}, go_on{false};
  static thread_local bool held_up = false;
  hsa_calls().on_load = [&](hsa_signal_t) {
    if (!held_up) return;
    inside = true;
    while (!go_on) std::this_thread::sleep_for(100us);
  };
  std::thread asker([&] {
    held_up = true;
    (void)timeline.is_done(value);
  });
  while (!inside) std::this_thread::sleep_for(100us);

  std::atomic<bool> closed{false};
  std::thread closer([&] {
    timeline.fail(HSA_STATUS_ERROR, "the end");
    timeline.close();
    closed = true;
  });
  std::this_thread::sleep_for(30ms);
  CHECK_FALSE(closed);
  go_on = true;
  asker.join();
  closer.join();
  CHECK(closed);
  const uint64_t loads = hsa_calls().signal_load;
  CHECK_FALSE(timeline.is_done(value));
  CHECK(hsa_calls().signal_load == loads);
  hsa_calls().reset();
  timeline.release();
}

TEST_CASE("a queue and its signals may be destroyed while threads query without pause",
          "[timeline]") {
  const auto kernel = number_kernel();
  for (int round = 0; round < 100; ++round) {
    DoubleDevice device({.device = {.ring_size = 64}});
    std::vector<Completion> completions;
    {
      BatchSubmitter batch(device.queue(), {.timing = Timing::batch});
      for (uint32_t i = 0; i < 4; ++i) {
        batch.dispatch(kernel, Grid{1}, i);
        completions.push_back(batch.submit());
      }
    }
    std::atomic<unsigned> started{0};
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (size_t t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        ++started;
        for (size_t n = t; !stop; ++n) {
          const Completion completion = completions[n % completions.size()];
          if (t == 0) (void)completion.ready();
          if (t == 1 && completion.ready()) (void)completion.times();
          if (t == 2) (void)completion.wait(Deadline::after(10us), {.mode = WaitMode::blocked});
        }
      });
    }
    while (started != threads.size()) std::this_thread::yield();
    device.destroy_queue();
    device.signals().clear();
    for (const Completion& completion : completions) {
      CHECK(completion.ready());
      CHECK(completion.times().size() == 1);
    }
    stop = true;
    for (std::thread& thread : threads) thread.join();
  }
}

TEST_CASE("a timeline that lost no publication is reused, failed or not", "[timeline]") {
  Timeline& timeline = Timeline::acquire(kCapacityOfReuse);
  SignalDouble signal(0);
  const uint64_t complete = timeline.begin(signal.handle());
  CHECK(timeline.is_done(complete));
  CHECK_FALSE(timeline.fail(HSA_STATUS_ERROR, "the Runtime was destroyed"));
  timeline.release();

  Timeline& next = Timeline::acquire(kCapacityOfReuse);
  REQUIRE(&next == &timeline);
  CHECK_FALSE(next.failed());
  CHECK(next.pending() == 0);
  CHECK(next.is_done(complete));
  SignalDouble other(1);
  const uint64_t value = next.begin(other.handle());
  CHECK(value > complete);
  CHECK_FALSE(next.is_done(value));
  hsa_signal_store_screlease(other.handle(), 0);
  CHECK(next.wait(value, kActiveWait, soon()) == WaitResult::done);
  next.release();
}

TEST_CASE("a timeline that lost publications keeps reporting the loss", "[timeline]") {
  Timeline& timeline = Timeline::acquire(kCapacityOfLoss);
  SignalDouble signal(1);
  const uint64_t lost = timeline.begin(signal.handle());
  CHECK(timeline.fail(HSA_STATUS_ERROR, "gone"));
  timeline.release();
  Timeline& next = Timeline::acquire(kCapacityOfLoss);
  CHECK(&next != &timeline);
  CHECK(timeline.wait(lost, kActiveWait, soon()) == WaitResult::failed);
  CHECK(timeline.failure().text == "gone");
  next.release();
}

TEST_CASE("a failure completes the callers' signals of lost publications only", "[timeline]") {
  Timeline& timeline = Timeline::acquire(13);
  SignalDouble done(0), unfinished(1), other_unfinished(1);
  SignalDouble of_done(0), of_lost(0), forgotten(0), late(0);
  const uint64_t complete = timeline.begin(done.handle());
  const uint64_t lost = timeline.begin(unfinished.handle());
  timeline.complete_too(of_done.handle(), complete, Timeline::SignalPlace(1));
  timeline.complete_too(of_lost.handle(), lost, Timeline::SignalPlace(1));
  timeline.complete_too(forgotten.handle(), lost, Timeline::SignalPlace(1));
  timeline.forget_signal(forgotten.handle());
  CHECK(aql::load_acquire(of_lost.handle()) == 0);

  CHECK(timeline.fail(HSA_STATUS_ERROR, "gone"));
  CHECK(aql::load_acquire(of_lost.handle()) == -1);
  CHECK(aql::load_acquire(of_done.handle()) == 0);
  CHECK(aql::load_acquire(forgotten.handle()) == 0);

  const uint64_t after = timeline.begin(other_unfinished.handle());
  timeline.complete_too(late.handle(), after, Timeline::SignalPlace(1));
  CHECK(aql::load_acquire(late.handle()) == -1);
  timeline.release();
}

TEST_CASE("a publication on loan is reclaimed when all its borrowers are complete", "[timeline]") {
  Timeline& timeline = Timeline::acquire(15);
  Timeline& borrower = Timeline::acquire(17);
  SignalDouble first(1), second(1), reader(1), other_reader(1);
  const auto ignore = [](uint64_t, hsa_signal_t) noexcept {};
  const uint64_t value = timeline.begin(first.handle());
  const uint64_t later = timeline.begin(second.handle());
  REQUIRE(timeline.lend(value).handle == first.handle().handle);
  REQUIRE(timeline.lend(value).handle == first.handle().handle);
  timeline.lent_to(value, borrower, borrower.begin(reader.handle()));
  timeline.lent_to(value, borrower, borrower.begin(other_reader.handle()));
  REQUIRE(timeline.lend(later).handle == second.handle().handle);
  timeline.end_loan(later);
  first.set(0);
  second.set(0);
  // A thread that waits meanwhile is not held up.
  CHECK(timeline.wait(value, {.mode = WaitMode::blocked}, soon()) == WaitResult::done);
  CHECK(timeline.reclaim(2, ignore) == 0);
  reader.set(0);
  CHECK(timeline.reclaim(2, ignore) == 0);
  other_reader.set(0);
  CHECK(timeline.reclaim(2, ignore) == 2);
  CHECK(timeline.lend(value).handle == 0);  // complete
  timeline.release();
  borrower.release();
}

TEST_CASE("a caller's own signal and a signal with a watched error source are not lent",
          "[timeline]") {
  Timeline& timeline = Timeline::acquire(19);
  SignalDouble own(1), pooled(1);
  const uint64_t first = timeline.begin(own.handle(), detail::SignalOwner::caller);
  const uint64_t second = timeline.begin(pooled.handle());
  CHECK(timeline.lend(first).handle == 0);
  CHECK(timeline.lend(second).handle == pooled.handle().handle);
  timeline.end_loan(second);
  const std::atomic<hsa_status_t> source{HSA_STATUS_SUCCESS};
  timeline.watch(&source);
  CHECK(timeline.lend(second).handle == 0);
  own.set(0);
  pooled.set(0);
  CHECK(timeline.reclaim(2, [](uint64_t, hsa_signal_t) noexcept {}) == 2);
  timeline.release();
}

TEST_CASE("the end of a timeline waits for loans that can end, and no longer", "[timeline]") {
  Timeline& timeline = Timeline::acquire(21);
  Timeline& borrower = Timeline::acquire(23);
  SignalDouble signal(1), reader(1);
  const uint64_t value = timeline.begin(signal.handle());
  REQUIRE(timeline.lend(value).handle != 0);
  const uint64_t until = borrower.begin(reader.handle());
  SECTION("its borrower completes") {
    timeline.lent_to(value, borrower, until);
    signal.set(0);
    timeline.close();
    CHECK_FALSE(timeline.await_loans(Deadline::now()));
    std::thread device([&] { hsa_signal_store_screlease(reader.handle(), 0); });
    CHECK(timeline.await_loans(soon()));
    device.join();
  }
  SECTION("its packet is published meanwhile") {
    signal.set(0);
    timeline.close();
    std::thread publisher([&] {
      hsa_signal_store_screlease(reader.handle(), 0);
      timeline.lent_to(value, borrower, until);
    });
    CHECK(timeline.await_loans(soon()));
    publisher.join();
  }
  SECTION("the publication is lost") {
    timeline.lent_to(value, borrower, until);
    timeline.expect_dependent(borrower);
    timeline.fail_too(borrower, value);
    timeline.fail(HSA_STATUS_ERROR, "gone");
    timeline.close();
    CHECK_FALSE(timeline.await_loans(soon()));
    CHECK(borrower.failed());
  }
  SECTION("its borrower is lost") {
    timeline.lent_to(value, borrower, until);
    signal.set(0);
    borrower.fail(HSA_STATUS_ERROR, "gone");
    timeline.close();
    CHECK_FALSE(timeline.await_loans(soon()));
  }
  SECTION("the timeline is reused before the loan has ended") {
    signal.set(0);
    timeline.close();
    CHECK_FALSE(timeline.await_loans(Deadline::now()));
    timeline.release();
    Timeline& next = Timeline::acquire(21);
    REQUIRE(&next == &timeline);
    SignalDouble other(1);
    const uint64_t of_next = next.begin(other.handle());
    next.lent_to(value, borrower, until);
    next.end_loan(value);
    other.set(0);
    CHECK(next.is_done(of_next));
    CHECK(next.reclaim(1, [](uint64_t, hsa_signal_t) noexcept {}) == 1);
    next.release();
    borrower.fail(HSA_STATUS_ERROR, "gone");
    borrower.release();
    return;
  }
  timeline.release();
  borrower.release();
}
