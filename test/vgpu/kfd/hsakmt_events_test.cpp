#include <pthread.h>
#include <atomic>
#include <chrono>
#include <set>
#include <thread>
#include <vector>

#include "hsakmt_fixture.hpp"
#include "test/support/catch.hpp"

namespace uptempo::vgpu {
namespace {

using namespace std::chrono_literals;

HsaEvent* create(bool manual_reset, bool signaled = false,
                 HSA_EVENTTYPE type = HSA_EVENTTYPE_SIGNAL) {
  HsaEventDescriptor descriptor{};
  descriptor.EventType = type;
  descriptor.NodeId = kGpuNode;
  HsaEvent* event = nullptr;
  return hsaKmtCreateEvent(&descriptor, manual_reset, signaled, &event) == HSAKMT_STATUS_SUCCESS
             ? event
             : nullptr;
}

TEST_CASE("each event has its own mailbox in the event page", "[events]") {
  const Thunk thunk;
  HsaEvent* one = create(false);
  HsaEvent* two = create(false);
  REQUIRE(one != nullptr);
  REQUIRE(two != nullptr);
  CHECK(value(one->EventData.HWData2) != 0);
  CHECK(value(two->EventData.HWData2) != 0);
  CHECK(value(one->EventData.HWData2) != value(two->EventData.HWData2));
  CHECK(value(one->EventData.HWData3) == one->EventId);
  // The program may write the page.
  *reinterpret_cast<HSAuint64*>(value(one->EventData.HWData2)) = one->EventId;
  CHECK(hsaKmtDestroyEvent(one) == HSAKMT_STATUS_SUCCESS);
  CHECK(hsaKmtDestroyEvent(two) == HSAKMT_STATUS_SUCCESS);
}

TEST_CASE("an event created signaled is set", "[events]") {
  const Thunk thunk;
  HsaEvent* event = create(false, true);
  REQUIRE(event != nullptr);
  CHECK(hsaKmtWaitOnEvent(event, 0) == HSAKMT_STATUS_SUCCESS);
  CHECK(hsaKmtWaitOnEvent(event, 0) == HSAKMT_STATUS_WAIT_TIMEOUT);
  hsaKmtDestroyEvent(event);
}

TEST_CASE("a wait consumes an auto-reset event and not a manual-reset event", "[events]") {
  const Thunk thunk;
  for (const bool manual : {false, true}) {
    CAPTURE(manual);
    HsaEvent* event = create(manual);
    REQUIRE(event != nullptr);
    REQUIRE(hsaKmtSetEvent(event) == HSAKMT_STATUS_SUCCESS);
    CHECK(hsaKmtWaitOnEvent(event, 0) == HSAKMT_STATUS_SUCCESS);
    CHECK(hsaKmtWaitOnEvent(event, 0) ==
          (manual ? HSAKMT_STATUS_SUCCESS : HSAKMT_STATUS_WAIT_TIMEOUT));
    REQUIRE(hsaKmtResetEvent(event) == HSAKMT_STATUS_SUCCESS);
    CHECK(hsaKmtWaitOnEvent(event, 0) == HSAKMT_STATUS_WAIT_TIMEOUT);
    hsaKmtDestroyEvent(event);
  }
}

TEST_CASE("a blocked wait ends when another thread sets the event", "[events]") {
  const Thunk thunk;
  HsaEvent* event = create(false);
  REQUIRE(event != nullptr);
  std::atomic<HSAKMT_STATUS> status{HSAKMT_STATUS_ERROR};
  std::thread waiter([&] { status = hsaKmtWaitOnEvent(event, 60'000); });
  std::this_thread::sleep_for(30ms);
  CHECK(status == HSAKMT_STATUS_ERROR);
  REQUIRE(hsaKmtSetEvent(event) == HSAKMT_STATUS_SUCCESS);
  waiter.join();
  CHECK(status == HSAKMT_STATUS_SUCCESS);
  hsaKmtDestroyEvent(event);
}

TEST_CASE(
    "a cancelled thread that is blocked in a wait leaves it by its time-out, as ioctl() is no "
    "cancellation "
    "point",
    "[events]") {
  const Thunk thunk;
  HsaEvent* event = create(false);
  REQUIRE(event != nullptr);
  std::atomic<bool> returned{false};
  std::thread waiter([&] {
    hsaKmtWaitOnEvent(event, 60);
    returned = true;
  });
  std::this_thread::sleep_for(20ms);
  REQUIRE(pthread_cancel(waiter.native_handle()) == 0);
  waiter.join();
  CHECK(returned);
  hsaKmtDestroyEvent(event);
}

TEST_CASE("a wait for any event ends with one, a wait for all needs all", "[events]") {
  const Thunk thunk;
  HsaEvent* events[] = {create(true), create(true), create(true)};
  REQUIRE(hsaKmtSetEvent(events[1]) == HSAKMT_STATUS_SUCCESS);
  CHECK(hsaKmtWaitOnMultipleEvents(events, 3, false, 0) == HSAKMT_STATUS_SUCCESS);
  CHECK(hsaKmtWaitOnMultipleEvents(events, 3, true, 20) == HSAKMT_STATUS_WAIT_TIMEOUT);
  REQUIRE(hsaKmtSetEvent(events[0]) == HSAKMT_STATUS_SUCCESS);
  REQUIRE(hsaKmtSetEvent(events[2]) == HSAKMT_STATUS_SUCCESS);
  CHECK(hsaKmtWaitOnMultipleEvents(events, 3, true, 0) == HSAKMT_STATUS_SUCCESS);
  for (HsaEvent* event : events) hsaKmtDestroyEvent(event);
}

TEST_CASE("creation fails without free signal events and works again after a destroy", "[events]") {
  const Thunk thunk;
  std::vector<HsaEvent*> events;
  while (HsaEvent* event = create(false)) {
    events.push_back(event);
    REQUIRE(events.size() <= 4095);
  }
  CHECK(events.size() == 4095);
  std::set<HSAuint64> mailboxes;
  for (HsaEvent* event : events) mailboxes.insert(value(event->EventData.HWData2));
  CHECK(mailboxes.size() == 4095);
  hsaKmtDestroyEvent(events.back());
  events.pop_back();
  HsaEvent* again = create(false);
  CHECK(again != nullptr);
  events.push_back(again);
  for (HsaEvent* event : events) REQUIRE(hsaKmtDestroyEvent(event) == HSAKMT_STATUS_SUCCESS);
}

TEST_CASE("the program cannot set system events", "[events]") {
  const Thunk thunk;
  HsaEvent* event = create(true, false, HSA_EVENTTYPE_MEMORY);
  REQUIRE(event != nullptr);
  CHECK(hsaKmtSetEvent(event) == HSAKMT_STATUS_ERROR);
  CHECK(hsaKmtWaitOnEvent(event, 10) == HSAKMT_STATUS_WAIT_TIMEOUT);
  CHECK(hsaKmtDestroyEvent(event) == HSAKMT_STATUS_SUCCESS);
}

}  // namespace
}  // namespace uptempo::vgpu
