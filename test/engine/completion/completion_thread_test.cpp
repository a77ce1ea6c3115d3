// Completions through a descriptor and in coroutines, against the packet processor double.
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include <uptempo/completion/awaitable.hpp>
#include <uptempo/completion/completion_thread.hpp>
#include <uptempo/completion/notifier.hpp>
#include <uptempo/runtime/counters.hpp>
#include <uptempo/runtime/error.hpp>
#include "test/engine/completion/task.hpp"
#include "test/engine/double_device.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/threads.hpp"

using namespace uptempo;
using namespace uptempo::test;
using namespace std::chrono_literals;

namespace {

// Sleeps in epoll until the descriptor is readable, then reads it.
class Sleeper {
 public:
  explicit Sleeper(int fd) : fd_(fd), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    epoll_event event{.events = EPOLLIN, .data = {}};
    epoll_ctl(epoll_, EPOLL_CTL_ADD, fd_, &event);
  }
  ~Sleeper() { close(epoll_); }
  bool wait(std::chrono::milliseconds limit = kHang) {
    epoll_event event{};
    if (epoll_wait(epoll_, &event, 1, static_cast<int>(limit.count())) != 1) return false;
    uint64_t count = 0;
    return read(fd_, &count, sizeof count) == sizeof count;
  }

 private:
  int fd_, epoll_;
};

DoubleOptions with_publications(uint32_t count, bool paused) {
  return {.device = {.ring_size = 1024, .paused = paused},
          .queue = {.packets = 1024,
                    .publications = count,
                    .timing_signals = 0,
                    .kernarg_bytes = 1 << 20,
                    .kernarg_slab_bytes = 1024,
                    .drain_timeout = 10ms},
          .signals = count};
}

Completion submit_one(DoubleDevice& device) {
  static const auto kernel = number_kernel();
  BatchSubmitter batch(device.queue(), {});
  batch.dispatch(kernel, Grid{1}, 1u);
  return batch.submit();
}

Task count_when_done(Completion completion, std::atomic<int>& count) {
  co_await completion;
  ++count;
}

}  // namespace

TEST_CASE("a descriptor becomes readable when a watched completion is complete, and not before",
          "[completion_thread]") {
  DoubleDevice device(with_publications(16, true));
  CompletionNotifier notifier(4);
  Sleeper sleeper(notifier.fd());
  const Completion completion = submit_one(device);
  notifier.watch(completion, 77);
  CHECK_FALSE(sleeper.wait(20ms));
  CHECK_FALSE(notifier.take().has_value());
  CHECK(notifier.pending() == 1);
  device.processor().resume();
  REQUIRE(sleeper.wait());
  const auto notice = notifier.take();
  REQUIRE(notice.has_value());
  CHECK(notice->completion == completion);
  CHECK(notice->completion.ready());
  CHECK(notice->tag == 77);
  CHECK_FALSE(notice->failed);
  CHECK_FALSE(notifier.take().has_value());
  CHECK(notifier.pending() == 0);

  notifier.watch(completion, 78);  // already complete: a notice at once
  notifier.watch(Completion{}, 79);
  REQUIRE(sleeper.wait());
  CHECK(notifier.take()->tag == 78);
  CHECK(notifier.take()->tag == 79);
  CHECK_FALSE(notifier.take().has_value());
}

TEST_CASE("a caller's descriptor also works, and stays open", "[completion_thread]") {
  const int fd = eventfd(0, EFD_NONBLOCK);
  DoubleDevice device(with_publications(16, false));
  {
    CompletionNotifier notifier(4, fd);
    Sleeper sleeper(fd);
    notifier.watch(submit_one(device));
    CHECK(sleeper.wait());
    CHECK(notifier.take().has_value());
  }
  const uint64_t one = 1;
  CHECK(write(fd, &one, sizeof one) == sizeof one);
  close(fd);
}

TEST_CASE("a notifier accepts watches up to its capacity until notices are read",
          "[completion_thread]") {
  DoubleDevice device(with_publications(16, true));
  CompletionNotifier notifier(2);
  const Completion first = submit_one(device), second = submit_one(device),
                   third = submit_one(device);
  notifier.watch(first);
  CHECK(notifier.try_watch(second));
  CHECK_FALSE(notifier.try_watch(third));
  try {
    notifier.watch(third);
    FAIL("a third completion was watched");
  } catch (const Error& error) {
    CHECK(contains(error.what(), "2 of 2 are pending"));
  }
  device.processor().resume();
  REQUIRE(eventually([&] { return notifier.pending() == 0; }));
  CHECK_FALSE(notifier.try_watch(third));
  CHECK(notifier.take()->completion == first);
  CHECK(notifier.try_watch(third));
  REQUIRE(eventually([&] { return notifier.pending() == 0; }));
  CHECK(notifier.take()->completion == second);
  CHECK(notifier.take()->completion == third);
}

TEST_CASE(
    "the thread hands back in one wake-up all that has completed: 1,000 of 4 queues, in order",
    "[completion_thread]") {
  DoubleDevice first(with_publications(1, true));
  std::atomic<bool> held{false};
  std::promise<void> release;
  const auto hold = [](Completion completion, std::atomic<bool>& holds,
                       std::future<void> until) -> Task {
    co_await completion;
    holds = true;
    until.wait();
  };
  const Task task = hold(submit_one(first), held, release.get_future());
  first.processor().resume();
  REQUIRE(eventually([&] { return held.load(); }));  // the thread is in the coroutine

  constexpr size_t queues = 4, each = 250;
  std::vector<std::unique_ptr<DoubleDevice>> devices;
  for (size_t q = 0; q < queues; ++q)
    devices.push_back(std::make_unique<DoubleDevice>(with_publications(each, true)));
  CompletionNotifier notifier(queues * each);
  std::vector<Completion> completions;
  const Counters before = Counters::now();
  for (size_t i = 0; i < each; ++i)
    for (size_t q = 0; q < queues; ++q) {
      completions.push_back(submit_one(*devices[q]));
      notifier.watch(completions.back(), q);
    }
  CHECK(threads_named("uptempo-waiter").size() == 1);
  for (const auto& device : devices) device->processor().resume();
  REQUIRE(eventually([&] {
    return std::ranges::all_of(completions, [](const Completion& of) { return of.ready(); });
  }));
  CHECK_FALSE(notifier.take().has_value());
  release.set_value();
  Sleeper sleeper(notifier.fd());
  std::vector<uint64_t> last(queues, 0);
  size_t notices = 0;
  while (notices < queues * each && sleeper.wait()) {
    while (const auto notice = notifier.take()) {
      CHECK_FALSE(notice->failed);
      CHECK(notice->completion.value() > last[notice->tag]);
      last[notice->tag] = notice->completion.value();
      ++notices;
    }
  }
  CHECK(notices == queues * each);
  CHECK_FALSE(notifier.take().has_value());
  const Counters spent = Counters::now() - before;
  CHECK(spent.completions_handed_back == queues * each);
  CHECK(spent.completion_thread_wake_ups == 1);
  CHECK(threads_named("uptempo-waiter").size() == 1);
  CHECK(task.done());
}

TEST_CASE("notices of a queue arrive in order, also for completions that are complete when watched",
          "[completion_thread]") {
  DoubleDevice device(with_publications(64, false));
  CompletionNotifier notifier(64);
  uint64_t last = 0;
  size_t notices = 0;
  const auto take_all = [&] {
    while (const auto notice = notifier.take()) {
      if (notice->completion.value() <= last) FAIL(notice->completion.value() << " after " << last);
      last = notice->completion.value();
      ++notices;
    }
  };
  for (int i = 0; i < 2000; ++i) {
    const Completion completion = submit_one(device);
    if (i % 3 == 0) (void)completion.wait(soon(), kActiveWait);
    while (!notifier.try_watch(completion)) take_all();
    if (i % 7 == 0) take_all();
  }
  REQUIRE(eventually([&] { return notifier.pending() == 0; }));
  take_all();
  CHECK(notices == 2000);
}

TEST_CASE("when a queue fails, its watched completions arrive as failed and other queues continue",
          "[completion_thread]") {
  DoubleDevice broken(with_publications(16, true)), sound(with_publications(16, true));
  CompletionNotifier notifier(8);
  Sleeper sleeper(notifier.fd());
  for (uint64_t i = 0; i < 3; ++i) notifier.watch(submit_one(broken), i);
  notifier.watch(submit_one(sound), 3);
  SECTION("the packet processor stops it") { broken.processor().fail(HSA_STATUS_ERROR_EXCEPTION); }
  SECTION("a memory fault stops it") {
    broken.state().timeline().fail(static_cast<hsa_status_t>(HSA_STATUS_ERROR_MEMORY_FAULT),
                                   "a fault");
  }
  SECTION("it is destroyed") { broken.destroy_queue(); }
  for (uint64_t i = 0; i < 3;) {
    REQUIRE(sleeper.wait());
    while (const auto notice = notifier.take()) {
      CHECK(notice->tag == i++);
      CHECK(notice->failed);
      CHECK_THROWS_AS(notice->completion.ready(), Error);
    }
  }
  CHECK(notifier.pending() == 1);
  sound.processor().resume();
  REQUIRE(sleeper.wait());
  const auto notice = notifier.take();
  CHECK(notice->tag == 3);
  CHECK_FALSE(notice->failed);
}

TEST_CASE("a coroutine awaits one batch after another, and submits from the thread that resumed it",
          "[completion_thread]") {
  DoubleDevice device(with_publications(16, false));
  std::atomic<int> steps{0};
  const auto chain = [](DoubleDevice& on, std::atomic<int>& counted) -> Task {
    for (int i = 0; i < 50; ++i) {
      const Completion completion = submit_one(on);
      co_await completion;
      if (!completion.ready()) co_return;
      ++counted;
    }
  };
  const Task task = chain(device, steps);
  REQUIRE(eventually([&] { return task.done(); }));
  CHECK(steps == 50);
  CHECK(task.error().empty());
}

TEST_CASE("a completion that is complete does not suspend its coroutine", "[completion_thread]") {
  DoubleDevice device(with_publications(16, false));
  const Completion completion = submit_one(device);
  completion.wait(kActiveWait);
  std::atomic<int> count{0};
  const Task task = count_when_done(completion, count);
  CHECK(task.done());
  const Task nothing = count_when_done(Completion{}, count);
  CHECK(nothing.done());
  CHECK(count == 2);
}

TEST_CASE("many coroutines await the same and different completions", "[completion_thread]") {
  DoubleDevice device(with_publications(64, true));
  std::atomic<int> count{0};
  std::vector<Completion> completions;
  for (int i = 0; i < 40; ++i) completions.push_back(submit_one(device));
  std::vector<Task> tasks;
  std::mt19937 random(3);
  for (int i = 0; i < 400; ++i) tasks.push_back(count_when_done(completions[random() % 40], count));
  CHECK(count == 0);
  device.processor().resume();
  REQUIRE(eventually([&] { return std::ranges::all_of(tasks, &Task::done); }));
  CHECK(count == 400);
}

TEST_CASE("a coroutine whose queue fails resumes with the queue's error", "[completion_thread]") {
  DoubleDevice device(with_publications(16, true));
  std::atomic<int> count{0};
  const Task task = count_when_done(submit_one(device), count);
  device.state().timeline().fail(HSA_STATUS_ERROR_EXCEPTION, "the device is on fire");
  REQUIRE(eventually([&] { return task.done(); }));
  CHECK(contains(task.error(), "the device is on fire"));
  CHECK(count == 0);
}

TEST_CASE("an executor selects where the coroutine resumes", "[completion_thread]") {
  DoubleDevice device(with_publications(16, false));
  struct Loop {
    std::mutex mutex;
    std::vector<std::coroutine_handle<>> posted;
    void operator()(std::coroutine_handle<> handle) {
      const std::lock_guard lock(mutex);
      posted.push_back(handle);
    }
    bool run_one() {
      std::coroutine_handle<> next;
      {
        const std::lock_guard lock(mutex);
        if (posted.empty()) return false;
        next = posted.back();
        posted.pop_back();
      }
      next.resume();
      return true;
    }
  } loop;
  std::vector<std::thread::id> where;
  const auto follow = [](Loop& on, DoubleDevice& with, std::vector<std::thread::id>& seen) -> Task {
    for (int i = 0; i < 5; ++i) {
      co_await resume_on(on, submit_one(with));
      seen.push_back(std::this_thread::get_id());
    }
  };
  const Task task = follow(loop, device, where);
  REQUIRE(eventually([&] {
    loop.run_one();
    return task.done();
  }));
  CHECK(where.size() == 5);
  CHECK(std::ranges::all_of(where,
                            [](std::thread::id id) { return id == std::this_thread::get_id(); }));
}

TEST_CASE("the queue and its waiters may be destroyed in any order while completions arrive",
          "[completion_thread]") {
  std::mt19937 random(11);
  for (int round = 0; round < 100; ++round) {
    auto device = std::make_unique<DoubleDevice>(with_publications(16, random() % 2 == 0));
    auto notifier = std::make_unique<CompletionNotifier>(16);
    std::atomic<int> count{0};
    std::vector<Task> tasks;
    for (uint64_t i = 0; i < 10; ++i) {
      const Completion completion = submit_one(*device);
      notifier->watch(completion, i);
      if (random() % 2 == 0) continue;
      // The coroutine is suspended on the completion thread only where no thread resumes it during
      // its destruction.
      if (device->processor().completed_count() == 0)
        tasks.push_back(count_when_done(completion, count));
    }
    const auto let_coroutines_end = [&] {
      CHECK(eventually([&] { return std::ranges::all_of(tasks, &Task::done); }));
    };
    switch (random() % 4) {
      case 0:
        notifier.reset();
        device->processor().resume();
        let_coroutines_end();
        device.reset();
        break;
      case 1:
        device->destroy_queue();
        device.reset();
        let_coroutines_end();
        notifier.reset();
        break;
      case 2:
        device->processor().resume();
        notifier.reset();
        device->destroy_queue();
        device.reset();
        let_coroutines_end();
        break;
      case 3:
        device->processor().resume();
        device->destroy_queue();
        notifier.reset();
        let_coroutines_end();
        break;
    }
  }
}

TEST_CASE("a suspended coroutine may be destroyed, and is not resumed afterwards",
          "[completion_thread]") {
  DoubleDevice device(with_publications(16, true));
  std::atomic<int> count{0};
  const Completion completion = submit_one(device);
  auto destroyed = std::make_unique<Task>(count_when_done(completion, count));
  const Task kept = count_when_done(completion, count);
  destroyed.reset();
  device.processor().resume();
  REQUIRE(eventually([&] { return kept.done(); }));
  CHECK(count == 1);
}

TEST_CASE("a coroutine may destroy another that is next to be resumed", "[completion_thread]") {
  DoubleDevice device(with_publications(16, true));
  std::atomic<int> count{0};
  const Completion completion = submit_one(device);
  std::unique_ptr<Task> target;
  const auto destroy_when_done = [](Completion when, std::unique_ptr<Task>& other) -> Task {
    co_await when;
    other.reset();
  };
  const Task task = destroy_when_done(completion, target);
  target = std::make_unique<Task>(count_when_done(completion, count));
  device.processor().resume();
  REQUIRE(eventually([&] { return task.done(); }));
  CHECK(target == nullptr);
  CHECK(count == 0);
}

TEST_CASE("a coroutine on the completion thread may destroy the queue that it awaited",
          "[completion_thread]") {
  auto device = std::make_unique<DoubleDevice>(with_publications(16, false));
  const auto destroy = [](std::unique_ptr<DoubleDevice>& mine) -> Task {
    const Completion completion = submit_one(*mine);
    co_await completion;
    mine->destroy_queue();
    if (!completion.ready()) throw std::runtime_error("not complete any more");
  };
  const Task task = destroy(device);
  REQUIRE(eventually([&] { return task.done(); }));
  CHECK(task.error().empty());
}

TEST_CASE("waiting threads and the completion thread share a publication", "[completion_thread]") {
  DoubleDevice device(with_publications(64, false));
  std::atomic<int> count{0};
  for (int round = 0; round < 30; ++round) {
    const Completion completion = submit_one(device);
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([&] {
        if (completion.wait(soon(), WaitPolicy::blocked())) ++count;
      });
    const Task task = count_when_done(completion, count);
    for (std::thread& thread : threads) thread.join();
    REQUIRE(eventually([&] { return task.done(); }));
  }
  CHECK(count == 30 * 4);
}

TEST_CASE("waiters on signals without event, and the completion thread, use under 2 % of a core",
          "[completion_thread]") {
  DoubleDevice device(with_publications(16, true));
  const Completion completion = submit_one(device);
  std::atomic<int> count{0};
  const Task task = count_when_done(completion, count);
  const auto completion_threads = threads_named("uptempo-waiter");
  REQUIRE(completion_threads.size() == 1);
  std::vector<double> cost(3);
  std::atomic<size_t> waiting{0};
  std::vector<std::thread> threads;
  for (double& of_this_thread : cost) {
    threads.emplace_back([&] {
      const auto before = cpu_time();
      const auto begin = std::chrono::steady_clock::now();
      ++waiting;
      completion.wait();
      of_this_thread = per_cent(cpu_time() - before, std::chrono::steady_clock::now() - begin);
    });
  }
  while (waiting != cost.size()) std::this_thread::yield();
  const auto before = cpu_time_of(completion_threads.front());
  const auto begin = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(1s);
  CHECK(per_cent(cpu_time_of(completion_threads.front()) - before,
                 std::chrono::steady_clock::now() - begin) < 2);
  device.processor().resume();
  for (std::thread& thread : threads) thread.join();
  for (const double per_cent_of_a_core : cost) CHECK(per_cent_of_a_core < 2);
  REQUIRE(eventually([&] { return task.done(); }));
}
