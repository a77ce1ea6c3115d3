#include "kfd/events.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <set>
#include <thread>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/eventually.hpp"
#include "test/support/threads.hpp"

namespace uptempo::vgpu::kfd {
namespace {

using namespace std::chrono_literals;

constexpr uint32_t kGpu = 77;
constexpr uint32_t kForever = 0xffffffff;

uint32_t make(Events& events, bool auto_reset, uint32_t type = KFD_IOC_EVENT_SIGNAL) {
  uint32_t id = 0;
  REQUIRE(events.create(type, auto_reset, id) == 0);
  return id;
}

EventData data(uint32_t id, uint64_t last_age = 0) {
  EventData result{};
  result.event_id = id;
  result.signal_event_data.last_event_age = last_age;
  return result;
}

// Returns whether a poll finds the event set.
bool is_set(Events& events, uint32_t id) {
  EventData each = data(id);
  uint32_t result = KFD_IOC_WAIT_RESULT_FAIL;
  REQUIRE(events.wait(&each, 1, true, 0, result) == 0);
  return result == KFD_IOC_WAIT_RESULT_COMPLETE;
}

// Runs wait() on its own thread. The thread sleeps when the constructor returns.
class Sleeper {
 public:
  Sleeper(Events& events, std::vector<EventData> all_of, bool all) : data_(std::move(all_of)) {
    thread_ = std::thread([this, &events, all] {
      task_ = uptempo::test::this_task();
      begun_ = true;
      error_ =
          events.wait(data_.data(), static_cast<uint32_t>(data_.size()), all, kForever, result_);
      awake_ = true;
    });
    REQUIRE(uptempo::test::eventually([&] { return begun_ && uptempo::test::sleeps(task_); }));
  }
  ~Sleeper() {
    if (thread_.joinable()) thread_.join();
  }
  bool awake() {
    std::this_thread::sleep_for(20ms);
    return awake_;
  }
  uint32_t join() {
    thread_.join();
    return result_;
  }
  int error() const { return error_; }
  const EventData& at(size_t i) const { return data_[i]; }

 private:
  std::vector<EventData> data_;
  uint32_t result_ = KFD_IOC_WAIT_RESULT_FAIL;
  int error_ = 0;
  std::string task_;
  std::atomic<bool> begun_{false}, awake_{false};
  std::thread thread_;
};

TEST_CASE("a manual-reset event stays set until it is reset", "[events]") {
  Events events;
  const uint32_t id = make(events, false);
  CHECK_FALSE(is_set(events, id));
  REQUIRE(events.set(id) == 0);
  CHECK(is_set(events, id));
  CHECK(is_set(events, id));
  REQUIRE(events.reset(id) == 0);
  CHECK_FALSE(is_set(events, id));
}

TEST_CASE("an auto-reset event without waiters stays set for one waiter", "[events]") {
  Events events;
  const uint32_t id = make(events, true);
  REQUIRE(events.set(id) == 0);
  CHECK(is_set(events, id));
  CHECK_FALSE(is_set(events, id));
}

TEST_CASE("setting an auto-reset event wakes all present waiters and leaves it reset", "[events]") {
  Events events;
  const uint32_t id = make(events, true);
  Sleeper one(events, {data(id)}, true);
  Sleeper two(events, {data(id)}, true);
  events.raise(id);
  CHECK(one.join() == KFD_IOC_WAIT_RESULT_COMPLETE);
  CHECK(two.join() == KFD_IOC_WAIT_RESULT_COMPLETE);
  CHECK_FALSE(is_set(events, id));
}

TEST_CASE("an auto-reset event that one thread has consumed still wakes each other thread once",
          "[events]") {
  Events events;
  const uint32_t id = make(events, true);
  REQUIRE(events.set(id) == 0);
  CHECK(is_set(events, id));  // the thread that set it waits first, like ROCr's queue destructor
  const auto late_thread = [&] {
    std::array<bool, 2> woken{};
    std::thread([&] { woken = {is_set(events, id), is_set(events, id)}; }).join();
    return woken;
  };
  CHECK(late_thread() == std::array{true, false});
  CHECK_FALSE(is_set(events, id));
  CHECK(late_thread() == std::array{true, false});
  REQUIRE(events.reset(id) == 0);
  CHECK(late_thread() == std::array{false, false});
}

TEST_CASE("an auto-reset event set while a thread slept wakes only that thread", "[events]") {
  Events events;
  const uint32_t id = make(events, true);
  Sleeper sleeper(events, {data(id)}, true);
  events.set(id);
  CHECK(sleeper.join() == KFD_IOC_WAIT_RESULT_COMPLETE);
  CHECK_FALSE(is_set(events, id));
}

TEST_CASE("a wait for any event ends with the first set, a wait for all with the last",
          "[events]") {
  Events events;
  const uint32_t a = make(events, false);
  const uint32_t b = make(events, false);
  Sleeper any(events, {data(a), data(b)}, false);
  Sleeper all(events, {data(a), data(b)}, true);
  events.set(b);
  CHECK(any.join() == KFD_IOC_WAIT_RESULT_COMPLETE);
  CHECK_FALSE(all.awake());
  events.set(a);
  CHECK(all.join() == KFD_IOC_WAIT_RESULT_COMPLETE);
}

TEST_CASE("a wait for all keeps the set of an auto-reset event until it ends", "[events]") {
  Events events;
  const uint32_t a = make(events, true);
  const uint32_t b = make(events, true);
  Sleeper all(events, {data(a), data(b)}, true);
  events.set(a);
  CHECK_FALSE(all.awake());
  events.set(b);
  CHECK(all.join() == KFD_IOC_WAIT_RESULT_COMPLETE);
}

TEST_CASE("a wait that times out returns the time-out result after its time", "[events]") {
  Events events;
  EventData each = data(make(events, true));
  uint32_t result = 0;
  const auto begin = std::chrono::steady_clock::now();
  REQUIRE(events.wait(&each, 1, true, 50, result) == 0);
  CHECK(result == KFD_IOC_WAIT_RESULT_TIMEOUT);
  CHECK(std::chrono::steady_clock::now() - begin >= 50ms);
}

TEST_CASE("a wait for no events completes at once", "[events]") {
  Events events;
  uint32_t result = 0;
  REQUIRE(events.wait(nullptr, 0, true, kForever, result) == 0);
  CHECK(result == KFD_IOC_WAIT_RESULT_COMPLETE);
}

TEST_CASE("a blocked waiter uses no processor time", "[events]") {
  Events events;
  const uint32_t id = make(events, true);
  Sleeper sleeper(events, {data(id)}, true);
  const std::clock_t before = std::clock();
  std::this_thread::sleep_for(200ms);
  const double busy = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  events.set(id);
  sleeper.join();
  CHECK(busy < 0.05);
}

TEST_CASE("destroying an event ends its waits with EIO", "[events]") {
  Events events;
  const uint32_t id = make(events, true);
  Sleeper sleeper(events, {data(id)}, true);
  REQUIRE(events.destroy(id) == 0);
  CHECK(sleeper.join() == KFD_IOC_WAIT_RESULT_FAIL);
  CHECK(sleeper.error() == -EIO);
}

TEST_CASE("a waiter that passes the age misses no set between two waits", "[events]") {
  Events events;
  const uint32_t id = make(events, true);
  EventData each = data(id, 1);
  uint32_t result = 0;
  REQUIRE(events.wait(&each, 1, true, 0, result) == 0);
  CHECK(result == KFD_IOC_WAIT_RESULT_TIMEOUT);  // age 1: never set

  events.raise(id);
  CHECK(is_set(events, id));  // consumes the set
  REQUIRE(events.wait(&each, 1, true, 0, result) == 0);
  CHECK(result == KFD_IOC_WAIT_RESULT_COMPLETE);
  CHECK(each.signal_event_data.last_event_age == 2);
  REQUIRE(events.wait(&each, 1, true, 0, result) == 0);
  CHECK(result == KFD_IOC_WAIT_RESULT_TIMEOUT);
}

TEST_CASE("a wait for all that times out returns no age, so the next wait sees the same sets",
          "[events]") {
  Events events;
  const uint32_t a = make(events, true), b = make(events, true);
  std::vector<EventData> both{data(a, 1), data(b, 1)};
  uint32_t result = KFD_IOC_WAIT_RESULT_FAIL;
  REQUIRE(events.set(a) == 0);
  REQUIRE(events.wait(both.data(), 2, true, 0, result) == 0);
  CHECK(result == KFD_IOC_WAIT_RESULT_TIMEOUT);
  CHECK(both[0].signal_event_data.last_event_age == 1);
  REQUIRE(events.set(b) == 0);
  REQUIRE(events.wait(both.data(), 2, true, 0, result) == 0);
  CHECK(result == KFD_IOC_WAIT_RESULT_COMPLETE);
  CHECK(both[0].signal_event_data.last_event_age == 2);
  CHECK(both[1].signal_event_data.last_event_age == 2);
}

TEST_CASE("a waiter that passes no age receives none", "[events]") {
  Events events;
  const uint32_t id = make(events, true);
  events.set(id);
  EventData each = data(id, 0);
  uint32_t result = 0;
  REQUIRE(events.wait(&each, 1, true, 0, result) == 0);
  CHECK(each.signal_event_data.last_event_age == 0);
}

TEST_CASE("after 4095 signal events the next is refused until one is destroyed", "[events]") {
  Events events;
  std::set<uint32_t> ids;
  for (int i = 0; i < 4095; ++i) ids.insert(make(events, true));
  CHECK(ids.size() == 4095);
  CHECK(*ids.begin() == 1);
  CHECK(*ids.rbegin() == 4095);
  uint32_t id = 0;
  CHECK(events.create(KFD_IOC_EVENT_SIGNAL, true, id) == -ENOSPC);
  CHECK(make(events, false, KFD_IOC_EVENT_MEMORY) >= KFD_SIGNAL_EVENT_LIMIT);
  REQUIRE(events.destroy(100) == 0);
  CHECK(make(events, true) == 100);
}

TEST_CASE("an event that does not exist cannot be set, reset, destroyed or waited for",
          "[events]") {
  Events events;
  EventData each = data(5);
  uint32_t result = 0;
  CHECK(events.set(5) == -EINVAL);
  CHECK(events.reset(5) == -EINVAL);
  CHECK(events.destroy(5) == -EINVAL);
  CHECK(events.wait(&each, 1, true, 0, result) == -EINVAL);
  events.raise(5);  // a late interrupt of a destroyed event is not an error
}

TEST_CASE("a wait for more events than the driver's limit is refused", "[events]") {
  Events events;
  EventData none{};
  uint32_t result = KFD_IOC_WAIT_RESULT_FAIL;
  CHECK(events.wait(&none, 0x7fffffff, true, 0, result) == -ENOMEM);
}

TEST_CASE("the program can set only signal events", "[events]") {
  Events events;
  const uint32_t id = make(events, false, KFD_IOC_EVENT_MEMORY);
  CHECK(events.set(id) == -EINVAL);
  CHECK(events.reset(id) == -EINVAL);
}

TEST_CASE("a memory fault reaches every memory event with page, kind and device", "[events]") {
  Events events;
  const uint32_t signal = make(events, true);
  const uint32_t id = make(events, false, KFD_IOC_EVENT_MEMORY);
  Sleeper sleeper(events, {data(signal), data(id)}, false);
  events.memory_fault(
      {.address = 0x12345678, .access = Access::write, .present = true, .where = "test"}, kGpu,
      "GPU");
  CHECK(sleeper.join() == KFD_IOC_WAIT_RESULT_COMPLETE);
  const auto& exception = sleeper.at(1).memory_exception_data;
  CHECK(exception.va == 0x12345000);
  CHECK(exception.gpu_id == kGpu);
  CHECK(exception.failure.ReadOnly == 1);
  CHECK(exception.failure.NotPresent == 0);

  events.memory_fault(
      {.address = 0x5000, .access = Access::read, .present = false, .where = "test"}, kGpu, "GPU");
  EventData each = data(id);
  uint32_t result = 0;
  REQUIRE(events.wait(&each, 1, true, 0, result) == 0);
  CHECK(each.memory_exception_data.failure.NotPresent == 1);
  CHECK(each.memory_exception_data.va == 0x5000);
}

TEST_CASE("no set is lost between threads that pass an event back and forth", "[events][threads]") {
  Events events;
  const uint32_t ping = make(events, true);
  const uint32_t pong = make(events, true);
  constexpr int kRounds = 2000;
  const auto wait_for = [&events](uint32_t id) {
    EventData each = data(id);
    uint32_t result = 0;
    return events.wait(&each, 1, true, 60'000, result) == 0 &&
           result == KFD_IOC_WAIT_RESULT_COMPLETE;
  };
  int answered = 0;
  std::thread partner([&] {
    for (int i = 0; i < kRounds && wait_for(ping); ++i) events.raise(pong);
  });
  for (int i = 0; i < kRounds; ++i) {
    events.raise(ping);
    if (!wait_for(pong)) break;
    ++answered;
  }
  partner.join();
  CHECK(answered == kRounds);
}

}  // namespace
}  // namespace uptempo::vgpu::kfd
