// The driver's events (interrupt signals): which objects take them, what happens when none is left,
// and what works without them.
#include <uptempo/uptempo.hpp>

#include <chrono>
#include <thread>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/on_device.hpp"

using namespace uptempo;
using namespace std::chrono_literals;

namespace {

using uptempo::test::contains;
using uptempo::test::error_of;
using uptempo::test::eventually;
using uptempo::test::OnDevice;
using uptempo::test::soon;
using uptempo::test::submit_gated;

// Restores the default budget at the end.
struct Budget {
  explicit Budget(const SignalBudget& budget) { set_signal_budget(budget); }
  ~Budget() { set_signal_budget({}); }
};

}  // namespace

TEST_CASE_METHOD(OnDevice, "every interrupt signal counts against the budget while it exists",
                 "[budget]") {
  const uint32_t before = signal_use().in_use;
  {
    const Signal one, two, event_less{SignalKind::event_less};
    CHECK(signal_use().in_use == before + 2);
    const Queue queue{gpu, {.publications = 32}};
    CHECK(signal_use().in_use == before + 34);
    CHECK(signal_use().peak >= before + 34);
  }
  CHECK(signal_use().in_use == before);
}

TEST_CASE("a signal that the session keeps counts until the session ends", "[budget]") {
  {
    const Runtime runtime;
    Signal left;
    left.leave_to_session();
    CHECK(signal_use().in_use == 1);
  }
  CHECK(signal_use().in_use == 0);
}

TEST_CASE_METHOD(
    OnDevice,
    "a signal beyond the budget takes nothing, and the error names budget, use and remedy",
    "[budget]") {
  const Signal one, two;
  const Budget budget({.interrupts = signal_use().in_use + 10});
  const SignalUse before = signal_use();
  const std::string error = error_of<Error>([&] { Queue queue(gpu, {.publications = 64}); });
  CHECK(contains(
      error,
      "the budget is used up: 12 interrupt signals of this library are in use, its budget is 12"));
  CHECK(contains(error, "lower QueueOptions::publications"));
  CHECK(contains(error, "SignalBudget::interrupts"));
  CHECK(signal_use().in_use == before.in_use);
  const Queue small(gpu, {.publications = 8});
  CHECK(signal_use().in_use == before.in_use + 8);
}

TEST_CASE_METHOD(OnDevice,
                 "beyond a budget that permits it, signals without event replace interrupt signals",
                 "[budget]") {
  const uint32_t limit = GENERATE(0u, 3u);
  const Budget budget({.interrupts = limit, .event_less_beyond = true});
  const SignalUse before = signal_use();
  Queue queue{gpu, {.publications = 8}};
  CHECK(signal_use().in_use == before.in_use + limit);
  const Signal gate{SignalKind::event_less};
  CompletionNotifier notifier{1};
  const Completion completion = submit_gated(queue, gate);
  notifier.watch(completion);
  std::atomic<int> woken{0};
  std::vector<std::thread> threads;
  for (const WaitPolicy mode : {WaitPolicy::blocked(), WaitPolicy::blocked(), WaitPolicy{}})
    threads.emplace_back([&, mode] {
      completion.wait(mode);
      ++woken;
    });
  std::this_thread::sleep_for(20ms);
  CHECK(woken == 0);
  hsa_signal_store_screlease(gate.handle(), 0);
  for (std::thread& thread : threads) thread.join();
  CHECK(eventually([&] { return notifier.pending() == 0; }));
  CHECK(notifier.take().has_value());
}

TEST_CASE_METHOD(
    OnDevice,
    "when the driver has no event left an error says so, and returned events are used again",
    "[budget]") {
  const Budget budget({.interrupts = 10000});
  Queue queue{gpu};
  const Signal gate;
  std::vector<Signal> all;
  const std::string error = error_of<Error>([&] {
    for (;;) all.emplace_back();
  });
  CHECK(contains(error, "the driver has no event left"));
  CHECK(contains(error, "its budget is 10000"));
  CHECK(all.size() > 3800);
  CHECK(signal_use().in_use <= 4095);
  for (const Signal& signal : all)
    if (!signal.interrupt()) FAIL("a signal without event was handed out");
  const Completion completion = submit_gated(queue, gate);
  hsa_signal_store_screlease(gate.handle(), 0);
  CHECK(completion.wait(soon(), WaitPolicy::blocked()));
  all.pop_back();
  CHECK(Signal{}.interrupt());
}
