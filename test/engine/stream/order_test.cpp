// Ordering of streams without events: the default stream, and waits for the host.
#include <random>
#include <string>
#include <thread>

#include <uptempo/runtime/counters.hpp>
#include "test/engine/stream/stream_devices.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"

using namespace uptempo;
using namespace uptempo::test;
using namespace std::chrono_literals;

namespace {

StreamDevicesOptions legacy(uint32_t queues = 4) {
  StreamDevicesOptions options;
  options.streams.hardware_queues = queues;
  options.streams.legacy_default = true;
  return options;
}

}  // namespace

TEST_CASE("the legacy default stream is ordered after and before the work of blocking streams",
          "[stream][default]") {
  for (const uint32_t queues : {1u, 2u, 4u}) {
    for (const uint64_t seed : {1u, 2u}) {
      StreamDevicesOptions options = legacy(queues);
      options.device = {.seed = seed, .barriers_step_aside = seed == 2};
      StreamDevices devices(options);
      Stream& default_stream = devices.streams().default_stream();
      std::deque<Stream> streams;
      for (int i = 0; i < 6; ++i) streams.emplace_back(devices, StreamOptions{.blocking = i != 0});
      std::mt19937_64 random(seed);
      std::vector<std::optional<size_t>> stream_of;  // no stream: the default stream
      for (uint32_t number = 0; number < 2000; ++number) {
        if (random() % 5 == 0) {
          launch(default_stream, number);
          stream_of.emplace_back();
        } else {
          const size_t which = random() % streams.size();
          launch(streams[which], number);
          stream_of.emplace_back(which);
          if (random() % 16 == 0) streams[which].synchronize();
        }
      }
      default_stream.synchronize();
      for (uint32_t number = 0; number < 2000; ++number)
        // synchronize() really waits
        if (stream_of[number] != 0) REQUIRE(devices.log.ended(number) != 0);
      devices.streams().synchronize();
      std::optional<uint32_t> last_default;
      std::vector<uint32_t> since;  // on blocking streams
      for (uint32_t number = 0; number < 2000; ++number) {
        CAPTURE(number, queues, seed);
        if (stream_of[number] == 0) continue;  // does not block
        if (last_default) REQUIRE(devices.log.is_before(*last_default, number));
        if (stream_of[number]) {
          since.push_back(number);
          continue;
        }
        for (const uint32_t before : since) REQUIRE(devices.log.is_before(before, number));
        since.clear();
        last_default = number;
      }
    }
  }
}

TEST_CASE("an independent default stream is a stream like any other", "[stream][default]") {
  StreamDevicesOptions options;
  options.device.paused = true;
  StreamDevices devices(options);
  Stream& default_stream = devices.streams().default_stream();
  Stream other(devices);
  launch(other, 0);
  launch(default_stream, 1);
  devices.device_of(default_stream).resume();
  default_stream.synchronize();
  CHECK(devices.log.ended(1) != 0);
  CHECK(devices.log.ended(0) == 0);
  devices.resume();
}

TEST_CASE("idle streams add no packets to launches on the default stream", "[stream][default]") {
  std::optional<Counters> alone;
  for (const size_t idle : {0u, 1u, 8u, 32u, 64u}) {
    StreamDevicesOptions options = legacy();
    options.streams.queue.packets = options.device.ring_size = 2048;
    options.streams.queue.kernarg_bytes = 1 << 20;
    StreamDevices devices(options);
    Stream& default_stream = devices.streams().default_stream();
    std::deque<Stream> streams;
    for (size_t i = 0; i < idle; ++i)
      launch(streams.emplace_back(devices), static_cast<uint32_t>(i));
    devices.streams().synchronize();
    launch(default_stream, 999);  // after the work of the streams, which is complete
    devices.pause();
    const Counters before = Counters::now();
    for (uint32_t i = 0; i < 1000; ++i) launch(default_stream, 1000 + i);
    const Counters spent = Counters::now() - before;
    devices.resume();
    default_stream.synchronize();
    CAPTURE(idle);
    CHECK(spent.packets == 1000);
    CHECK(spent.markers == 0);
    CHECK(spent.wait_packets == 0);
    if (!alone) alone = spent;
    CHECK(spent.barrier_bits == alone->barrier_bits);
    CHECK(spent.completion_signals == alone->completion_signals);
    CHECK(spent.doorbells == 1000);
  }
}

TEST_CASE("busy streams cost the default stream one marker per hardware queue, and one packet",
          "[stream][default]") {
  StreamDevicesOptions options = legacy(4);
  options.device.paused = true;
  StreamDevices devices(options);
  Stream& default_stream = devices.streams().default_stream();
  std::deque<Stream> streams;
  for (uint32_t i = 0; i < 32; ++i) launch(streams.emplace_back(devices), i);
  const Counters before = Counters::now();
  launch(default_stream, 100);
  const Counters spent = Counters::now() - before;
  CHECK(spent.markers <= 3);
  CHECK(spent.wait_packets == 1);
  CHECK(spent.packets == spent.markers + 2);
  devices.resume();
  default_stream.synchronize();
  for (uint32_t i = 0; i < 32; ++i) CHECK(devices.log.is_before(i, 100));
}

TEST_CASE("a stream that waits for the host blocks no other stream", "[stream][gate]") {
  StreamDevicesOptions options;
  options.streams.hardware_queues = 1;
  StreamDevices devices(options);
  SignalDouble gate(1);
  Stream a(devices), b(devices);
  REQUIRE(hardware_queue(a) == hardware_queue(b));
  launch(a, 0);
  a.after(gate.handle());
  launch(a, 1);
  const Event behind = a.record();
  CHECK(has_own_queue(a));
  for (uint32_t i = 10; i < 50; ++i) launch(b, i);
  b.synchronize();
  CHECK(devices.log.ended(49) != 0);
  CHECK(devices.log.began(1) == 0);
  CHECK_FALSE(a.ready());
  CHECK_FALSE(behind.wait(Deadline::after(5ms)));
  gate.set(0);
  a.synchronize();
  CHECK(behind.ready());
  CHECK(devices.log.is_before(0, 1));
  launch(a, 2);  // back among the others
  CHECK_FALSE(has_own_queue(a));
  CHECK(hardware_queue(a) == hardware_queue(b));
  a.synchronize();
  CHECK(devices.log.is_before(1, 2));
}

TEST_CASE("a stream that waits for an event after such a wait blocks no other stream",
          "[stream][gate]") {
  StreamDevicesOptions options;
  options.streams.hardware_queues = 1;
  StreamDevices devices(options);
  SignalDouble gate(1);
  Stream a(devices), b(devices), c(devices);
  const Event before = a.record();
  a.after(gate.handle());
  launch(a, 0);
  b.after(a.record());
  launch(b, 1);
  CHECK(has_own_queue(b));
  Stream d(devices);
  d.after(b.record());
  launch(d, 2);
  CHECK(has_own_queue(d));
  c.after(before);
  launch(c, 3);
  CHECK_FALSE(has_own_queue(c));
  c.synchronize();
  CHECK(devices.log.began(1) == 0);
  gate.set(0);
  d.synchronize();
  CHECK(devices.log.is_before(0, 1));
  CHECK(devices.log.is_before(1, 2));
}

TEST_CASE(
    "a wait for the host that exceeds the number of hardware queues is refused and changes nothing",
    "[stream][gate]") {
  StreamDevicesOptions options;
  options.streams.own_queues = 2;
  StreamDevices devices(options);
  SignalDouble gate(1);
  std::deque<Stream> held;
  for (int i = 0; i < 2; ++i) held.emplace_back(devices).after(gate.handle());
  Stream refused(devices);
  launch(refused, 0);
  const std::string text = error_of<Error>([&] { refused.after(gate.handle()); });
  CAPTURE(text);
  CHECK(contains(text, "all 2 queues for streams that wait for the host are in use"));
  launch(refused, 1);
  refused.synchronize();
  CHECK(devices.log.is_before(0, 1));
  gate.set(0);
  for (Stream& stream : held) stream.synchronize();
  held.pop_front();  // its queue is free again
  SignalDouble another(1);
  refused.after(another.handle());
  launch(refused, 2);
  CHECK(has_own_queue(refused));
  another.set(0);
  refused.synchronize();
}

TEST_CASE("a stream waits for a signal that another stream's work sets", "[stream][gate]") {
  for (const uint32_t queues : {1u, 2u, 4u}) {
    for (const uint64_t seed : {1u, 2u}) {
      CAPTURE(queues, seed);
      StreamDevicesOptions options;
      options.streams.hardware_queues = queues;
      options.device = {.seed = seed, .barriers_step_aside = seed == 2};
      StreamDevices devices(options);
      std::deque<Stream> streams;
      for (int i = 0; i < 4; ++i) streams.emplace_back(devices);
      std::deque<SignalDouble> signals;
      std::mt19937 random(static_cast<uint32_t>(seed));
      constexpr uint32_t kLinks = 300;
      size_t last = 0;
      for (uint32_t number = 0; number < kLinks; ++number) {
        const size_t next = random() % streams.size();
        if (number != 0) {
          const hsa_signal_t signal = signals.emplace_back(1).handle();
          streams[last].signal(signal);
          streams[next].after(signal, SignalSetBy::device);
        }
        launch(streams[next], number);
        last = next;
      }
      devices.streams().synchronize();
      for (uint32_t number = 1; number < kLinks; ++number)
        REQUIRE(devices.log.is_before(number - 1, number));
      for (const SignalDouble& signal : signals) CHECK(aql::load_acquire(signal.handle()) == 0);
      CHECK(devices.streams().hardware_queues() == queues);
    }
  }
}

TEST_CASE("a signal of a stream without work is set, and the null signal is refused",
          "[stream][gate]") {
  StreamDevices devices;
  Stream stream(devices);
  SignalDouble signal(0);
  stream.signal(signal.handle());
  stream.synchronize();
  CHECK(aql::load_acquire(signal.handle()) == -1);
  CHECK(error_of([&] { stream.signal(hsa_signal_t{0}); }).starts_with("Stream::signal"));
}

TEST_CASE("a wait for a signal that is already zero costs nothing", "[stream][gate]") {
  StreamDevices devices;
  const SignalDouble open_gate(0);
  Stream a(devices);
  a.after(open_gate.handle());
  CHECK_FALSE(has_own_queue(a));
}

TEST_CASE(
    "a stream that waits for the host may be destroyed, and its work runs when the host signals",
    "[stream][gate]") {
  StreamDevices devices;
  SignalDouble gate(1);
  Event event;
  {
    Stream a(devices);
    a.after(gate.handle());
    launch(a, 0);
    event = a.record();
  }
  Stream other(devices);
  launch(other, 1);
  other.synchronize();
  CHECK_FALSE(event.ready());
  gate.set(0);
  event.wait();
  CHECK(devices.log.ended(0) != 0);
}

TEST_CASE("the legacy default stream after a wait for the host takes a queue of its own",
          "[stream][gate][default]") {
  StreamDevices devices(legacy(1));
  SignalDouble gate(1);
  Stream a(devices), free(devices, {.blocking = false});
  Stream& default_stream = devices.streams().default_stream();
  a.after(gate.handle());
  launch(a, 0);
  launch(default_stream, 1);
  CHECK(has_own_queue(default_stream));
  launch(free, 2);
  free.synchronize();
  CHECK(devices.log.ended(2) != 0);
  CHECK(devices.log.began(1) == 0);
  gate.set(0);
  default_stream.synchronize();
  CHECK(devices.log.is_before(0, 1));
}

TEST_CASE("a call that throws keeps the order that the default stream requires",
          "[stream][default]") {
  StreamDevicesOptions options = legacy(2);
  options.streams.own_queues = 1;
  StreamDevices devices(options);
  SignalDouble gate(1);
  Stream a(devices);
  Stream& default_stream = devices.streams().default_stream();
  SECTION("of blocking streams") {
    a.after(gate.handle());
    launch(a, 0);
    CHECK_THROWS_AS(launch(default_stream, 1), Error);  // it would also need a queue of its own
    CHECK_THROWS_AS(launch(default_stream, 1), Error);
    CHECK(devices.log.began(1) == 0);
    gate.set(0);
    a.synchronize();
    launch(default_stream, 2);
    default_stream.synchronize();
    CHECK(devices.log.is_before(0, 2));
  }
  SECTION("of the default stream") {
    default_stream.after(gate.handle());
    launch(default_stream, 0);
    CHECK_THROWS_AS(launch(a, 1), Error);
    CHECK_THROWS_AS(launch(a, 1), Error);
    CHECK(devices.log.began(1) == 0);
    gate.set(0);
    default_stream.synchronize();
    launch(a, 2);
    a.synchronize();
    CHECK(devices.log.is_before(0, 2));
  }
}

TEST_CASE("in one hardware queue the default stream and the others cost each other a barrier bit",
          "[stream][default]") {
  StreamDevicesOptions options = legacy(1);
  options.device.paused = true;
  StreamDevices devices(options);
  Stream a(devices);
  Stream& default_stream = devices.streams().default_stream();
  const Counters before = Counters::now();
  for (uint32_t i = 0; i < 6; ++i) launch(i % 2 == 0 ? default_stream : a, i);
  const Counters spent = Counters::now() - before;
  CHECK(spent.packets == 6);
  CHECK(spent.barrier_bits == 5);
  devices.resume();
  devices.streams().synchronize();
  for (uint32_t i = 1; i < 6; ++i) CHECK(devices.log.is_before(i - 1, i));
}

TEST_CASE("a wait for a caller's signal is added to the stream completely or not at all",
          "[stream][gate]") {
  StreamDevicesOptions options;
  options.streams.queue.publications = 2;
  options.streams.patience = std::chrono::milliseconds(20);
  StreamDevices devices(options);
  SignalDouble gate(1);
  Stream a(devices);
  a.after(gate.handle());
  a.after(gate.handle());
  const uint64_t written = devices.ring_of(a).size();
  CHECK_THROWS_AS(a.after(gate.handle()), Error);  // no marker is left
  CHECK(devices.ring_of(a).size() == written);
  gate.set(0);
  a.synchronize();
}

TEST_CASE("a stream that waits for the host and has a full queue is destroyed without a wait",
          "[stream][gate]") {
  StreamDevicesOptions options;
  options.streams.own_queues = 1;
  options.streams.queue.publications = 2;
  StreamDevices devices(options);
  SignalDouble gate(1);
  const auto begin = std::chrono::steady_clock::now();
  {
    Stream a(devices);
    a.after(gate.handle());
    launch(a, 0);
    a.record();
    launch(a, 1);
  }
  CHECK(std::chrono::steady_clock::now() - begin < kHang / 2);
  gate.set(0);
  SignalDouble another(1);
  Stream b(devices);
  for (const Deadline patience = soon(); !has_own_queue(b) && !patience.passed();) {
    try {
      b.after(another.handle());
    } catch (const Error&) {  // a's queue is still busy
      std::this_thread::sleep_for(1ms);
    }
  }
  CHECK(has_own_queue(b));  // a's queue is free again
  another.set(0);
  b.synchronize();
  CHECK(devices.log.is_before(0, 1));
}
