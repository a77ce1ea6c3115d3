// Streams with the smallest pools: two or three markers, rings of 64, a few slabs of kernarg
// memory. Every resource is short all the time. No stream may hang, lose work or lose its order.
#include <random>
#include <string>
#include <thread>

#include <uptempo/program/metadata.hpp>
#include "test/engine/error_code.hpp"
#include "test/engine/stream/stream_devices.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"

using namespace uptempo;
using namespace uptempo::test;
using namespace std::chrono_literals;

namespace {

StreamDevicesOptions tiny(uint32_t queues, uint32_t publications) {
  StreamDevicesOptions options;
  options.streams.hardware_queues = queues;
  options.streams.queue.publications = publications;
  options.streams.queue.kernarg_bytes = 4 << 10;
  return options;
}

}  // namespace

TEST_CASE("queues that wait for each other with two markers each always make progress",
          "[stream][short]") {
  for (const uint32_t publications : {2u, 3u, 4u}) {
    CAPTURE(publications);
    StreamDevicesOptions options = tiny(2, publications);
    options.device.paused = true;
    StreamDevices devices(options);
    Stream a(devices), b(devices);
    REQUIRE(hardware_queue(a) != hardware_queue(b));
    // Each queue lends its signals to the other's open epoch, as many as it can lend, before either
    // device executes anything.
    std::thread device([&] {
      std::this_thread::sleep_for(50ms);
      devices.resume();
    });
    const auto begin = std::chrono::steady_clock::now();
    for (uint32_t i = 0; i < 200; ++i) {
      launch(a, 2 * i);
      launch(b, 2 * i + 1);
      const Event of_a = a.record(), of_b = b.record();
      a.after(of_b);
      b.after(of_a);
    }
    launch(a, 400);
    launch(b, 401);
    devices.streams().synchronize();
    device.join();
    CHECK(std::chrono::steady_clock::now() - begin < kHang / 2);  // no step used up its patience
    for (uint32_t i = 0; i < 400; ++i) {
      REQUIRE(devices.log.is_before(i, i / 2 * 2 + 2));
      REQUIRE(devices.log.is_before(i, i / 2 * 2 + 3));
    }
  }
}

TEST_CASE("two queues that could lend each other all their signals keep one each",
          "[stream][short]") {
  for (const uint32_t publications : {2u, 3u, 4u}) {
    CAPTURE(publications);
    StreamDevicesOptions options = tiny(2, publications);
    options.device.paused = true;
    StreamDevices devices(options);
    Stream a(devices), b(devices);
    std::vector<Event> of_a, of_b;
    for (uint32_t i = 0; i < publications; ++i) {
      launch(a, i);
      of_a.push_back(a.record());
      launch(b, 10 + i);
      of_b.push_back(b.record());
    }
    std::thread device([&] {  // when all signals that can be lent are lent
      std::this_thread::sleep_for(50ms);
      devices.resume();
    });
    for (uint32_t i = 0; i < publications; ++i) {
      b.after(of_a[i]);
      launch(b, 20 + i);
      a.after(of_b[i]);
      launch(a, 30 + i);
    }
    std::atomic<bool> failed{false};
    const auto synchronize = [&](Stream& stream) {
      try {
        stream.synchronize();
      } catch (const Error&) {
        failed = true;
      }
    };
    std::thread other(synchronize, std::ref(a));
    synchronize(b);
    other.join();
    device.join();
    REQUIRE_FALSE(failed);
    for (uint32_t i = 0; i < publications; ++i) {
      CHECK(devices.log.is_before(i, 20 + i));
      CHECK(devices.log.is_before(10 + i, 30 + i));
    }
  }
}

TEST_CASE("a stream that waits for the host does not exhaust the signals of another queue",
          "[stream][short]") {
  StreamDevicesOptions options = tiny(1, 4);
  options.streams.patience = 50ms;
  StreamDevices devices(options);
  SignalDouble gate(1);
  Stream free(devices), held(devices);
  held.after(gate.handle());
  const auto hold = [&](uint32_t number) {
    free.synchronize();
    devices.pause();
    launch(free, number);
    held.after(free.record());
    try {
      launch(held, 1000 + number);
    } catch (const Error& error) {
      CHECK(contains(error.what(), "a completion signal of another queue"));
    }
    devices.resume();
  };
  for (uint32_t i = 0; i < 16; ++i) hold(i);
  for (uint32_t i = 100; i < 130; ++i) {
    launch(free, i);
    free.record().wait();
  }
  CHECK(devices.log.ended(129) != 0);
  CHECK(devices.log.began(1000) == 0);
  gate.set(0);
  held.synchronize();
  CHECK(devices.log.is_before(0, 1000));
}

TEST_CASE("random streams with tiny pools keep every order", "[stream][short][stress]") {
  for (const uint32_t publications : {2u, 3u, 4u}) {
    for (const uint64_t seed : {1u, 2u, 3u, 4u}) {
      CAPTURE(publications, seed);
      StreamDevicesOptions options = tiny(1 + static_cast<uint32_t>(seed % 4), publications);
      options.device = {.seed = seed,
                        .early_read_index = seed == 2,
                        .read_index_step = seed == 4 ? 8u : 1u,
                        .barriers_step_aside = seed == 3};
      StreamDevices devices(options);
      std::mt19937_64 random(seed);
      std::deque<Stream> streams;
      for (int i = 0; i < 6; ++i) streams.emplace_back(devices);
      std::vector<std::vector<uint32_t>> after, known(streams.size());
      std::vector<std::pair<Event, std::vector<uint32_t>>> events;
      const auto begin = std::chrono::steady_clock::now();
      for (uint32_t step = 0; step < 2000; ++step) {
        const size_t which = random() % streams.size();
        switch (random() % 4) {
          case 0:
            events.emplace_back(streams[which].record(), known[which]);
            break;
          case 1:
            if (!events.empty()) {
              const auto& [event, covers] =
                  events[events.size() - 1 - random() % std::min<size_t>(events.size(), 6)];
              streams[which].after(event);
              known[which].insert(known[which].end(), covers.begin(), covers.end());
            }
            break;
          default:
            launch(streams[which], static_cast<uint32_t>(after.size()));
            after.push_back(known[which]);
            known[which] = {static_cast<uint32_t>(after.size() - 1)};
        }
      }
      devices.streams().synchronize();
      CHECK(std::chrono::steady_clock::now() - begin < kHang / 2);
      for (uint32_t number = 0; number < after.size(); ++number)
        for (const uint32_t before : after[number]) {
          CAPTURE(before, number);
          REQUIRE(devices.log.is_before(before, number));
        }
    }
  }
}

TEST_CASE("streams with one marker at a time are refused", "[stream][short]") {
  const std::string text = error_of<Error>([&] { StreamDevices(tiny(1, 1)); });
  CAPTURE(text);
  CHECK(contains(text, "fewer than two publications"));
}

TEST_CASE("arguments that fill a kernarg slab are launched, larger ones are refused at once",
          "[stream][short]") {
  const auto kernel_with = [](uint32_t bytes) {
    return kernel_of<uint32_t>({.name = "of_" + std::to_string(bytes),
                                .kernarg_bytes = bytes,
                                .arguments = {argument(ArgumentKind::by_value, 0, 4)}});
  };
  StreamDevices devices(tiny(1, 4));
  Stream a(devices);
  const auto fitting = kernel_with(1024), large = kernel_with(1028);
  for (uint32_t i = 0; i < 20; i += 2) {
    a.launch(fitting, Grid{1}, i);
    const std::string text = error_of<Error>([&] { a.launch(large, Grid{1}, i + 1); });
    CAPTURE(text);
    CHECK(contains(text, "kernel 'of_1028', whose arguments take 1088 bytes"));
    CHECK(contains(text, "kernarg slabs of 1024 bytes"));
    CHECK(contains(text, "kernarg_slab_bytes"));
    const auto refused = a.try_launch(large, Grid{1}, i + 1);
    REQUIRE(code_of(refused) == "argument");
    CHECK(refused.error().call() == "Stream::try_launch");
  }
  a.synchronize();
  for (uint32_t i = 0; i < 20; i += 2) {
    CHECK(devices.log.ended(i) != 0);
    CHECK(devices.log.ended(i + 1) == 0);
  }
}

TEST_CASE("a launch that finds no room is refused as a value, at once, and launches nothing",
          "[stream][short]") {
  StreamDevicesOptions options = tiny(1, 2);
  options.device.paused = true;
  StreamDevices devices(options);
  Stream stream(devices);
  const auto kernel = number_kernel();
  const auto begin = std::chrono::steady_clock::now();
  uint32_t launched = 0;
  while (stream.try_launch(kernel, Grid{1}, launched)) ++launched;
  const auto refused = stream.try_launch(kernel, Grid{1}, launched);
  const std::string shortage = code_of(refused), text = refused.error().what();
  CAPTURE(launched, shortage, text);
  CHECK_FALSE(contains(text, "deadline"));  // it did not wait
  CHECK((shortage == "ring" || shortage == "kernargs" || shortage == "timeline"));
  CHECK(std::chrono::steady_clock::now() - begin < kHang / 2);
  CHECK(launched >= 16);
  devices.resume();
  REQUIRE(eventually([&] { return stream.try_synchronize(soon()).has_value(); }));
  for (uint32_t i = 1; i < launched; ++i) CHECK(devices.log.is_before(i - 1, i));
  CHECK(devices.log.began(launched) == 0);
  CHECK(code_of(stream.try_launch(kernel, Grid{0}, 0u)) == "argument");
  REQUIRE(stream.try_launch(kernel, Grid{1}, launched));
  REQUIRE(stream.try_synchronize(soon()));
  CHECK(devices.log.ended(launched) != 0);
}

TEST_CASE("a deadline also bounds a synchronization that finds no room for its marker",
          "[stream][short]") {
  StreamDevicesOptions options = tiny(1, 2);
  options.device.paused = true;
  const auto kernel = number_kernel();
  SECTION("which ends before patience") {
    StreamDevices devices(options);
    Stream stream(devices);
    uint32_t launched = 0;
    while (stream.try_launch(kernel, Grid{1}, launched)) ++launched;
    const auto begin = std::chrono::steady_clock::now();
    CHECK_FALSE(stream.ready());  // never waits
    CHECK(code_of(stream.try_synchronize(Deadline::now())) == "deadline");
    CHECK(code_of(stream.try_synchronize(Deadline::after(20ms))) == "deadline");
    CHECK_FALSE(stream.synchronize(Deadline::after(20ms)));
    CHECK(std::chrono::steady_clock::now() - begin < kHang / 2);
    devices.resume();
    CHECK(stream.try_synchronize(soon()));
    CHECK(devices.log.ended(launched - 1) != 0);
  }
  SECTION("or after it") {
    options.streams.patience = 20ms;
    StreamDevices devices(options);
    Stream stream(devices);
    uint32_t launched = 0;
    while (stream.try_launch(kernel, Grid{1}, launched)) ++launched;
    const auto refused = stream.try_synchronize(soon());
    CHECK(code_of(refused) == "timeline");
    devices.resume();
    CHECK(stream.try_synchronize(soon()));
  }
}

TEST_CASE("a launch that finds no room to leave its queue is refused at once", "[stream][short]") {
  StreamDevicesOptions options = tiny(1, 2);
  options.streams.own_queues = 2;
  options.streams.legacy_default = true;
  options.device.paused = true;
  SignalDouble gate(1);  // outlives the queue that waits for it
  StreamDevices devices(options);
  Stream stream(devices);
  const auto kernel = number_kernel();
  uint32_t launched = 0;
  while (stream.try_launch(kernel, Grid{1}, launched)) ++launched;
  // The next launch must follow the gate, so the stream needs a queue of its own. That one has to
  // wait for an event of the full queue.
  devices.streams().default_stream().after(gate.handle());
  const auto begin = std::chrono::steady_clock::now();
  CHECK(code_of(stream.try_launch(kernel, Grid{1}, launched)) == "timeline");
  CHECK(std::chrono::steady_clock::now() - begin < kHang / 2);
  devices.resume();
  REQUIRE(eventually([&] {
    const bool is_launched = stream.try_launch(kernel, Grid{1}, launched).has_value();
    devices.resume();  // also a device that this launch made
    return is_launched;
  }));
  CHECK(devices.log.began(launched) == 0);
  gate.set(0);
  REQUIRE(stream.try_synchronize(soon()));
  CHECK(devices.log.is_before(launched - 1, launched));
}
