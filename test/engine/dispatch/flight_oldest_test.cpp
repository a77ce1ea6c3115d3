// The flight recorder keeps the submission that blocks a queue, however many follow it.
#include <hsa/hsa.h>

#include <chrono>
#include <cstdint>
#include <string>

#include <uptempo/dispatch/flight/flight_log.hpp>
#include <uptempo/program/kernel_names.hpp>
#include <uptempo/runtime/error.hpp>
#include "test/engine/double_device.hpp"
#include "test/engine/stream/stream_devices.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/eventually.hpp"

using namespace uptempo;
using namespace uptempo::test;
using namespace std::chrono_literals;
using detail::FlightLog;

namespace {

using uptempo::test::contains;
using uptempo::test::error_of;

std::string at_line(uint32_t line) { return std::string(__FILE__) + ':' + std::to_string(line); }

// A device that takes nothing, and a queue with room for so many submissions.
DoubleOptions stuck(uint32_t publications) {
  return {.device = {.ring_size = 512, .paused = true},
          .queue = {.packets = 512,
                    .publications = publications,
                    .timing_signals = 0,
                    .kernarg_bytes = 1 << 20,
                    .kernarg_slab_bytes = 1024,
                    .drain_timeout = kHang},
          .signals = publications};
}

}  // namespace

TEST_CASE("the first of as many stuck submissions as a queue can hold is named", "[flight]") {
  const uint32_t publications = GENERATE(64u, 300u);
  CAPTURE(publications);
  DoubleDevice device(stuck(publications));
  BatchSubmitter batch(device.queue(), {});
  const auto kernel = number_kernel();
  batch.dispatch(kernel, Grid{1}, 1);
  batch.submit();
  const std::string first = "submission 1 at " + at_line(__LINE__ - 1);
  for (uint32_t i = 1; i < publications; ++i) {
    batch.dispatch(kernel, Grid{1}, 1);
    batch.submit();
  }
  const std::string error = error_of<Error>([&] { device.queue().drain(Deadline::now()); });
  CAPTURE(error);
  CHECK(contains(error, "first unfinished: " + first + ", packet 0, "));
  CHECK(contains(error, std::to_string(publications - 1) + " submissions follow it"));
  const std::string report = device.queue().report();
  CAPTURE(report);
  CHECK(contains(report, first + ": waiting"));
  CHECK(contains(report, "those that may run, and the last 63 of " + std::to_string(publications) +
                             " submissions"));
  CHECK_FALSE(contains(report, "no record"));
  device.processor().resume();
  device.queue().drain(soon());
  CHECK_FALSE(contains(device.queue().report(), "submission 1 at"));
}

TEST_CASE("attempts that are refused displace no record", "[flight]") {
  DoubleOptions options = stuck(64);
  options.device.ring_size = 16;
  options.queue.packets = 16;
  DoubleDevice device(options);
  BatchSubmitter batch(device.queue(), {});
  const auto kernel = number_kernel();
  batch.dispatch(kernel, Grid{1}, 1);
  batch.submit();
  const std::string first = "submission 1 at " + at_line(__LINE__ - 1);
  for (uint32_t i = 1; i < 16; ++i) {
    batch.dispatch(kernel, Grid{1}, 1);
    batch.submit();
  }
  // Longer than the ring, so each of its three parts needs room.
  for (int i = 0; i < 20; ++i) batch.dispatch(kernel, Grid{1}, 1);
  for (int i = 0; i < 5; ++i) CHECK_THROWS_AS(batch.submit(Deadline::after(5ms)), Error);
  CHECK(contains(error_of<Error>([&] { device.queue().drain(Deadline::now()); }),
                 first + ", packet 0, "));
  device.processor().resume();
  CHECK(batch.submit(soon()).wait(soon(), kActiveWait));
  const FlightLog log = device.state().flight_log(detail::FlightScope::all);
  CHECK(log.submissions == 19);
  REQUIRE(log.last.size() == 19);
  CHECK(log.last.back().entry.number == 19);
  CHECK(log.last.back().entry.first == 32);
  CHECK(log.last.back().state == detail::FlightState::complete);
}

TEST_CASE(
    "the launch that blocks a stream is named, with hundreds of others of its epoch behind it",
    "[flight]") {
  constexpr uint32_t kFailing = 70;
  const bool early = GENERATE(false, true);
  CAPTURE(early);
  StreamDevicesOptions options;
  options.streams.hardware_queues = 1;
  options.streams.queue.packets = 1024;
  options.streams.queue.kernarg_bytes = 1 << 20;
  options.streams.epoch_packets = 128;
  options.device.ring_size = 1024;
  options.device.early_read_index = early;
  options.device.duration = [](const hsa_kernel_dispatch_packet_t& packet) {
    return *static_cast<const uint32_t*>(packet.kernarg_address) == kFailing ? ~0u : 1u;
  };
  StreamDevices devices(options);
  Stream stream{devices};
  const auto kernel = number_kernel();
  for (uint32_t i = 0; i < kFailing; ++i) stream.launch(kernel, Grid{64}, i);
  stream.launch(kernel, Grid{64}, kFailing);
  const std::string blocking = "submission 71 at " + at_line(__LINE__ - 1);
  REQUIRE(eventually([&] { return devices.log.began(kFailing) != 0; }));
  for (uint32_t i = 1; i <= 200; ++i) stream.launch(kernel, Grid{64}, kFailing + i);
  const std::string report = devices.streams().report();
  CAPTURE(report);
  CHECK(contains(report, blocking + ": running, "));
  CHECK_FALSE(contains(report, "no record"));
  devices.device_of(stream).fail(static_cast<hsa_status_t>(HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION));
  const std::string error = error_of<Error>([&] { stream.synchronize(); });
  CAPTURE(error);
  CHECK(contains(error, "first unfinished: " + blocking + ", packet 70, taken by the packet"));
  CHECK_FALSE(contains(error, "submission 70 at"));
}

TEST_CASE("the batch at the read index says which of its packets runs or is next", "[flight]") {
  DoubleDevice device(stuck(8));
  BatchSubmitter batch(device.queue(), {});
  const auto kernel = number_kernel();
  for (int submission = 0; submission < 2; ++submission) {
    for (int i = 0; i < 4; ++i) batch.dispatch(kernel, Grid{1}, 1);
    batch.submit();
  }
  const std::string error = error_of<Error>([&] { device.queue().drain(Deadline::now()); });
  CAPTURE(error);
  CHECK(contains(error,
                 ", packets 0 to 3, 0 taken by the packet processor: packet 0 runs or is next"));
  device.processor().resume();
  device.queue().drain(soon());
}
