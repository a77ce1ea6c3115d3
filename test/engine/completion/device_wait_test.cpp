// Waits on a real HSA queue: their cost for the waiting threads, and the completion thread under a
// Runtime.
#include <hsa/hsa_ext_amd.h>
#include <poll.h>
#include <unistd.h>
#include <uptempo/uptempo.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "test/engine/completion/task.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/on_device.hpp"
#include "test/support/threads.hpp"
#include "tools/support/command.hpp"

using namespace uptempo;
using namespace uptempo::test;
using namespace std::chrono_literals;

namespace {

// A batch that completes when the gate opens.
void open(const Signal& gate) { hsa_signal_store_screlease(gate.handle(), 0); }

// CPU time of threads that wait together, each relative to the length of its wait.
std::vector<double> cost_of_waiters(const Completion& completion, const Signal& gate,
                                    size_t waiters, WaitPolicy policy) {
  std::vector<double> cost(waiters);
  std::atomic<size_t> waiting{0};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < waiters; ++t) {
    threads.emplace_back([&, t] {
      const auto before = cpu_time();
      const auto begin = std::chrono::steady_clock::now();
      ++waiting;
      completion.wait(policy);
      cost[t] = per_cent(cpu_time() - before, std::chrono::steady_clock::now() - begin);
    });
  }
  while (waiting != waiters) std::this_thread::yield();
  std::this_thread::sleep_for(1s);
  open(gate);
  for (std::thread& thread : threads) thread.join();
  return cost;
}

bool readable(int fd, std::chrono::milliseconds limit) {
  pollfd entry{.fd = fd, .events = POLLIN, .revents = 0};
  uint64_t count = 0;
  return poll(&entry, 1, static_cast<int>(limit.count())) == 1 &&
         read(fd, &count, sizeof count) == sizeof count;
}

}  // namespace

TEST_CASE_METHOD(OnDevice,
                 "a thread that waits longer than the spin window uses under 2 % of a core",
                 "[wait]") {
  const WaitPolicy mode = GENERATE(WaitPolicy{}, WaitPolicy::blocked());
  for (const size_t waiters : {1u, 4u}) {
    const Signal gate;
    const uint32_t before = signal_use().in_use;
    Queue queue{gpu};
    REQUIRE(signal_use().in_use > before);
    const auto cost = cost_of_waiters(submit_gated(queue, gate), gate, waiters, mode);
    for (const double per_cent_of_a_core : cost) CHECK(per_cent_of_a_core < 2);
  }
}

TEST_CASE_METHOD(OnDevice, "waiters on a caller's signal without event use under 2 % of a core",
                 "[wait]") {
  const Signal gate, event_less{SignalKind::event_less};
  REQUIRE_FALSE(event_less.interrupt());
  Queue queue{gpu};
  BatchSubmitter batch{queue};
  batch.raw(aql::to_packet(aql::BarrierAnd{.dependencies = {gate.handle()}}));
  batch.complete_with(event_less);
  const Completion completion = batch.submit();
  CompletionNotifier notifier{2};
  notifier.watch(completion);
  const Signal other_gate;
  Queue other{gpu};  // with events: the completion thread sleeps on one and polls the others
  notifier.watch(submit_gated(other, other_gate));
  REQUIRE(eventually([] { return sleep_all("uptempo-waiter"); }));
  const auto completion_threads = threads_named("uptempo-waiter");
  REQUIRE(completion_threads.size() == 1);
  const auto before = cpu_time_of(completion_threads.front());
  const auto begin = std::chrono::steady_clock::now();
  const auto cost = cost_of_waiters(completion, gate, 3, {});
  CHECK(per_cent(cpu_time_of(completion_threads.front()) - before,
                 std::chrono::steady_clock::now() - begin) < 2);
  for (const double per_cent_of_a_core : cost) CHECK(per_cent_of_a_core < 2);
  REQUIRE(eventually([&] { return notifier.pending() == 1; }));
  CHECK(notifier.take()->completion == completion);
  open(other_gate);
  REQUIRE(eventually([&] { return notifier.pending() == 0; }));
}

TEST_CASE_METHOD(
    OnDevice,
    "the completion thread uses under 2 % of a core while hundreds of completions are pending",
    "[wait]") {
  const Signal gate;
  std::vector<Queue> queues;
  for (int q = 0; q < 4; ++q) queues.emplace_back(gpu);
  CompletionNotifier notifier{256};
  std::atomic<int> count{0};
  std::vector<Task> tasks;
  std::vector<Completion> completions;
  for (int i = 0; i < 50; ++i)
    for (Queue& queue : queues) {
      completions.push_back(submit_gated(queue, gate));
      notifier.watch(completions.back());
      tasks.push_back(await(completions.back(), count));
    }
  const auto completion_threads = threads_named("uptempo-waiter");
  REQUIRE(completion_threads.size() == 1);
  // Threads await the same publication. One of them, or the completion thread, sleeps on its
  // signal.
  double of_a_thread = 0;
  std::atomic<bool> waits{false};
  std::thread thread([&] {
    const auto before = cpu_time();
    const auto begin = std::chrono::steady_clock::now();
    waits = true;
    completions.front().wait(WaitPolicy::blocked());
    of_a_thread = per_cent(cpu_time() - before, std::chrono::steady_clock::now() - begin);
  });
  REQUIRE(eventually([&] { return waits && sleep_all("uptempo-waiter"); }));
  const auto before = cpu_time_of(completion_threads.front());
  std::this_thread::sleep_for(1s);
  CHECK(per_cent(cpu_time_of(completion_threads.front()) - before, 1s) < 2);
  const Counters woken = Counters::now();
  open(gate);
  thread.join();
  CHECK(of_a_thread < 2);
  REQUIRE(eventually(
      [&] { return notifier.pending() == 0 && std::ranges::all_of(tasks, &Task::done); }));
  CHECK(count == 200);
  CHECK((Counters::now() - woken).completions_handed_back == 400);
  CHECK(readable(notifier.fd(), 0ms));
  size_t notices = 0;
  while (notifier.take()) ++notices;
  CHECK(notices == 200);
}

TEST_CASE_METHOD(OnDevice, "completions of a device arrive through a descriptor one by one",
                 "[wait]") {
  Queue queue{gpu};
  CompletionNotifier notifier{16};
  for (uint64_t i = 0; i < 30; ++i) {
    const Signal gate;
    const Completion completion = submit_gated(queue, gate);
    notifier.watch(completion, i);
    if (i % 3 == 0) std::this_thread::sleep_for(2ms);  // asleep, not polling
    CHECK_FALSE(notifier.take().has_value());
    open(gate);
    REQUIRE(readable(notifier.fd(), kHang));
    const auto notice = notifier.take();
    REQUIRE(notice.has_value());
    CHECK(notice->tag == i);
    CHECK(notice->completion.ready());
    CHECK_FALSE(notifier.take().has_value());
  }
}

TEST_CASE_METHOD(OnDevice, "a queue that fails wakes descriptors and coroutines", "[wait]") {
  Queue queue{gpu, {.drain_timeout = 100ms}};
  CompletionNotifier notifier{4};
  std::atomic<int> count{0};
  const Signal gate;
  BatchSubmitter batch{queue};
  batch.raw(aql::to_packet(aql::BarrierAnd{.dependencies = {gate.handle()}}));
  aql::Packet64 broken{};
  broken.word[0] = aql::first_word(static_cast<uint16_t>(0x1400 | 0x77));
  batch.raw(broken);
  const Completion bad = batch.submit();
  notifier.watch(bad);
  const Task task = await(bad, count);
  std::this_thread::sleep_for(5ms);
  open(gate);
  REQUIRE(readable(notifier.fd(), kHang));
  CHECK(notifier.take()->failed);
  REQUIRE(eventually([&] { return task.done(); }));
  CHECK(contains(task.error(), "the packet processor stopped the queue"));
  CHECK(count == 0);
}

TEST_CASE(
    "the completion thread ends with the runtime and reports the pending completions as failed",
    "[wait]") {
  for (int round = 0; round < 3; ++round) {
    std::optional<Runtime> runtime;
    runtime.emplace();
    const Signal gate;
    Queue queue{runtime->gpu(), {.drain_timeout = 100ms}};
    CompletionNotifier notifier{4};
    std::atomic<int> count{0};
    const Completion lost = submit_gated(queue, gate);
    const Task task = await(lost, count);
    notifier.watch(lost);
    CHECK(threads_named("uptempo-waiter").size() == 1);
    runtime.reset();
    // A thread that has been joined may stay in /proc for a moment.
    CHECK(eventually([] { return threads_named("uptempo-waiter").empty(); }));
    CHECK(task.done());
    CHECK(contains(task.error(), "the Runtime was destroyed"));
    REQUIRE(readable(notifier.fd(), 0ms));
    CHECK(notifier.take()->failed);
    CHECK(count == 0);
  }
}

TEST_CASE("the last runtime may be destroyed on the completion thread", "[wait]") {
  auto runtime = std::make_unique<Runtime>();
  const Agent gpu = runtime->gpu();
  Queue queue{gpu}, other{gpu, {.drain_timeout = 100ms}};
  const Signal gate, closed;
  std::atomic<int> count{0};
  const auto end = [](Completion completion, std::unique_ptr<Runtime>& mine) -> Task {
    co_await completion;
    mine.reset();
  };
  const Task lost = await(submit_gated(other, closed), count);
  const Task ends = end(submit_gated(queue, gate), runtime);
  open(gate);
  REQUIRE(eventually([&] { return ends.done(); }));
  CHECK(lost.done());
  CHECK(contains(lost.error(), "the Runtime was destroyed"));
}

// The next test case runs these in processes of their own.
TEST_CASE("child: awaits in static storage", "[.child]") {
  static std::optional<CompletionNotifier> notifier;
  static std::optional<Runtime> runtime;
  static std::optional<Queue> queue;
  static std::optional<Signal> gate;
  notifier.emplace(4);
  runtime.emplace();
  queue.emplace(runtime->gpu(), QueueOptions{.drain_timeout = 100ms});
  gate.emplace();
  notifier->watch(submit_gated(*queue, *gate));
}
TEST_CASE("child: awaits and leaks the runtime", "[.child]") {
  struct All {
    Runtime runtime;
    Queue queue{runtime.gpu()};
    Signal gate;
    CompletionNotifier notifier{4};
  };
  static All* const all = new All;
  all->notifier.watch(submit_gated(all->queue, all->gate));
}

TEST_CASE("a process ends cleanly while completions are pending", "[wait]") {
  for (const char* const child :
       {"child: awaits in static storage", "child: awaits and leaks the runtime"}) {
    // The second child leaks the runtime on purpose, so ROCr leaks too.
    std::vector<std::string> environment;
    if (std::string_view(child).ends_with("leaks the runtime")) {
      const char* const options = std::getenv("ASAN_OPTIONS");
      environment.push_back("ASAN_OPTIONS=" + std::string(options == nullptr ? "" : options) +
                            ":detect_leaks=0");
    }
    const auto result = run_command({"/proc/self/exe", child}, {.environment = environment});
    CAPTURE(child, result.out, result.err);
    CHECK(result.exit_code == 0);
  }
}
