// Copies of streams over doubles: order, pageable memory, shortage and failure.
#include <random>
#include <string>
#include <thread>

#include <uptempo/completion/notifier.hpp>
#include <uptempo/runtime/counters.hpp>
#include <uptempo/stream/copy/retired.hpp>
#include "test/engine/stream/copy/copy_engine.hpp"
#include "test/engine/stream/stream_devices.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"

using namespace uptempo;
using namespace uptempo::test;
using namespace std::chrono_literals;

namespace {

using Bytes = std::vector<uint8_t>;

CopyTarget device(Bytes& memory) { return CopyTarget::device(memory.data(), memory.size()); }
CopySource from_device(const Bytes& memory) {
  return CopySource::device(memory.data(), memory.size());
}

StreamDevicesOptions with(CopyEngine& engine) {
  StreamDevicesOptions options;
  options.copies = engine.parts();
  options.streams.copies = {
      .host_bytes = 0, .staging_bytes = 4096, .piece_bytes = 1024, .engine_copies = 4};
  return options;
}

}  // namespace

TEST_CASE("a copy begins after the kernels before it, and kernels after it begin after it",
          "[stream][copy]") {
  CopyEngine engine;
  StreamDevicesOptions options = with(engine);
  options.device.paused = true;
  StreamDevices devices(options);
  Stream stream(devices), other(devices);
  Bytes from(100, 7), to(100);
  launch(stream, 0);
  stream.copy(device(to), from_device(from));
  launch(stream, 1);
  const Event done = stream.record();
  other.after(done);
  launch(other, 2);
  std::this_thread::sleep_for(5ms);
  CHECK(engine.carried_out() == 0);
  engine.pause();
  devices.resume();
  CHECK(eventually([&] { return devices.log.ended(0) != 0; }));
  std::this_thread::sleep_for(5ms);
  CHECK(devices.log.began(1) == 0);
  CHECK(devices.log.began(2) == 0);
  engine.resume();
  other.synchronize();
  CHECK(to == from);
  CHECK(devices.log.is_before(1, 2));
}

TEST_CASE("copies that follow each other on one lane need no packets and no waits",
          "[stream][copy]") {
  CopyEngine engine;
  StreamDevices devices(with(engine));
  Stream stream(devices);
  Bytes a(64, 1), b(64), c(64);
  const Counters before = Counters::now();
  stream.copy(device(b), from_device(a));
  stream.copy(device(c), from_device(b));
  stream.record().wait();
  CHECK((Counters::now() - before).packets == 0);
  CHECK((Counters::now() - before).copies_by_engine == 2);
  CHECK(c == a);
}

TEST_CASE("bytes for pageable memory arrive once, in the first call that sees the copy complete",
          "[stream][copy]") {
  CopyEngine engine(true);
  StreamDevices devices(with(engine));
  Stream stream(devices), other(devices);
  const Bytes from(3000, 9);
  Bytes to(3000);
  stream.copy(std::span(to), from_device(from));
  const Event done = stream.record();
  other.after(done);
  launch(other, 0);
  const Event behind = other.record();
  CHECK_FALSE(done.ready());
  engine.resume();
  CHECK(eventually([&] { return devices.log.ended(0) != 0; }));
  CHECK(to == Bytes(3000));  // no call has queried it
  SECTION("by an event of another stream") {
    CHECK(eventually([&] { return behind.ready(); }));
  }
  SECTION("by a wait") { behind.wait(); }
  SECTION("by synchronize()") { stream.synchronize(); }
  SECTION("by synchronize() of all") { devices.streams().synchronize(); }
  CHECK(to == from);
  CHECK(detail::RetiredList::of_process().size() == 0);
  std::ranges::fill(to, uint8_t{1});
  stream.synchronize();
  devices.streams().synchronize();
  CHECK(to == Bytes(3000, 1));
}

TEST_CASE("the later of two copies into the same pageable memory determines its content",
          "[stream][copy]") {
  CopyEngine engine;
  StreamDevices devices(with(engine));
  Stream a(devices), b(devices);
  for (int round = 0; round < 200; ++round) {
    const Bytes first(512, 1), second(512, 2);
    Bytes to(512);
    a.copy(std::span(to), from_device(first));
    b.after(a.record());
    b.copy(std::span(to), from_device(second));
    b.synchronize();
    REQUIRE(to == second);
  }
}

TEST_CASE("a copy from pageable memory waits for the copy that has yet to write it",
          "[stream][copy]") {
  CopyEngine engine(true);
  StreamDevices devices(with(engine));
  Stream stream(devices);
  const Bytes from(512, 3);
  Bytes between(512), to(512);
  stream.copy(std::span(between), from_device(from));
  std::thread later([&] {
    std::this_thread::sleep_for(5ms);
    engine.resume();
  });
  stream.copy(device(to), std::span<const uint8_t>(between));
  std::ranges::fill(between, uint8_t{0});  // the bytes were taken
  stream.synchronize();
  later.join();
  CHECK(to == from);
}

TEST_CASE("a copy waits for staging memory when all is in use, then the error names it",
          "[stream][copy]") {
  CopyEngine engine(true);
  StreamDevicesOptions options = with(engine);
  options.streams.copies.engine_copies = 64;
  options.streams.patience = 50ms;
  StreamDevices devices(options);
  Stream stream(devices);
  const Bytes from(1024, 5);
  Bytes to(1024);
  for (int i = 0; i < 4; ++i) stream.copy(device(to), std::span(from));
  const std::string text = error_of<Error>([&] { stream.copy(device(to), std::span(from)); });
  CAPTURE(text);
  CHECK(contains(text, "staging memory"));
  CHECK(contains(text, "4 pieces of 1024 bytes"));
  engine.resume();
  for (int i = 0; i < 100; ++i)
    REQUIRE(eventually_succeeds<Error>([&] { stream.copy(device(to), std::span(from)); }));
  Bytes back(1024);
  // waits for room only
  for (int i = 0; i < 100; ++i)
    REQUIRE(eventually_succeeds<Error>([&] { stream.copy(std::span(back), from_device(to)); }));
  stream.synchronize();
  CHECK(back == from);
}

TEST_CASE("small copies share a piece of staging memory", "[stream][copy]") {
  CopyEngine engine(true);
  StreamDevicesOptions options = with(engine);
  options.streams.copies.engine_copies = 64;
  options.streams.patience = 50ms;
  StreamDevices devices(options);
  Stream stream(devices);
  const Bytes from(16, 5);
  Bytes to(16);
  for (int i = 0; i < 16; ++i) stream.copy(device(to), std::span(from));
  CHECK_THROWS_AS(stream.copy(device(to), std::span(from)), Error);
  engine.resume();
  stream.synchronize();
  CHECK(to == from);
}

TEST_CASE("a lane with as many copies as signals waits for the first, then the error says so",
          "[stream][copy]") {
  CopyEngine engine(true);
  StreamDevicesOptions options = with(engine);
  options.streams.patience = 50ms;
  StreamDevices devices(options);
  Stream stream(devices);
  Bytes a(16, 1), b(16);
  for (int i = 0; i < 4; ++i) stream.copy(device(b), from_device(a));
  CHECK(contains(error_of<Error>([&] { stream.copy(device(b), from_device(a)); }),
                 "4 of 4 copies are unfinished"));
  engine.resume();
  for (int i = 0; i < 500; ++i)
    REQUIRE(eventually_succeeds<Error>([&] { stream.copy(device(b), from_device(a)); }));
  stream.synchronize();
  CHECK(b == a);
}

TEST_CASE("a copy that reports failure fails its lane, and no bytes reach the host",
          "[stream][copy]") {
  CopyEngine engine(true);
  StreamDevices devices(with(engine));
  Stream stream(devices), other(devices);
  const Bytes from(512, 3);
  Bytes to(512), third(512);
  engine.fail();
  stream.copy(std::span(to), from_device(from));
  const Event failed = stream.record();
  engine.resume();
  SECTION("a host that sleeps") {
    CHECK(contains(error_of<Error>([&] { failed.wait(WaitPolicy::blocked()); }),
                   "the copy engine reported that a copy has failed"));
  }
  SECTION("a host that spins") {
    CHECK(contains(error_of<Error>([&] { failed.wait(WaitPolicy::active()); }),
                   "the copy engine reported that a copy has failed"));
  }
  SECTION("a host that queries") {
    CHECK(eventually(
        [&] { return contains(error_of<Error>([&] { failed.ready(); }), "a copy has failed"); }));
  }
  CHECK(to == Bytes(512));
  CHECK(contains(error_of<Error>([&] { other.copy(std::span(third), from_device(from)); }),
                 "a copy has failed"));
  Stream unharmed(devices);
  launch(unharmed, 0);
  unharmed.synchronize();
}

TEST_CASE("a copy behind a failed copy of another lane ends with its error", "[stream][copy]") {
  CopyEngine engine(true);
  StreamDevices devices(with(engine));
  Stream stream(devices);
  Bytes from(512, 3), to(512), third(512);
  engine.fail();
  stream.copy(std::span(to), from_device(from));
  engine.resume();
  REQUIRE(eventually([&] { return engine.signalled() == 1; }));
  const std::string error = error_of<Error>([&] {
    stream.copy(device(third), CopySource::pinned(from.data(), from.size()));
    stream.synchronize();
  });
  CAPTURE(error);
  CHECK(contains(error, "a copy has failed"));
}

TEST_CASE("work that waits on the device for a failed copy ends with its error", "[stream][copy]") {
  CopyEngine engine(true);
  StreamDevicesOptions options = with(engine);
  options.streams.queue.drain_timeout = 1s;
  StreamDevices devices(options);
  constexpr auto kLimit = 10s;  // the queues look for failed copies four times a second
  Stream stream(devices), last(devices);
  Bytes from(512, 3), to(512);
  engine.fail();
  stream.copy(device(to), from_device(from));
  launch(stream, 0);
  last.after(stream.record());
  launch(last, 1);
  const Event lost = last.record();
  engine.resume();
  std::string error;
  SECTION("a host that sleeps") {
    error =
        error_of<Error>([&] { (void)lost.wait(Deadline::after(kLimit), WaitPolicy::blocked()); });
  }
  SECTION("a host that spins") {
    error =
        error_of<Error>([&] { (void)lost.wait(Deadline::after(kLimit), WaitPolicy::active()); });
  }
  SECTION("a host that queries") {
    CHECK(eventually(
        [&] {
          error = error_of<Error>([&] { lost.ready(); });
          return error != "no error";
        },
        kLimit));
  }
  SECTION("the completion thread") {
    CompletionNotifier notifier{1};
    notifier.watch(lost.completion());
    CHECK(eventually(
        [&] {
          const auto notice = notifier.take();
          return notice && notice->failed;
        },
        kLimit));
    error = error_of<Error>([&] { lost.ready(); });
  }
  CHECK(contains(error, "a queue that it waits for has failed"));
  CHECK(contains(error, "a copy has failed"));
}

TEST_CASE("copy engines that hang are given up together with the hardware queues",
          "[stream][copy]") {
  CopyEngine engine(true);
  StreamDevicesOptions options = with(engine);
  options.device.paused = true;
  options.streams.queue.drain_timeout =
      2s;  // long, so that a slow machine stays below four times of it
  StreamDevices devices(options);
  Bytes a(16, 1), b(16);
  std::vector<Event> lost;
  for (const auto& [to, from] : {std::pair(device(b), CopySource::pinned(a.data(), 16)),
                                 std::pair(CopyTarget::pinned(b.data(), 16), from_device(a)),
                                 std::pair(device(b), from_device(a))}) {
    Stream stream(devices);
    stream.copy(to, from, CopyPath::engine);
    lost.push_back(stream.record());
    launch(stream, static_cast<uint32_t>(lost.size()));
  }
  const auto start = std::chrono::steady_clock::now();
  devices.destroy_streams();
  const auto took = std::chrono::steady_clock::now() - start;
  for (const Event& event : lost) CHECK_THROWS_AS(event.ready(), Error);
  // the least time of three lanes and one queue one after another
  CHECK(took < 4 * options.streams.queue.drain_timeout);
}

TEST_CASE("a copy that ROCr refuses changes nothing", "[stream][copy]") {
  CopyEngine engine;
  StreamDevices devices(with(engine));
  Stream stream(devices);
  Bytes a(16, 1), b(16);
  engine.refuse(true);
  CHECK(contains(error_of<Error>([&] { stream.copy(device(b), from_device(a)); }),
                 "hsa_amd_memory_async_copy"));
  CHECK(contains(error_of<Error>([&] { stream.copy(device(b), std::span(a)); }),
                 "hsa_amd_memory_async_copy"));
  engine.refuse(false);
  for (int i = 0; i < 20; ++i) stream.copy(device(b), std::span(a));
  stream.synchronize();
  CHECK(b == a);
}

TEST_CASE("only the host's stores to device memory are followed by a flush of the host data path",
          "[stream][copy]") {
  CopyEngine engine;
  volatile uint32_t hdp_flush = 0;
  StreamDevicesOptions options = with(engine);
  options.streams.copies.host_bytes = 4096;
  options.copies.hdp_flush = &hdp_flush;
  StreamDevices devices(options);
  Stream stream(devices);
  Bytes bytes(64, 1), on_device(64), on_host(64);
  REQUIRE(stream.copy(CopyTarget::pinned(on_host.data(), 64), std::span(bytes)) == CopyPath::host);
  CHECK(hdp_flush == 0);
  REQUIRE(stream.copy(device(on_device).host_writes(), std::span(on_host)) == CopyPath::host);
  CHECK(hdp_flush == 1);
  CHECK(on_device == on_host);
  hdp_flush = 0;
  const CopyRows rows{.width_bytes = 8, .height = 2, .to_pitch = 32};
  REQUIRE(stream.fill_2d(device(on_device).host_writes(), rows, uint8_t{9}) == CopyPath::host);
  CHECK(hdp_flush == 1);
  CHECK(on_device[39] == 9);
}

TEST_CASE("without kernels for the agent copies use engines, and what they cannot do is refused",
          "[stream][copy]") {
  CopyEngine engine;
  StreamDevices devices(with(engine));
  Stream stream(devices), held(devices);
  Bytes a(16, 1), b(16);
  CHECK(stream.copy(device(b), from_device(a)) == CopyPath::engine);
  CHECK(contains(error_of<Error>([&] { stream.copy(device(b), from_device(a), CopyPath::kernel); }),
                 "no code object"));
  CHECK(contains(error_of<Error>([&] { stream.fill(device(b), uint8_t{1}); }), "no code object"));
  SignalDouble gate(1);
  held.after(gate.handle());
  CHECK(contains(error_of<Error>([&] { held.copy(device(b), from_device(a)); }), "no code object"));
  CHECK(contains(error_of<Error>([&] { held.copy(device(b), from_device(a), CopyPath::engine); }),
                 "waits for the host"));
  gate.set(0);
  held.synchronize();
  CHECK(held.copy(device(b), from_device(a)) == CopyPath::engine);
  held.synchronize();
}

TEST_CASE("the legacy default stream is ordered after and before copies",
          "[stream][copy][default]") {
  CopyEngine engine(true);
  StreamDevicesOptions options = with(engine);
  options.streams.legacy_default = true;
  StreamDevices devices(options);
  Stream& default_stream = devices.streams().default_stream();
  Stream stream(devices), other(devices);
  Bytes a(16, 1), b(16), c(16);
  stream.copy(device(b), from_device(a));
  default_stream.copy(device(c), from_device(b));
  launch(other, 0);
  std::this_thread::sleep_for(5ms);
  CHECK(devices.log.began(0) == 0);
  engine.resume();
  other.synchronize();
  CHECK(c == a);
}

TEST_CASE(
    "a copy beside a legacy default stream needs no slot in a ring, and is followed all the same",
    "[stream][copy][default]") {
  CopyEngine engine(true);
  StreamDevicesOptions options = with(engine);
  options.streams.legacy_default = true;
  options.streams.hardware_queues = 1;
  options.streams.patience = 10ms;
  options.device.paused = true;
  StreamDevices devices(options);
  Stream fills(devices, {.blocking = false}), copies(devices), also(devices);
  Bytes a(16, 1), b(16), c(16, 2), d(16);
  CHECK(contains(error_of<Error>([&] {
                   for (;;) launch(fills, 0);
                 }),
                 "slot in the ring"));
  copies.copy(device(b), from_device(a));
  also.copy(device(d), from_device(c));
  devices.resume();
  fills.synchronize();
  launch(devices.streams().default_stream(), 1);
  launch(copies, 2);
  std::this_thread::sleep_for(5ms);
  CHECK(devices.log.began(1) == 0);
  CHECK(devices.log.began(2) == 0);
  engine.resume();
  copies.synchronize();
  CHECK(b == a);
  CHECK(d == c);
  CHECK(devices.log.is_before(1, 2));
  CHECK(engine.carried_out() == 2);
  devices.streams().synchronize();
}

TEST_CASE(
    "threads with a stream each copy through common lanes and staging memory, and read their own "
    "bytes",
    "[stream][copy][stress]") {
  CopyEngine engine;
  StreamDevicesOptions options = with(engine);
  options.streams.hardware_queues = 2;
  StreamDevices devices(options);
  std::mutex mutex;
  Event last;
  std::atomic<uint32_t> wrong{0};
  const auto work = [&](uint8_t which) {
    std::mt19937_64 random(which);
    Stream stream(devices);
    Bytes there(2000), back(2000);
    for (uint32_t i = 0; i < 150; ++i) {
      const size_t size = 1 + random() % 2000;
      Bytes sent(size, static_cast<uint8_t>(random()));
      {
        const std::lock_guard lock(mutex);
        stream.after(last);
      }
      stream.copy(CopyTarget::device(there.data(), size), std::span<const uint8_t>(sent));
      if (random() % 2 == 0) launch(stream, which * 1000u + i);
      stream.copy(CopyTarget::pageable(back.data(), size), CopySource::device(there.data(), size));
      const Event event = stream.record();
      if (random() % 4 == 0) {
        const std::lock_guard lock(mutex);
        last = event;
      }
      event.wait();
      wrong += !std::equal(sent.begin(), sent.end(), back.begin());
    }
  };
  std::vector<std::thread> threads;
  for (uint8_t which = 0; which < 4; ++which) threads.emplace_back(work, which);
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  devices.streams().synchronize();
  CHECK(detail::RetiredList::of_process().size() == 0);
}
