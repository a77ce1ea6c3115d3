// Streams that move.
#include <utility>

#include "test/engine/stream/stream_devices.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"

using namespace uptempo;
using namespace uptempo::test;

TEST_CASE("a stream that is moved keeps its order, its waits and its queue", "[stream]") {
  StreamDevices devices;
  Stream other(devices);
  launch(other, 0);
  Stream first(devices);
  first.after(other.record());
  Stream moved(std::move(first));
  launch(moved, 1);
  Stream assigned(devices);
  launch(assigned, 2);
  assigned = std::move(moved);
  launch(assigned, 3);
  Stream& same = assigned;
  assigned = std::move(same);
  launch(assigned, 4);
  devices.streams().synchronize();
  CHECK(devices.log.is_before(0, 1));
  CHECK(devices.log.is_before(1, 3));
  CHECK(devices.log.is_before(3, 4));
  CHECK(devices.log.ended(2) != 0);
}

TEST_CASE("a stream that was moved from refuses every call until another is assigned to it",
          "[stream]") {
  StreamDevices devices;
  Stream stream(devices);
  launch(stream, 0);
  Stream moved(std::move(stream));
  const auto refuses = [](auto&& call) {
    return contains(error_of<Error>(call), "this one was moved from");
  };
  TimedEvent timed;
  SignalDouble signal(1);
  uint32_t word = 0;
  const auto target = CopyTarget::pinned(&word, sizeof(word));
  const auto source = CopySource::pinned(&word, sizeof(word));
  CHECK(refuses([&] { launch(stream, 1); }));
  CHECK(refuses([&] { stream.record(); }));
  CHECK(refuses([&] { stream.record(timed); }));
  CHECK(refuses([&] { stream.after(Event()); }));
  CHECK(refuses([&] { stream.after(signal.handle()); }));
  CHECK(refuses([&] { stream.signal(signal.handle()); }));
  CHECK(refuses([&] { stream.copy(target, source); }));
  CHECK(refuses([&] { stream.fill(target, word); }));
  CHECK(refuses([&] { stream.synchronize(); }));
  CHECK(refuses([&] { (void)stream.ready(); }));
  CHECK(refuses([&] { (void)stream.agent(); }));
  stream = std::move(moved);
  launch(stream, 1);
  stream.synchronize();
  CHECK(devices.log.is_before(0, 1));
}
