// A timeline alone: which threads may read a signal and until when, permanent errors, and reuse.
#include <hsa/hsa.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
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
  const WaitPolicy mode = GENERATE(WaitPolicy::active(), WaitPolicy::blocked(), WaitPolicy{});
  REQUIRE(timeline.wait(pending, mode, soon()) == WaitResult::failed);
  CHECK(timeline.failure().status == HSA_STATUS_ERROR_OUT_OF_RESOURCES);

  hsa_signal_store_screlease(second.handle(), 0);
  source = HSA_STATUS_SUCCESS;
  CHECK(timeline.failed());
  CHECK(timeline.wait(pending, mode, soon()) == WaitResult::failed);
  CHECK_FALSE(timeline.is_done(pending));
  CHECK(timeline.is_done(complete));
  CHECK(timeline.failure().status == HSA_STATUS_ERROR_OUT_OF_RESOURCES);
  timeline.release();
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
          if (t == 2) (void)completion.wait(Deadline::after(10us), WaitPolicy::blocked());
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

namespace {

// Returns the signals that the timeline returns now.
std::vector<uint64_t> returned_by(Timeline& timeline) {
  std::vector<uint64_t> returned;
  timeline.return_loans([&](hsa_signal_t signal) { returned.push_back(signal.handle); });
  return returned;
}

std::vector<uint64_t> on_loan_of(Timeline& timeline) {
  std::vector<uint64_t> lent;
  timeline.for_each_loan([&](hsa_signal_t signal) { lent.push_back(signal.handle); });
  return lent;
}

}  // namespace

TEST_CASE("a publication on loan is reclaimed, and its signal returns after its last borrower",
          "[timeline]") {
  Timeline& timeline = Timeline::acquire(15);
  Timeline& borrower = Timeline::acquire(17);
  timeline.allow_loans(15);
  SignalDouble first(1), second(1), reader(1), other_reader(1);
  std::vector<uint64_t> reclaimed;
  const auto note = [&](uint64_t, hsa_signal_t signal) noexcept {
    reclaimed.push_back(signal.handle);
  };
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
  CHECK(timeline.wait(value, WaitPolicy::blocked(), soon()) == WaitResult::done);
  CHECK(timeline.reclaim(2, note) == 2);
  CHECK(reclaimed == std::vector<uint64_t>{0, second.handle().handle});
  CHECK(returned_by(timeline).empty());
  reader.set(0);
  CHECK(returned_by(timeline).empty());
  other_reader.set(0);
  CHECK(returned_by(timeline) == std::vector{first.handle().handle});
  CHECK(returned_by(timeline).empty());
  CHECK(timeline.lend(value).handle == 0);  // complete
  timeline.release();
  borrower.release();
}

TEST_CASE("a loan that ends before its publication is reclaimed keeps no signal", "[timeline]") {
  Timeline& timeline = Timeline::acquire(15);
  timeline.allow_loans(2);
  SignalDouble signal(1);
  for (int round = 0; round < 3; ++round) {
    signal.set(1);
    const uint64_t value = timeline.begin(signal.handle());
    REQUIRE(timeline.lend(value).handle == signal.handle().handle);
    timeline.end_loan(value);
    signal.set(0);
    timeline.reclaim(1, [&](uint64_t, hsa_signal_t reclaimed) noexcept {
      CHECK(reclaimed.handle == signal.handle().handle);
    });
    CHECK(returned_by(timeline).empty());
  }
  timeline.release();
}

TEST_CASE("a queue lends three quarters of its signals, each as often as it is asked for",
          "[timeline]") {
  for (const size_t signals : {1u, 2u, 4u, 8u}) {
    Timeline& timeline = Timeline::acquire(15);
    Timeline& borrower = Timeline::acquire(17);
    timeline.allow_loans(signals);
    std::deque<SignalDouble> all;
    SignalDouble reader(1);
    const uint64_t until = borrower.begin(reader.handle());
    size_t lent = 0;
    std::vector<uint64_t> values;
    for (size_t i = 0; i < signals; ++i) {
      values.push_back(timeline.begin(all.emplace_back(1).handle()));
      if (timeline.lend(values.back()).handle == 0) continue;
      timeline.lent_to(values.back(), borrower, until);
      ++lent;
    }
    CHECK(lent == signals - std::max<size_t>(1, signals / 4));
    for (size_t i = 0; i < lent; ++i) {
      CHECK(timeline.lend(values[i]).handle == all[i].handle().handle);
      timeline.end_loan(values[i]);
    }
    CHECK(timeline.lend(values.back()).handle == 0);
    reader.set(0);
    CHECK((timeline.lend(values.back()).handle != 0) == (lent != 0));
    timeline.end_loan(values.back());
    for (SignalDouble& signal : all) signal.set(0);
    timeline.release();
    borrower.release();
  }
}

TEST_CASE("a caller's own signal and a signal with a watched error source are not lent",
          "[timeline]") {
  Timeline& timeline = Timeline::acquire(19);
  timeline.allow_loans(19);
  SignalDouble own(1), pooled(1);
  const uint64_t first = timeline.begin(own.handle(), detail::SignalOwner::caller);
  const uint64_t second = timeline.begin(pooled.handle());
  CHECK(timeline.lend(first).handle == 0);
  CHECK(timeline.lend(second).handle == pooled.handle().handle);
  timeline.end_loan(second);
  const std::atomic<hsa_status_t> source{HSA_STATUS_SUCCESS};
  CHECK(detail::LentSignal::borrow(detail::completion_of(timeline, second)).has_value());
  timeline.watch(&source);
  CHECK_FALSE(detail::LentSignal::borrow(detail::completion_of(timeline, second)).has_value());
  own.set(0);
  pooled.set(0);
  CHECK(timeline.reclaim(2, [](uint64_t, hsa_signal_t) noexcept {}) == 2);
  timeline.release();
}

TEST_CASE("the end of a timeline names the signals that packets may still read", "[timeline]") {
  Timeline& timeline = Timeline::acquire(21);
  Timeline& borrower = Timeline::acquire(23);
  timeline.allow_loans(21);
  SignalDouble signal(1), reader(1);
  const std::vector<uint64_t> none, one{signal.handle().handle};
  const uint64_t value = timeline.begin(signal.handle());
  REQUIRE(timeline.lend(value).handle != 0);
  const uint64_t until = borrower.begin(reader.handle());
  SECTION("its borrower is complete") {
    timeline.lent_to(value, borrower, until);
    signal.set(0);
    timeline.close();
    timeline.await_loans(Deadline::now());
    CHECK(on_loan_of(timeline) == one);
    std::thread device([&] { hsa_signal_store_screlease(reader.handle(), 0); });
    timeline.await_loans(soon());
    device.join();
    CHECK(on_loan_of(timeline) == none);
  }
  SECTION("its packet is published meanwhile") {
    signal.set(0);
    timeline.close();
    timeline.await_loans(Deadline::now());
    CHECK(on_loan_of(timeline) == one);
    std::thread publisher([&] {
      hsa_signal_store_screlease(reader.handle(), 0);
      timeline.lent_to(value, borrower, until);
    });
    timeline.await_loans(soon());
    publisher.join();
    CHECK(on_loan_of(timeline) == none);
  }
  SECTION("its borrower has not begun") {
    timeline.lent_to(value, borrower, until + 1);
    signal.set(0);
    timeline.close();
    timeline.await_loans(Deadline::never());
    CHECK(on_loan_of(timeline) == one);
  }
  SECTION("the publication is lost") {
    timeline.lent_to(value, borrower, until);
    timeline.expect_dependent(borrower);
    timeline.fail_too(borrower, value);
    timeline.fail(HSA_STATUS_ERROR, "gone");
    timeline.close();
    timeline.await_loans(Deadline::never());
    CHECK(on_loan_of(timeline) == one);
    CHECK(borrower.failed());
  }
  SECTION("its borrower is lost") {
    timeline.lent_to(value, borrower, until);
    signal.set(0);
    borrower.fail(HSA_STATUS_ERROR, "gone");
    timeline.close();
    timeline.await_loans(Deadline::never());
    CHECK(on_loan_of(timeline) == one);
    borrower.close();
    borrower.end_reads();  // its queue is destroyed
    CHECK(on_loan_of(timeline) == none);
  }
  SECTION("the timeline is reused before the loan has ended") {
    signal.set(0);
    timeline.close();
    timeline.release();
    Timeline& next = Timeline::acquire(21);
    REQUIRE(&next == &timeline);
    next.allow_loans(21);
    SignalDouble other(1);
    const uint64_t of_next = next.begin(other.handle());
    next.lent_to(value, borrower, until);
    next.end_loan(value);
    CHECK(on_loan_of(next) == none);
    other.set(0);
    CHECK(next.is_done(of_next));
    next.release();
    borrower.fail(HSA_STATUS_ERROR, "gone");
    borrower.release();
    return;
  }
  timeline.release();
  borrower.release();
}

TEST_CASE("a timeline's failure names its cause, with one prefix however long the chain",
          "[timeline]") {
  Timeline& first = Timeline::acquire(22);
  Timeline& second = Timeline::acquire(22);
  Timeline& third = Timeline::acquire(22);
  SignalDouble of_first(1), of_second(1), of_third(1);
  first.expect_dependent(second);
  second.expect_dependent(third);
  first.fail_too(second, first.begin(of_first.handle()));
  second.fail_too(third, second.begin(of_second.handle()));
  third.begin(of_third.handle());
  CHECK(first.fail(HSA_STATUS_ERROR_EXCEPTION, "a memory fault"));
  CHECK(first.failure().text == "a memory fault");
  for (Timeline* const later : {&second, &third}) {
    CHECK(later->failure().status == HSA_STATUS_ERROR_EXCEPTION);
    CHECK(later->failure().text == "a queue that it waits for has failed: a memory fault");
  }
  for (Timeline* const timeline : {&first, &second, &third}) timeline->release();
}

TEST_CASE("a timeline fails with the last of the publications that it waits for", "[timeline]") {
  Timeline& timeline = Timeline::acquire(23);
  Timeline& dependent = Timeline::acquire(24);
  SignalDouble signals[3], of_dependent(1);
  uint64_t values[3];
  for (size_t i = 0; i < 3; ++i) values[i] = timeline.begin(signals[i].handle());
  dependent.begin(of_dependent.handle());
  timeline.expect_dependent(dependent);
  timeline.fail_too(dependent, values[1]);
  timeline.fail_too(dependent, values[0]);
  const size_t complete = GENERATE(size_t{1}, size_t{2});
  for (size_t i = 0; i < complete; ++i) signals[i].set(0);
  timeline.fail(HSA_STATUS_ERROR, "gone");
  CHECK(dependent.failed() == (complete == 1));
  timeline.release();
  dependent.release();
}

TEST_CASE("a negative signal is a failed copy, also where an error source is watched",
          "[timeline]") {
  Timeline& timeline = Timeline::acquire(25);
  std::atomic<hsa_status_t> source{HSA_STATUS_SUCCESS};
  timeline.watch(&source);
  SignalDouble signal(1);
  const uint64_t value = timeline.begin(signal.handle());
  CHECK_FALSE(timeline.failed());
  signal.set(-1);
  CHECK_FALSE(timeline.is_done(value));
  CHECK(timeline.failed());
  CHECK(timeline.failure().text == "the copy engine reported that a copy has failed");
  timeline.release();
}

TEST_CASE("the advice for a failed GPU is not to create a new queue", "[timeline]") {
  CHECK(remedy({.status = HSA_STATUS_ERROR, .text = {}}) == "create a new queue");
  CHECK(remedy({.status = Session::MemoryFault::kStatus, .text = {}}) ==
        "correct the access; no more work of this Runtime runs on that GPU");
  CHECK(remedy({.status = Session::MemoryFault::kLost, .text = {}}) ==
        "continue in a new process: no more work of this one runs on that GPU");
}
