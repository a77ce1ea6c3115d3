// Streams after the failure of a hardware queue: no wait hangs, lost work is never reported
// complete, and unaffected streams continue.
#include <string>

#include "test/engine/stream/stream_devices.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"

using namespace uptempo;
using namespace uptempo::test;
using namespace std::chrono_literals;

namespace {

std::string error_of_wait(const Event& event) {
  return error_of<Error>([&] { static_cast<void>(event.wait(soon())); });
}

}  // namespace

TEST_CASE("queues whose packets wait for one that has failed fail with its error",
          "[stream][failure]") {
  StreamDevices devices(paused(4));
  Stream fails(devices), waits(devices), waits_for_that(devices), other(devices),
      neighbour(devices);
  launch(fails, 0);
  const Event lost = fails.record();
  launch(waits, 1);
  const Event before = waits.record();
  waits.after(lost);
  launch(waits, 2);
  const Event behind = waits.record();
  waits_for_that.after(behind);
  launch(waits_for_that, 3);
  const Event further = waits_for_that.record();
  launch(other, 4);
  devices.device_of(waits).resume();
  before.wait();
  devices.device_of(fails).fail(HSA_STATUS_ERROR_INVALID_ISA);
  CHECK_THROWS_AS(lost.wait(), Error);
  for (const Event& event : {behind, further}) {
    const std::string text = error_of_wait(event);
    CAPTURE(text);
    CHECK(contains(text, "a queue that it waits for has failed"));
    CHECK(contains(text, "HSA_STATUS_ERROR_INVALID_ISA"));
  }
  CHECK(before.ready());  // completed work stays complete
  CHECK_THROWS_AS(launch(waits, 5), Error);
  devices.resume();
  other.synchronize();
  CHECK(devices.log.ended(4) != 0);
  CHECK(devices.log.began(2) == 0);
  CHECK(devices.log.began(3) == 0);
}

TEST_CASE("a wait that ended before its queue failed changes nothing", "[stream][failure]") {
  StreamDevices devices(paused(2));
  Stream fails(devices), waits(devices);
  launch(fails, 0);
  waits.after(fails.record());
  launch(waits, 1);
  devices.resume();
  waits.synchronize();
  launch(fails, 2);
  devices.device_of(fails).fail(HSA_STATUS_ERROR_INVALID_ISA);
  CHECK_THROWS_AS(fails.synchronize(), Error);
  launch(waits, 3);
  waits.synchronize();
  CHECK(devices.log.ended(3) != 0);
}

TEST_CASE("no stream begins anything in a failed queue", "[stream][failure]") {
  StreamDevices devices(paused(2));
  Stream fails(devices), other(devices), idle(devices);
  REQUIRE(hardware_queue(idle) == hardware_queue(fails));
  launch(fails, 0);
  devices.device_of(fails).fail(HSA_STATUS_ERROR_INVALID_ISA);
  CHECK_THROWS_AS(fails.synchronize(), Error);
  devices.resume();
  launch(idle, 1);  // has lost nothing
  idle.synchronize();
  std::deque<Stream> later;
  for (uint32_t i = 0; i < 4; ++i) {
    later.emplace_back(devices);
    devices.resume();  // possibly a new device
    launch(later.back(), 10 + i);
    later.back().synchronize();
    CHECK(devices.log.ended(10 + i) != 0);
  }
  CHECK(devices.streams().hardware_queues() == 3);
}
