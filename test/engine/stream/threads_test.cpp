// Streams of several threads: one per thread, over common hardware queues, with events between
// them. Most useful under ThreadSanitizer.
#include <array>
#include <atomic>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <random>
#include <thread>

#include "test/engine/stream/stream_devices.hpp"
#include "test/support/catch.hpp"

using namespace uptempo;
using namespace uptempo::test;
using namespace std::chrono_literals;

TEST_CASE("threads with a stream each, and events between them, keep every order",
          "[stream][stress]") {
  constexpr uint32_t threads = 4, each = 600;
  for (const bool legacy : {false, true}) {
    StreamDevicesOptions options;
    options.streams.hardware_queues = 2;
    options.streams.queue.publications = 8;
    options.streams.legacy_default = legacy;
    StreamDevices devices(options);
    struct Board {
      std::mutex mutex;
      std::vector<std::pair<Event, uint32_t>> events;  // and the launches that each covers
    } board;
    std::vector<std::vector<std::pair<uint32_t, uint32_t>>> before(threads);
    std::atomic<uint32_t> failed{0};
    const auto work = [&](uint32_t which) {
      std::mt19937_64 random(which);
      const auto kernel = number_kernel();
      Stream own(devices);
      Stream& stream = which == 0 ? devices.streams().default_stream() : own;
      std::optional<uint32_t> last;
      for (uint32_t i = 0; i < each; ++i) {
        const uint32_t number = which * each + i;
        std::optional<uint32_t> waited;
        if (random() % 4 == 0) {
          std::pair<Event, uint32_t> event;
          {
            const std::lock_guard lock(board.mutex);
            if (!board.events.empty()) {
              event = board.events[random() % board.events.size()];
              waited = event.second;
            }
          }
          if (random() % 4 == 0) {
            failed += !event.first.wait(Deadline::after(60s));
          } else {
            stream.after(event.first);
          }
        }
        stream.launch(kernel, Grid{1}, number);
        if (last) before[which].emplace_back(*last, number);
        if (waited) before[which].emplace_back(*waited, number);
        last = number;
        if (random() % 3 == 0) {
          const Event event = stream.record();
          const std::lock_guard lock(board.mutex);
          board.events.emplace_back(event, number);
          if (board.events.size() > 16) board.events.erase(board.events.begin());
        }
        if (random() % 64 == 0) stream.synchronize();
        if (random() % 64 == 0) devices.streams().synchronize();
      }
      failed += !stream.synchronize(Deadline::after(60s));
    };
    std::vector<std::thread> others;
    for (uint32_t which = 1; which < threads; ++which) others.emplace_back(work, which);
    work(0);
    for (std::thread& other : others) other.join();
    CHECK(failed == 0);
    for (const auto& pairs : before)
      for (const auto& [first, second] : pairs) {
        CAPTURE(first, second);
        REQUIRE(devices.log.is_before(first, second));
      }
  }
}

TEST_CASE(
    "while a hardware queue is created, other threads create, use and destroy streams of existing "
    "ones",
    "[stream]") {
  StreamDevicesOptions options;
  options.streams.hardware_queues = 2;
  std::function<void()> meanwhile;
  options.before_queue = [&] {
    if (meanwhile) std::exchange(meanwhile, {})();
  };
  StreamDevices devices(options);
  std::optional<Stream> first(std::in_place, devices);
  std::thread other;
  std::promise<void> done;
  bool came_in_time = false;
  meanwhile = [&] {
    other = std::thread([&] {
      first.reset();
      Stream shares(devices);
      shares.launch(number_kernel(), Grid{1}, 1);
      shares.synchronize();
      devices.streams().synchronize();
      done.set_value();
    });
    came_in_time = done.get_future().wait_for(kHang) == std::future_status::ready;
  };
  const Stream second(devices);
  other.join();
  CHECK(came_in_time);
  CHECK(devices.streams().hardware_queues() == 2);
}

TEST_CASE("threads that need hardware queues at the same time create no more than the limit",
          "[stream]") {
  constexpr uint32_t threads = 8;
  const auto in_each = [](auto&& f) {
    std::vector<std::thread> all;
    for (uint32_t i = 0; i < threads; ++i) all.emplace_back([&f, i] { f(i); });
    for (std::thread& thread : all) thread.join();
  };
  SignalDouble gate(1);
  StreamDevicesOptions options;
  options.streams.hardware_queues = 3;
  options.streams.own_queues = 2;
  options.before_queue = [] { std::this_thread::sleep_for(1ms); };
  StreamDevices devices(options);
  std::array<std::optional<Stream>, threads> streams;
  in_each([&](uint32_t i) { streams[i].emplace(devices); });
  CHECK(devices.streams().hardware_queues() == 3);
  std::atomic<uint32_t> waiting{0}, refused{0};
  in_each([&](uint32_t i) {
    try {
      streams[i]->after(gate.handle());
      ++waiting;
    } catch (const Error&) {
      ++refused;
    }
  });
  CHECK(waiting == 2);
  CHECK(refused == threads - 2);
  CHECK(devices.streams().hardware_queues() == 3 + 2);
  std::atomic_ref(const_cast<int64_t&>(gate.abi().value)).store(0);
  devices.streams().synchronize();
}
