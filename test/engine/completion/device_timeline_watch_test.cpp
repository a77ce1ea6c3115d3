// The end of the Runtime as a timeline's owner sees it.
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include <uptempo/completion/timeline_watch.hpp>
#include <uptempo/runtime/runtime.hpp>
#include <uptempo/runtime/signal.hpp>
#include "test/support/catch.hpp"

using namespace std::chrono_literals;
using namespace uptempo;

TEST_CASE("the end of the Runtime fails and closes a watched timeline", "[timeline_watch]") {
  std::optional<Runtime> runtime(std::in_place);
  Timeline& timeline = Timeline::acquire(17);
  const Signal signal;
  const uint64_t lost = timeline.begin(signal.handle());
  detail::TimelineWatch watch(Session::current());
  watch.start(timeline, runtime->gpu());
  CHECK(watch.usable());
  CHECK_FALSE(timeline.failed());
  runtime.reset();
  CHECK_FALSE(watch.usable());
  CHECK(timeline.failed());
  CHECK(timeline.failure().status == HSA_STATUS_ERROR_NOT_INITIALIZED);
  CHECK(timeline.failure().text == "the Runtime was destroyed");
  CHECK_FALSE(timeline.is_done(lost));
  watch.stop();
  timeline.release();
}

// Otherwise the timeline could be released, and fail and close for the next queue.
TEST_CASE("a watch that stops waits until the end of the Runtime is done with the timeline",
          "[timeline_watch]") {
  std::optional<Runtime> runtime(std::in_place);
  Timeline& timeline = Timeline::acquire(19);
  const Signal signal;
  const uint64_t value = timeline.begin(signal.handle());
  detail::TimelineWatch watch(Session::current());
  watch.start(timeline, runtime->gpu());
  // A reader keeps the timeline from closing.
  hsa_signal_t found{0};
  REQUIRE(timeline.begin_sleep(value, found) == Timeline::SleepRole::leads);
  std::thread destroyer([&] { runtime.reset(); });
  while (!timeline.failed()) std::this_thread::sleep_for(100us);

  std::atomic<bool> stopped{false};
  std::thread owner([&] {
    watch.stop();
    stopped = true;
  });
  std::this_thread::sleep_for(30ms);
  CHECK_FALSE(stopped);
  timeline.end_sleep(value);
  destroyer.join();
  owner.join();
  CHECK(stopped);
  timeline.release();
}
