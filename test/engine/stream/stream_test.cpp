// Streams over doubles: order, barrier bits, events, waits, and their cost in packets.
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
using aql::Barrier;
using aql::FenceScope;

namespace {

// "D" for a dispatch, "A" for a barrier-AND with dependencies, "M" for a marker; "|" follows a
// packet with barrier bit.
std::string text_of(const std::vector<aql::Packet64>& packets) {
  std::string text;
  for (const aql::Packet64& packet : packets) {
    const bool is_dispatch = aql::packet_type(packet.header()) == aql::PacketType::kernel_dispatch;
    const bool has_signal =
        aql::packet_as<hsa_barrier_and_packet_t>(packet).completion_signal.handle != 0;
    text += is_dispatch ? 'D' : has_signal ? 'M' : 'A';
    if (aql::header_flags(packet.header()).barrier == Barrier::on) text += '|';
  }
  return text;
}

unsigned dependencies(const aql::Packet64& packet) {
  const auto barrier = aql::packet_as<hsa_barrier_and_packet_t>(packet);
  return static_cast<unsigned>(
      std::ranges::count_if(barrier.dep_signal, [](hsa_signal_t s) { return s.handle != 0; }));
}

}  // namespace

TEST_CASE("a packet carries its barrier bit only after an unfinished packet of its own stream",
          "[stream]") {
  StreamDevices devices(paused(1));
  Stream a(devices), b(devices), c(devices);
  launch(a, 0);
  launch(b, 1);
  CHECK(text_of(devices.ring(0)) == "DD");
  launch(a, 2);  // after 0
  CHECK(text_of(devices.ring(0)) == "DDD|");
  launch(b, 3);  // after 1, which the barrier bit of 2 covers
  launch(c, 4);
  CHECK(text_of(devices.ring(0)) == "DDD|DD");
  launch(a, 5);  // after 2, which has the last barrier bit and covers only earlier packets
  CHECK(text_of(devices.ring(0)) == "DDD|DDD|");
  launch(c, 6);
  CHECK(text_of(devices.ring(0)) == "DDD|DDD|D");
  devices.resume();
  devices.streams().synchronize();
}

TEST_CASE("a stream whose work is known to be complete needs no barrier bit", "[stream]") {
  StreamDevices devices(paused(1));
  Stream a(devices);
  launch(a, 0);
  devices.resume();
  a.synchronize();
  devices.pause();
  launch(a, 1);
  CHECK(text_of(devices.ring(0)) == "D");
  devices.resume();
}

TEST_CASE(
    "after a wait by the host the first launch acquires at system scope, later ones at agent scope",
    "[stream]") {
  StreamDevices devices(paused(1));
  Stream a(devices);
  launch(a, 0);
  launch(a, 1);
  a.host_wrote();
  launch(a, 2);
  const auto packets = devices.ring(0);
  REQUIRE(packets.size() == 3);
  CHECK(aql::header_flags(packets[0].header()) ==
        aql::HeaderFlags{Barrier::off, FenceScope::system, FenceScope::agent});
  CHECK(aql::header_flags(packets[1].header()) ==
        aql::HeaderFlags{Barrier::on, FenceScope::agent, FenceScope::agent});
  CHECK(aql::header_flags(packets[2].header()) ==
        aql::HeaderFlags{Barrier::on, FenceScope::system, FenceScope::agent});
  a.record();
  CHECK(aql::header_flags(devices.ring(0)[3].header()) ==
        aql::HeaderFlags{Barrier::on, FenceScope::none, FenceScope::system});
  devices.resume();
}

TEST_CASE(
    "recording costs a marker where there is work that no marker covers, and nothing otherwise",
    "[stream]") {
  StreamDevices devices(paused(1));
  Stream a(devices), idle(devices);
  const Spent spent;
  CHECK(idle.record().ready());
  CHECK(spent().packets == 0);
  launch(a, 0);
  const Event first = a.record();
  CHECK_FALSE(first.ready());
  CHECK(spent().markers == 1);
  CHECK(a.record().completion() == first.completion());
  CHECK(a.record().completion() == first.completion());
  CHECK(spent().packets == 2);
  CHECK(spent().markers == 1);
  CHECK(spent().markers_elided == 3);
  devices.resume();
  first.wait();
  CHECK(a.record().ready());
  CHECK(spent().packets == 2);
}

TEST_CASE("one marker serves all streams whose work it covers", "[stream]") {
  StreamDevices devices(paused(1));
  Stream a(devices), b(devices);
  launch(a, 0);
  launch(b, 1);
  const Event of_b = b.record();
  CHECK(a.record().completion() == of_b.completion());
  CHECK(text_of(devices.ring(0)) == "DDM|");
  devices.resume();
}

TEST_CASE(
    "a wait costs a packet only for unfinished work of another queue that has no wait there yet",
    "[stream]") {
  StreamDevices devices(paused(2));
  Stream a(devices), b(devices), c(devices);  // c shares a's queue
  REQUIRE(hardware_queue(c) == hardware_queue(a));
  const Spent spent;
  b.after(Event{});
  launch(b, 0);
  CHECK(spent().packets == 1);
  CHECK(spent().waits_elided == 1);

  launch(a, 1);
  const Event first = a.record();
  c.after(first);
  launch(c, 2);
  CHECK(text_of(devices.ring_of(a)) == "DM|D");
  CHECK(spent().wait_packets == 0);
  CHECK(spent().waits_elided == 2);

  b.after(first);
  CHECK(text_of(devices.ring_of(b)) == "D");  // not before there is work that must wait
  launch(b, 3);
  CHECK(text_of(devices.ring_of(b)) == "DAD|");
  b.after(first);
  launch(b, 4);
  CHECK(text_of(devices.ring_of(b)) == "DAD|D|");
  CHECK(spent().wait_packets == 1);
  CHECK(spent().waits_elided == 3);

  devices.resume();
  devices.streams().synchronize();
  devices.pause();
  b.after(first);
  launch(b, 5);
  CHECK(text_of(devices.ring_of(b)).back() == 'D');
  CHECK(spent().wait_packets == 1);
  devices.resume();
  devices.streams().synchronize();
  CHECK(devices.log.is_before(1, 3));
  CHECK(devices.log.is_before(1, 2));
}

TEST_CASE("a stream uses the wait that another stream put into its queue, and is ordered after it",
          "[stream]") {
  StreamDevices devices(paused(2));
  Stream a(devices), b(devices), c(devices), d(devices);
  REQUIRE(hardware_queue(d) == hardware_queue(b));
  launch(a, 0);
  const Event event = a.record();
  b.after(event);
  launch(b, 1);
  CHECK(text_of(devices.ring_of(b)) == "AD|");
  d.after(event);
  launch(d, 2);  // the barrier bit of 1 covers the wait
  CHECK(text_of(devices.ring_of(b)) == "AD|D");
  devices.resume();
  devices.streams().synchronize();
  CHECK(devices.log.is_before(0, 1));
  CHECK(devices.log.is_before(0, 2));

  devices.pause();
  launch(a, 3);
  const Event later = a.record();
  b.after(later);
  b.record();  // puts the wait into the queue, and a marker after it
  d.after(later);
  launch(d, 4);
  CHECK(text_of(devices.ring_of(b)) == "AM|D");
  devices.resume();
  devices.streams().synchronize();
  CHECK(devices.log.is_before(3, 4));
}

TEST_CASE("a wait in the same queue for a launch that carries a signal comes after that launch",
          "[stream]") {
  StreamDevicesOptions options = paused(1);
  options.streams.epoch_packets = 2;
  StreamDevices devices(options);
  Stream a(devices), b(devices);
  launch(a, 0);
  launch(b, 1);  // closes the epoch that also contains 0
  a.after(b.record());
  launch(a, 2);
  CHECK(text_of(devices.ring(0)) == "DD|D|");
  devices.resume();
  devices.streams().synchronize();
  CHECK(devices.log.is_before(1, 2));
}

TEST_CASE("an event covers all that its stream waits for, whichever wait came last", "[stream]") {
  StreamDevices devices(paused(2));
  Stream a(devices), b(devices), c(devices), d(devices);
  REQUIRE(hardware_queue(d) == hardware_queue(b));
  launch(a, 0);
  const Event of_a = a.record();
  b.after(of_a);
  launch(b, 1);
  b.record();
  launch(b, 2);
  const Event of_b = b.record();
  d.after(of_b);
  d.after(of_a);  // already in the queue, in an epoch before that of of_b
  CHECK(d.record().completion().value() >= of_b.completion().value());
  devices.resume();
  devices.streams().synchronize();
}

TEST_CASE("a launch after any wait of the host for the stream's work acquires at system scope",
          "[stream]") {
  StreamDevices devices;
  Stream a(devices);
  const auto acquire_of_launch = [&] {
    devices.pause();
    launch(a, 0);
    const FenceScope scope = aql::header_flags(devices.ring(0).back().header()).acquire;
    devices.resume();
    return scope;
  };
  CHECK(acquire_of_launch() == FenceScope::system);
  a.record().wait();
  CHECK(acquire_of_launch() == FenceScope::system);
  devices.streams().synchronize();
  CHECK(acquire_of_launch() == FenceScope::system);
  CHECK(acquire_of_launch() == FenceScope::agent);
}

TEST_CASE("a stream that waits for an event acquires what it has not acquired itself", "[stream]") {
  StreamDevices devices(paused(2));
  Stream a(devices), b(devices);
  launch(a, 0);
  launch(b, 1);
  const auto acquire_behind = [&](const Event& event) {
    b.after(event);
    launch(b, 2);
    return aql::header_flags(devices.ring_of(b).back().header()).acquire;
  };
  CHECK(acquire_behind(a.record()) == FenceScope::agent);
  launch(a, 3);
  a.host_wrote();
  const Event passed_on = a.record();
  CHECK(acquire_behind(passed_on) == FenceScope::system);
  b.after(passed_on);  // implied by the first wait
  launch(b, 4);
  CHECK(aql::header_flags(devices.ring_of(b).back().header()).acquire == FenceScope::system);
  launch(a, 5);  // acquires
  CHECK(acquire_behind(a.record()) == FenceScope::agent);
  devices.resume();
  devices.streams().synchronize();
}

TEST_CASE("up to five events are one packet, six are two", "[stream]") {
  StreamDevices devices(paused(8));
  std::deque<Stream> others;
  Stream waiter(devices);
  for (uint32_t i = 0; i < 6; ++i) launch(others.emplace_back(devices), i);
  for (uint32_t i = 0; i < 5; ++i) waiter.after(others[i].record());
  launch(waiter, 10);
  REQUIRE(text_of(devices.ring_of(waiter)) == "AD|");
  CHECK(dependencies(devices.ring_of(waiter)[0]) == 5);
  for (uint32_t i = 0; i < 6; ++i) {
    launch(others[i], 20 + i);
    waiter.after(others[i].record());
  }
  launch(waiter, 11);
  REQUIRE(text_of(devices.ring_of(waiter)) == "AD|AAD|");
  CHECK(dependencies(devices.ring_of(waiter)[2]) == 5);
  CHECK(dependencies(devices.ring_of(waiter)[3]) == 1);
  devices.resume();
  devices.streams().synchronize();
  for (uint32_t i = 0; i < 6; ++i) CHECK(devices.log.is_before(20 + i, 11));
}

TEST_CASE("a wait for several events of one queue waits for the latest", "[stream]") {
  StreamDevices devices(paused(2));
  Stream a(devices), b(devices);
  for (uint32_t i = 0; i < 4; ++i) {
    launch(a, i);
    b.after(a.record());
  }
  launch(b, 10);
  REQUIRE(text_of(devices.ring_of(b)) == "AD|");
  CHECK(dependencies(devices.ring_of(b)[0]) == 1);
  devices.resume();
  devices.streams().synchronize();
  CHECK(devices.log.is_before(3, 10));
}

TEST_CASE("an event of a stream that only waits covers its waits", "[stream]") {
  StreamDevices devices(paused(2));
  Stream a(devices), b(devices);
  launch(a, 0);
  const Event event = a.record();
  b.after(event);
  CHECK(b.record().completion() == event.completion());
  CHECK_FALSE(b.ready());
  CHECK(devices.ring_of(b).empty());
  devices.resume();
  b.synchronize();
  CHECK(event.ready());
}

TEST_CASE("a signal that packets wait for is not reused before they have read it", "[stream]") {
  StreamDevicesOptions options = paused(2);
  options.streams.queue.publications = 4;
  StreamDevices devices(options);
  Stream a(devices), b(devices);
  launch(a, 0);
  b.after(a.record());
  launch(b, 1);
  const hsa_signal_t lent =
      aql::packet_as<hsa_barrier_and_packet_t>(devices.ring_of(b)[0]).dep_signal[0];
  // a submits many markers while b's queue is paused.
  devices.device_of(a).resume();
  for (uint32_t i = 2; i < 50; ++i) {
    launch(a, i);
    a.record().wait();
    REQUIRE(aql::load_acquire(lent) == 0);
  }
  devices.resume();
  devices.streams().synchronize();
  CHECK(devices.log.is_before(0, 1));
  // Now the signal may be reused, when all are needed.
  b.synchronize();
  devices.pause();
  bool used = false;
  for (uint32_t i = 50; i < 54; ++i) {
    launch(a, i);
    a.record();
    used = used || aql::load_acquire(lent) != 0;
  }
  devices.resume();
  CHECK(used);
}

TEST_CASE("signals lent to a queue that is now idle return when they are short", "[stream]") {
  StreamDevicesOptions options;
  options.streams.hardware_queues = 2;
  options.streams.queue.publications = 4;
  StreamDevices devices(options);
  Stream a(devices), b(devices);
  for (uint32_t i = 0; i < 400; ++i) {
    launch(a, 2 * i);
    b.after(a.record());
    launch(b, 2 * i + 1);
  }
  devices.streams().synchronize();
  for (uint32_t i = 0; i < 400; ++i) REQUIRE(devices.log.is_before(2 * i, 2 * i + 1));
}

TEST_CASE("streams that share queues each keep their order, whatever overlaps",
          "[stream][stress]") {
  for (const bool aside : {false, true}) {
    for (const uint64_t seed : {1u, 2u, 3u}) {
      StreamDevicesOptions options;
      options.streams.hardware_queues = 2;
      options.device = {.seed = seed,
                        .early_read_index = seed == 2,
                        .read_index_step = seed == 3 ? 8u : 1u,
                        .barriers_step_aside = aside};
      StreamDevices devices(options);
      std::mt19937_64 random(seed);
      std::deque<Stream> streams;
      for (int i = 0; i < 7; ++i) streams.emplace_back(devices);
      // The kernels that each kernel must follow: the last kernels of the streams that its own
      // stream has waited for.
      std::vector<std::vector<uint32_t>> after;
      std::vector<std::vector<uint32_t>> known(streams.size());
      struct Recorded {
        Event event;
        std::vector<uint32_t> covers;
      };
      std::vector<Recorded> events;
      for (uint32_t step = 0; step < 4000; ++step) {
        const size_t which = random() % streams.size();
        Stream& stream = streams[which];
        switch (random() % 8) {
          case 0:
            events.push_back({stream.record(), known[which]});
            break;
          case 1:
            if (!events.empty()) {
              const Recorded& event =
                  events[events.size() - 1 - random() % std::min<size_t>(events.size(), 8)];
              stream.after(event.event);
              known[which].insert(known[which].end(), event.covers.begin(), event.covers.end());
            }
            break;
          case 2:
            if (random() % 16 == 0) {
              stream.synchronize();
              for (const uint32_t number : known[which]) REQUIRE(devices.log.ended(number) != 0);
            }
            break;
          default:
            launch(stream, static_cast<uint32_t>(after.size()));
            known[which] = {
                static_cast<uint32_t>((after.push_back(known[which]), after.size() - 1))};
        }
      }
      devices.streams().synchronize();
      bool overlapped = false;
      for (uint32_t number = 0; number < after.size(); ++number) {
        CAPTURE(number, seed, aside);
        REQUIRE(devices.log.ended(number) != 0);
        for (const uint32_t before : after[number]) {
          CAPTURE(before);
          REQUIRE(devices.log.is_before(before, number));
        }
        if (number != 0) overlapped = overlapped || devices.log.overlap(number - 1, number);
      }
      CHECK(overlapped);
    }
  }
}

TEST_CASE("a stream with nothing unfinished moves from a busy queue to an idle one", "[stream]") {
  StreamDevices devices(paused(2));
  Stream a(devices), b(devices), c(devices);
  REQUIRE(hardware_queue(a) == hardware_queue(c));
  launch(a, 0);
  launch(c, 1);
  CHECK(hardware_queue(c) == hardware_queue(b));
  launch(b, 2);
  launch(c, 3);  // has unfinished work where it is
  CHECK(hardware_queue(c) == hardware_queue(b));
  devices.resume();
}

TEST_CASE("no more hardware queues are created than requested, each when a stream first needs it",
          "[stream]") {
  StreamDevices devices(paused(3));
  CHECK(devices.streams().hardware_queues() == 0);
  std::deque<Stream> streams;
  for (unsigned i = 1; i <= 64; ++i) {
    streams.emplace_back(devices);
    CHECK(devices.streams().hardware_queues() == std::min(i, 3u));
  }
  Stream urgent(devices, {.priority = StreamPriority::high});
  CHECK(devices.streams().hardware_queues() == 4);
  Stream masked(devices, {.cu_mask = {0xff}});
  CHECK(devices.streams().hardware_queues() == 5);
  for (const Stream& stream : streams) {
    CHECK(hardware_queue(stream) != hardware_queue(urgent));
    CHECK(hardware_queue(stream) != hardware_queue(masked));
  }
}

TEST_CASE("kernarg memory and slots are reclaimed without a wait", "[stream]") {
  StreamDevices devices;
  Stream a(devices);
  const Spent spent;
  for (uint32_t i = 0; i < 20000; ++i) launch(a, i);
  CHECK(spent().markers == 0);
  CHECK(spent().packets == 20000);
  a.synchronize();
  for (uint32_t i = 1; i < 20000; ++i) REQUIRE(devices.log.is_before(i - 1, i));
}

TEST_CASE("a full ring is waited for until patience ends, then the error names it", "[stream]") {
  StreamDevicesOptions options = paused(1);
  options.streams.patience = 20ms;
  StreamDevices devices(options);
  Stream a(devices);
  std::string text;
  uint32_t launched = 0;
  text = error_of<Error>([&] {
    for (;; ++launched) launch(a, launched);
  });
  CAPTURE(text);
  CHECK(launched == 64);
  CHECK(contains(text, "slot in the ring"));
  CHECK(contains(text, "64 slots"));
  devices.resume();
  a.synchronize();
  for (uint32_t i = 1; i < 64; ++i) CHECK(devices.log.is_before(i - 1, i));
  launch(a, 100);  // nothing was lost
  a.synchronize();
  CHECK(devices.log.ended(100) != 0);
}

TEST_CASE("a stream is destroyed with work in flight, which continues and blocks no other",
          "[stream]") {
  StreamDevices devices(paused(1));
  Stream other(devices);
  Event event;
  {
    Stream a(devices);
    launch(a, 0);
    launch(a, 1);
    event = a.record();
  }
  launch(other, 2);
  CHECK(text_of(devices.ring(0)) == "DD|M|D");
  devices.resume();
  other.synchronize();
  event.wait();
  CHECK(devices.log.is_before(0, 1));
}

TEST_CASE("the queues exist until the last stream is destroyed, and finish their work",
          "[stream]") {
  StreamDevices devices;
  {
    Stream a(devices);
    devices.destroy_streams();
    for (uint32_t i = 0; i < 100; ++i) launch(a, i);
  }
  for (uint32_t i = 0; i < 100; ++i) CHECK(devices.log.ended(i) != 0);
}

TEST_CASE("hardware queues that hang are given up after one common time limit", "[stream]") {
  // so many that a slow machine stays below the least time of waiting for one after another
  constexpr uint32_t queues = 32;
  StreamDevicesOptions options = paused(queues);
  options.streams.queue.drain_timeout = 500ms;
  StreamDevices devices(options);
  std::vector<Event> lost;
  {
    std::deque<Stream> streams;
    for (uint32_t i = 0; i < queues; ++i) {
      launch(streams.emplace_back(devices), i);
      lost.push_back(streams.back().record());
      launch(streams.back(), queues + i);
    }
  }
  REQUIRE(devices.streams().hardware_queues() == queues);
  const auto start = std::chrono::steady_clock::now();
  devices.destroy_streams();
  const auto took = std::chrono::steady_clock::now() - start;
  for (const Event& event : lost) CHECK_THROWS_AS(event.ready(), Error);
  CHECK(took >= options.streams.queue.drain_timeout);
  // the least time of waiting for one after another
  CHECK(took < queues * options.streams.queue.drain_timeout);
}

TEST_CASE("a hardware queue that hangs without room for a marker lets the others finish",
          "[stream]") {
  StreamDevicesOptions options = paused(2);
  options.streams.queue.publications = 2;
  StreamDevices devices(options);
  Event lost, finished;
  test::PacketProcessor* hanging = nullptr;
  {
    Stream hangs(devices), goes_on(devices);
    for (uint32_t i = 0; i < 2; ++i) {
      launch(hangs, i);
      lost = hangs.record();
    }
    launch(hangs, 2);
    hanging = &devices.device_of(hangs);
    devices.device_of(goes_on).resume();
    launch(goes_on, 3);
    finished = goes_on.record();
    for (uint32_t i = 4; i < 14; ++i) launch(goes_on, i);
  }
  std::thread ends_the_wait([&] {
    (void)eventually([&] { return devices.log.ended(13) != 0; });
    hanging->fail(HSA_STATUS_ERROR_EXCEPTION);
  });
  devices.destroy_streams();
  ends_the_wait.join();
  CHECK_THROWS_AS(lost.ready(), Error);
  CHECK(finished.ready());
  for (uint32_t i = 3; i < 14; ++i) CHECK(devices.log.ended(i) != 0);
}

TEST_CASE("an event outlives streams and queues", "[stream]") {
  Event event;
  {
    StreamDevices devices;
    Stream a(devices);
    launch(a, 0);
    event = a.record();
  }
  CHECK(event.ready());
}

TEST_CASE("a wait for an event reports how it ended when its Streams are destroyed meanwhile",
          "[stream]") {
  for (const bool ends : {true, false}) {
    CAPTURE(ends);
    StreamDevicesOptions options = paused(1);
    if (!ends) options.streams.queue.drain_timeout = 50ms;
    StreamDevices devices(options);
    Event event;
    {
      Stream a(devices);
      launch(a, 0);
      event = a.record();
    }
    std::atomic<uint32_t> complete{0}, lost{0};
    std::vector<std::thread> threads;
    for (const WaitPolicy mode : {WaitPolicy::active(), WaitPolicy::blocked(), WaitPolicy{}})
      threads.emplace_back([&, mode] {
        try {
          event.wait(mode);
          ++complete;
        } catch (const Error&) {
          ++lost;
        }
      });
    threads.emplace_back([&] {
      std::this_thread::sleep_for(5ms);
      if (ends) devices.resume();
    });
    devices.destroy_streams();
    for (std::thread& thread : threads) thread.join();
    CHECK(complete == (ends ? 3 : 0));
    CHECK(lost == (ends ? 0 : 3));
  }
}

TEST_CASE("a wait for an event of destroyed Streams costs nothing, or throws their error",
          "[stream]") {
  StreamDevices others;
  Stream stream(others);
  for (const bool ends : {true, false}) {
    CAPTURE(ends);
    StreamDevicesOptions options = paused(1);
    if (!ends) options.streams.queue.drain_timeout = 5ms;
    Event event;
    {
      StreamDevices devices(options);
      Stream a(devices);
      launch(a, 0);
      event = a.record();
      if (ends) devices.resume();
    }
    if (ends) {
      stream.after(event);
      CHECK(event.ready());
    } else {
      CHECK_THROWS_AS(stream.after(event), Error);
    }
    launch(stream, ends);
    stream.synchronize();
    CHECK(others.log.ended(ends) != 0);
  }
}

TEST_CASE("when a queue fails its streams end with the error, and others continue", "[stream]") {
  StreamDevices devices(paused(2));
  Stream a(devices), b(devices), waits(devices);
  REQUIRE(hardware_queue(waits) == hardware_queue(a));
  launch(b, 0);
  const Event of_b = b.record();
  devices.device_of(b).fail(HSA_STATUS_ERROR_INVALID_ISA);
  CHECK(contains(error_of<Error>([&] { of_b.wait(); }), "HSA_STATUS_ERROR_INVALID_ISA"));
  CHECK(contains(error_of<Error>([&] { launch(b, 1); }), "HSA_STATUS_ERROR_INVALID_ISA"));
  CHECK(contains(error_of<Error>([&] { b.record(); }), "HSA_STATUS_ERROR_INVALID_ISA"));
  CHECK(contains(error_of<Error>([&] { b.synchronize(); }), "HSA_STATUS_ERROR_INVALID_ISA"));
  CHECK(contains(error_of<Error>([&] { waits.after(of_b); }), "HSA_STATUS_ERROR_INVALID_ISA"));
  devices.device_of(a).resume();
  launch(a, 2);
  a.synchronize();
  CHECK(devices.log.ended(2) != 0);
}
