// The flight recorder against the packet processor double: what reports and errors say about the
// submissions that the test made.
#include <hsa/hsa.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <deque>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <uptempo/aql/text.hpp>
#include <uptempo/dispatch/flight/flight_log.hpp>
#include <uptempo/program/kernel_names.hpp>
#include <uptempo/runtime/counters.hpp>
#include <uptempo/runtime/error.hpp>
#include "test/engine/dispatch/shared_device.hpp"
#include "test/engine/double_device.hpp"
#include "test/engine/stream/stream_devices.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/eventually.hpp"

using namespace uptempo;
using namespace uptempo::test;
using namespace std::chrono_literals;
using detail::FlightLog;
using detail::FlightPackets;
using detail::FlightScope;
using detail::FlightState;

namespace {

using uptempo::test::contains;
using uptempo::test::error_of;

// Names of kernels that no program has loaded.
class NamedKernels {
 public:
  NamedKernels() {
    detail::KernelNames::of_process().add(0xa00, "advance", this);
    detail::KernelNames::of_process().add(0xb00, "reduce", this);
  }
  ~NamedKernels() { detail::KernelNames::of_process().unload(this); }
  const Kernel<uint32_t> advance = number_kernel(0xa00), reduce = number_kernel(0xb00);
};

FlightLog log_of(DoubleDevice& device) { return device.state().flight_log(FlightScope::all); }

std::string here(uint32_t line) { return std::string(__FILE__) + ':' + std::to_string(line); }

// Everything that is written to stderr while it exists.
class CapturedErrors {
 public:
  CapturedErrors() : file_(std::tmpfile()), before_(dup(2)) {
    std::fflush(stderr);
    dup2(fileno(file_), 2);
  }
  ~CapturedErrors() {
    dup2(before_, 2);
    close(before_);
    std::fclose(file_);
  }
  CapturedErrors(const CapturedErrors&) = delete;
  CapturedErrors& operator=(const CapturedErrors&) = delete;
  std::string text() {
    std::string all(1 << 14, '\0');
    const ssize_t size = pread(fileno(file_), all.data(), all.size(), 0);
    all.resize(size < 0 ? 0 : static_cast<size_t>(size));
    return all;
  }

 private:
  std::FILE* file_;
  int before_;
};

}  // namespace

TEST_CASE("a record has the call site, the place and the packets of a submission", "[flight]") {
  const NamedKernels named;
  DoubleDevice device({.device = {.ring_size = 64, .paused = true}});
  BatchSubmitter batch(device.queue(), {});
  batch.dispatch(named.advance, Grid{1}, 1);
  batch.submit();
  const uint32_t first_line = __LINE__ - 1;
  for (uint32_t i = 0; i < 5; ++i) batch.dispatch(named.advance, Grid{512}.by(64), i);
  batch.dispatch(named.reduce, Grid{8, 4}.by(2), 1);
  batch.raw(aql::to_packet(aql::BarrierAnd{}));
  (void)batch.try_submit();
  const uint32_t second_line = __LINE__ - 1;

  FlightLog log = log_of(device);
  CHECK(log.ring_size == 64);
  CHECK(log.read_index == 0);
  CHECK(log.write_index == 9);
  CHECK(log.submissions == 2);
  REQUIRE(log.last.size() == 2);
  CHECK(log.last[0].entry.site == CallSite{__FILE__, first_line});
  CHECK(log.last[1].entry.site == CallSite{__FILE__, second_line});
  CHECK(log.last[1].entry.first == 1);
  CHECK(log.last[1].entry.packets == 8);  // the raw packet and one that completes the batch
  for (const auto& submission : log.last) {
    CHECK(submission.state == FlightState::waiting);
    CHECK(submission.signal == 1);
  }
  const std::string text = device.queue().report();
  CAPTURE(text);
  CHECK(contains(text, "submission 1 at " + here(first_line) + ": waiting, completion signal 1"));
  CHECK(contains(text,
                 "packet 0: kernel_dispatch barrier acquire=system release=system "
                 "kernel=advance grid=[1,1,1] workgroup=[1,1,1] completion_signal"));
  CHECK(contains(text, "packets 2 to 5: kernel_dispatch"));
  CHECK(contains(text, "kernel=reduce grid=[8,4,1] workgroup=[2,1,1]"));
  CHECK(contains(text, "barrier_and"));

  device.processor().resume();
  CHECK(device.queue().last_submitted().wait(soon(), kActiveWait));
  log = log_of(device);
  // The packets that the packet processor has executed.
  std::vector<Completed> truth = device.processor().completed();
  std::ranges::sort(truth, {}, &Completed::index);
  REQUIRE(truth.size() == 9);
  for (const auto& submission : log.last) {
    CHECK(submission.state == FlightState::complete);
    for (const FlightPackets& packets : submission.packets) {
      for (uint64_t i = packets.first; i < packets.first + packets.count; ++i) {
        CAPTURE(i);
        const aql::Packet64& packet = truth[i].packet;
        if (packets.content == FlightPackets::Content::whole) {
          CHECK(packets.packet.header() == packet.header());
        } else {
          // Declared packets in the middle keep no header.
          CHECK(packets.content == FlightPackets::Content::headless);
          CHECK((i > 1 && i < 8));
        }
        if (packets.kernel.empty()) continue;
        CHECK(packets.kernel == (packet.word[8] == 0xa00 ? "advance" : "reduce"));
      }
    }
  }
}

TEST_CASE("a batch without declarations keeps the headers of all its packets", "[flight]") {
  const NamedKernels named;
  DoubleDevice device;
  BatchSubmitter batch(device.queue(), {});
  for (uint32_t i = 0; i < 10; ++i) batch.dispatch(named.advance, Grid{1}, i);
  batch.submit().wait(kActiveWait);
  const FlightLog log = log_of(device);
  REQUIRE(log.last.size() == 1);
  REQUIRE(log.last[0].packets.size() == 3);  // first, between, last
  const std::vector<Completed> truth = device.processor().completed();
  REQUIRE(truth.size() == 10);
  for (const FlightPackets& packets : log.last[0].packets)
    for (uint64_t i = packets.first; i < packets.first + packets.count; ++i)
      CHECK(packets.packet.header() == truth[i].packet.header());
}

TEST_CASE("each part of a batch longer than the ring has a record", "[flight]") {
  DoubleDevice device({.device = {.ring_size = 16, .paused = true}});
  const auto kernel = number_kernel();
  BatchSubmitter batch(device.queue(), {});
  for (uint32_t i = 0; i < 40; ++i) batch.dispatch(kernel, Grid{1}, i);
  CHECK_THROWS_AS(batch.submit(Deadline::after(10ms)), Error);
  device.processor().resume();
  REQUIRE(eventually([&] { return device.processor().completed().size() == 16; }));
  const FlightLog log = log_of(device);
  REQUIRE(log.last.size() == 2);
  for (const FlightSubmission& part : log.last) {
    CHECK(part.entry.packets == 8);
    REQUIRE(!part.packets.empty());
    // The record has the headers of both ends.
    for (const FlightPackets& packets : part.packets) {
      const uint64_t place = packets.first - part.entry.first;
      CHECK((packets.content == FlightPackets::Content::whole) == (place == 0 || place == 7));
    }
  }
  CHECK(batch.submit(soon()).wait(soon(), kActiveWait));
}

TEST_CASE("the last records stay, also when later packets use their slots", "[flight]") {
  const NamedKernels named;
  DoubleDevice device({.device = {.ring_size = 8}});
  BatchSubmitter batch(device.queue(), {});
  constexpr uint32_t count = 200;
  for (uint32_t i = 0; i < count; ++i) {
    batch.dispatch(i % 2 == 0 ? named.advance : named.reduce, Grid{1}, i);
    batch.submit();
  }
  CHECK(device.queue().last_submitted().wait(soon(), kActiveWait));
  const FlightLog log = log_of(device);
  CHECK(log.submissions == count);
  REQUIRE(log.last.size() == FlightLog::kLast);
  for (size_t i = 0; i < log.last.size(); ++i) {
    CAPTURE(i);
    const auto& submission = log.last[i];
    const uint64_t number = count - log.last.size() + i;  // from 0 on
    CHECK(submission.entry.number == number + 1);
    CHECK(submission.entry.first == number);
    REQUIRE(submission.packets.size() == 1);
    const FlightPackets& packet = submission.packets[0];
    CHECK(packet.kernel == (number % 2 == 0 ? "advance" : "reduce"));
    CHECK((packet.content == FlightPackets::Content::overwritten) == (number + 8 < count));
  }
}

TEST_CASE("reports of other threads show whole records while a thread submits", "[flight]") {
  DoubleDevice device({.device = {.ring_size = 256, .early_read_index = true},
                       .queue = {.packets = 256, .publications = 16, .timing_signals = 0}});
  std::atomic<bool> is_over{false};
  std::thread producer([&] {
    BatchSubmitter batch(device.queue(), {});
    const auto kernel = number_kernel(0xa00);
    // Submission n has 1 + n % 3 packets, so its first index is known.
    for (uint32_t n = 0; n < 3000; ++n) {
      for (uint32_t i = 0; i <= n % 3; ++i) batch.dispatch(kernel, Grid{1 + n % 7}, n);
      batch.submit();
    }
    is_over = true;
  });
  uint64_t seen = 0;
  do {
    const FlightLog log = log_of(device);
    for (const auto& submission : log.last) {
      ++seen;
      const uint64_t n = submission.entry.number - 1;
      const uint64_t first = n / 3 * 6 + (n % 3 == 0 ? 0 : n % 3 == 1 ? 1 : 3);
      if (submission.entry.first != first || submission.entry.packets != 1 + n % 3 ||
          submission.entry.kernel != 0xa00)
        FAIL_CHECK("record " << n + 1 << " has packet " << submission.entry.first);
      for (const FlightPackets& packets : submission.packets) {
        if (packets.content != FlightPackets::Content::whole &&
            packets.content != FlightPackets::Content::headless)
          continue;  // overwritten, or not published yet
        const auto dispatch = aql::packet_as<hsa_kernel_dispatch_packet_t>(packets.packet);
        if (dispatch.grid_size_x != 1 + n % 7)
          FAIL_CHECK("packet " << packets.first << " has grid " << dispatch.grid_size_x);
      }
    }
  } while (!is_over);
  producer.join();
  CAPTURE(seen);
  CHECK(device.queue().last_submitted().wait(soon(), kActiveWait));
}

TEST_CASE("the error of a queue names the first unfinished submission and its kernel", "[flight]") {
  const NamedKernels named;
  DoubleDevice device({.device = {.ring_size = 64, .paused = true}});
  BatchSubmitter batch(device.queue(), {});
  batch.dispatch(named.advance, Grid{1}, 1);
  const Completion first = batch.submit();
  const uint32_t line = __LINE__ - 1;
  batch.dispatch(named.reduce, Grid{1}, 1);
  batch.submit();
  device.processor().fail(static_cast<hsa_status_t>(HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION));
  const std::string error = error_of<Error>([&] { first.wait(); });
  CAPTURE(error);
  CHECK(contains(error, "first unfinished: submission 1 at " + here(line) +
                            ", packet 0, at the read index: it runs or is next, kernel 'advance'"));
  CHECK(contains(error, "1 submissions follow it"));
  CHECK(contains(error, "HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION"));
  const std::string report = device.queue().report();
  CAPTURE(report);
  CHECK(contains(report, "failed: "));
  CHECK(contains(report, "submission 2 at"));
  CHECK(contains(report, ": failed, 1 packet"));
}

TEST_CASE("calls that run out of time name the submission that they waited for", "[flight]") {
  const NamedKernels named;
  DoubleDevice device({.device = {.ring_size = 64, .paused = true}});
  BatchSubmitter batch(device.queue(), {});
  const auto submit = [&] {
    batch.dispatch(named.advance, Grid{1}, 1);
    return batch.submit(Deadline::now());
  };
  const uint32_t line = __LINE__ - 2;
  for (int i = 0; i < 16; ++i) submit();
  const std::string expected = "first unfinished: submission 1 at " + here(line) +
                               ", packet 0, at the read index: it runs or is next, kernel";
  CHECK(contains(error_of<Error>(submit), expected));
  batch.clear();
  CHECK(contains(error_of<Error>([&] { device.queue().drain(Deadline::now()); }), expected));
  device.processor().resume();
  device.queue().drain(soon());
}

TEST_CASE("a replay is recorded with the line that replays it", "[flight]") {
  const NamedKernels named;
  DoubleDevice device;
  alignas(64) std::array<std::byte, 4096> kernargs{};
  const auto recording = device.recording(kernargs, {.spare_kernarg_bytes = 1024});
  recording->dispatch(named.reduce, Grid{1}, 1);
  recording->replay(device.queue()).wait(kActiveWait);
  const uint32_t line = __LINE__ - 1;
  const FlightLog log = log_of(device);
  REQUIRE(log.last.size() == 1);
  CHECK(log.last[0].entry.site == CallSite{__FILE__, line});
  REQUIRE(log.last[0].packets.size() == 1);
  CHECK(log.last[0].packets[0].kernel == "reduce");
}

TEST_CASE("each queue over a shared ring records its own submissions", "[flight]") {
  const NamedKernels named;
  SharedDevice device(2, {.device = {.ring_size = 64, .paused = true}}, {});
  BatchSubmitter one(device[0], {}), two(device[1], {});
  two.dispatch(named.reduce, Grid{1}, 1);
  const Completion second = two.submit();
  one.dispatch(named.advance, Grid{1}, 1);
  one.dispatch(named.advance, Grid{1}, 2);
  const Completion first = one.submit();
  const std::string text = device[0].report();
  CAPTURE(text);
  CHECK(contains(text, "with no record in this queue\n    packet 0: kernel_dispatch"));
  CHECK(contains(text, "packet 1: kernel_dispatch"));
  CHECK(contains(text, "the last 1 of 1 submissions"));
  CHECK(contains(device[1].report(), "kernel=reduce"));
  device.processor().resume();
  CHECK(first.wait(soon(), kActiveWait));
  CHECK(second.wait(soon(), kActiveWait));
}

TEST_CASE("launches of streams are recorded with their lines, markers without", "[flight]") {
  const NamedKernels named;
  StreamDevices devices;
  Stream stream{devices};
  const Grid grid{64};
  stream.launch(named.advance, grid, 7u);
  const uint32_t line = __LINE__ - 1;
  stream.synchronize();
  const std::string text = devices.streams().report();
  CAPTURE(text);
  CHECK(contains(text, "submission 1 at " + here(line) + ": complete, 1 packet\n"));
  CHECK(contains(text, "kernel=advance grid=[64,1,1] workgroup=[64,1,1]"));
  CHECK(contains(text, "submission 2: complete, 1 packet\n"));
  CHECK(contains(text, "barrier_and barrier"));
}

TEST_CASE("an error names the running launch of a stream, not complete ones of its epoch",
          "[flight]") {
  constexpr uint32_t kFailing = 2;
  const NamedKernels named;
  for (const bool early : {false, true}) {
    CAPTURE(early);
    StreamDevicesOptions options;
    options.streams.hardware_queues = 1;
    options.device.early_read_index = early;
    options.device.duration = [](const hsa_kernel_dispatch_packet_t& packet) {
      return *static_cast<const uint32_t*>(packet.kernarg_address) == kFailing ? ~0u : 1u;
    };
    StreamDevices devices(options);
    Stream stream{devices};
    const Grid grid{64};
    stream.launch(named.advance, grid, 0u);
    stream.launch(named.advance, grid, 1u);
    stream.launch(named.reduce, grid, kFailing);
    const uint32_t line = __LINE__ - 1;
    stream.launch(named.advance, grid, 3u);
    REQUIRE(eventually([&] { return devices.log.began(kFailing) != 0; }));
    devices.device_of(stream).fail(static_cast<hsa_status_t>(HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION));
    const std::string error = error_of<Error>([&] { stream.synchronize(); });
    CAPTURE(error);
    CHECK(contains(error, "first unfinished: submission 3 at " + here(line) +
                              ", packet 2, taken by the packet processor, kernel 'reduce'"));
    CHECK_FALSE(contains(error, "submission 1 at"));
    CHECK_FALSE(contains(error, "submission 2 at"));
    // Where the read index passes packets at their launch, the one at the index does not run. Other
    // processors run it, and nothing tells the two apart.
    CHECK(contains(error, "submission 4 at") == early);
  }
}

TEST_CASE("an error names all launches of several streams that may run", "[flight]") {
  const NamedKernels named;
  StreamDevicesOptions options;
  options.streams.hardware_queues = 1;
  options.device.duration = [](const hsa_kernel_dispatch_packet_t&) { return ~0u; };
  StreamDevices devices(options);
  const Grid grid{64};
  std::deque<Stream> streams;
  for (int i = 0; i < 5; ++i) streams.emplace_back(devices);
  streams[0].launch(named.advance, grid, 0u);
  const uint32_t first = __LINE__ - 1;
  streams[1].launch(named.reduce, grid, 1u);
  const uint32_t second = __LINE__ - 1;
  for (uint32_t i = 2; i < 5; ++i) streams[i].launch(named.advance, grid, i);
  streams[0].launch(named.reduce, grid, 5u);  // waits for its stream
  REQUIRE(eventually([&] { return devices.log.began(4) != 0; }));
  devices.device_of(streams[0])
      .fail(static_cast<hsa_status_t>(HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION));
  const std::string error = error_of<Error>([&] { streams[1].synchronize(); });
  CAPTURE(error);
  CHECK(contains(error, "first unfinished: submission 1 at " + here(first) +
                            ", packet 0, taken by the packet processor, kernel 'advance', or "
                            "submission 2 at " +
                            here(second) +
                            ", packet 1, taken by the packet processor, kernel 'reduce', or "
                            "submission 3 at "));
  CHECK(contains(error, ", or 2 others; 1 submissions follow"));
}

TEST_CASE("a destructor says after one second what it waits for, and later what is lost",
          "[flight]") {
  const NamedKernels named;
  CapturedErrors errors;
  DoubleOptions options{.device = {.ring_size = 64, .paused = true}};
  options.queue.drain_timeout = 1900ms;
  std::optional<Completion> lost;
  const Counters before = Counters::now();
  {
    DoubleDevice device(options);
    BatchSubmitter batch(device.queue(), {});
    batch.dispatch(named.advance, Grid{1}, 1);
    lost = batch.submit();
    device.destroy_queue();
  }
  const std::string text = errors.text();
  CAPTURE(text);
  CHECK((Counters::now() - before).queues_given_up == 1);
  CHECK(contains(text, "waits, for 0."));
  CHECK(contains(text, "is destroyed with unfinished work, which is lost: "));
  size_t named_in = 0;
  for (size_t at = 0; (at = text.find("kernel 'advance'", at)) != std::string::npos; ++at)
    ++named_in;
  CHECK(named_in == 2);
  CHECK(contains(error_of<Error>([&] { lost->wait(); }), "kernel 'advance'"));
}

TEST_CASE("names of unloaded kernels stay, marked, up to a limit", "[flight]") {
  detail::KernelNames& names = detail::KernelNames::of_process();
  int owner = 0, next = 0;
  names.add(0x7000, "first", &owner);
  CHECK(names.find(0x7000) == "first");
  names.unload(&owner);
  CHECK(names.find(0x7000) == "first (unloaded)");
  names.add(0x7000, "second", &next);
  names.unload(&owner);
  CHECK(names.find(0x7000) == "second");
  CHECK(names.find(0x7040).empty());
  for (uint64_t i = 0; i < detail::KernelNames::kMost; ++i)
    names.add(0x10000 + 64 * i, "many", &owner);
  names.unload(&owner);
  CHECK(names.find(0x10000) == "many (unloaded)");
  CHECK(names.find(0x7000) == "second");
  names.unload(&next);  // which finds too many names
  CHECK(names.find(0x7000) == "second (unloaded)");
  CHECK(names.find(0x10000).empty());
}
