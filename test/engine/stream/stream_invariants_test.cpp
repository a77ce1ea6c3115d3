// One test for each rule that streams rely on. The patches of test/mutants make each test fail.
#include <algorithm>

#include "test/engine/stream/copy/many_copy_engines.hpp"
#include "test/engine/stream/stream_devices.hpp"
#include "test/support/catch.hpp"

using namespace uptempo;
using namespace uptempo::test;
using aql::Barrier;

namespace {

Barrier barrier_of_last(StreamDevices& devices) {
  return aql::header_flags(devices.ring(0).back().header()).barrier;
}

}  // namespace

TEST_CASE("Streams: a barrier bit covers the packets before its own, and not its own") {
  StreamDevices devices(paused(1));
  Stream a(devices);
  for (uint32_t i = 0; i < 3; ++i) launch(a, i);
  CHECK(barrier_of_last(devices) == Barrier::on);
  devices.resume();
  a.synchronize();
}

TEST_CASE("Streams: a signal on loan is not reused") {
  StreamDevicesOptions options = paused(2);
  options.streams.queue.publications = 4;
  StreamDevices devices(options);
  Stream a(devices), b(devices);
  launch(a, 0);
  b.after(a.record());
  launch(b, 1);
  const hsa_signal_t lent =
      aql::packet_as<hsa_barrier_and_packet_t>(devices.ring_of(b)[0]).dep_signal[0];
  devices.device_of(a).resume();
  for (uint32_t i = 2; i < 20; ++i) {
    a.synchronize();
    launch(a, i);
    devices.device_of(a).pause();
    a.record();
    CHECK(aql::load_acquire(lent) == 0);
    devices.device_of(a).resume();
  }
  devices.resume();
  devices.streams().synchronize();
}

TEST_CASE("Streams: a stream that waits for the host shares no hardware queue") {
  SignalDouble gate(1);  // outlives the packets that wait for it
  StreamDevices devices(paused(1));
  Stream a(devices), b(devices);
  a.after(gate.handle());
  CHECK(hardware_queue(a) != hardware_queue(b));
  gate.set(0);
  devices.resume();
}

TEST_CASE("Streams: a wait for a launch that closed its epoch comes after that launch") {
  StreamDevicesOptions options = paused(1);
  options.streams.epoch_packets = 2;
  StreamDevices devices(options);
  Stream a(devices), b(devices), c(devices);
  launch(a, 0);
  launch(b, 1);
  c.after(b.record());
  launch(c, 2);
  CHECK(barrier_of_last(devices) == Barrier::on);
  devices.resume();
}

TEST_CASE("Streams: copies of one stream on different engines run in order") {
  Ends ends;  // outlives copies that no later copy has waited for
  Engines engines;
  StreamDevices devices(engines.options(1 << 2, 1 << 4));
  Stream stream(devices);
  for (uint8_t round = 1; round < 100; ++round) {
    std::ranges::fill(ends.host, round);
    engines.engines[2].pause();
    ends.upload(stream);
    ends.download(stream);
    CHECK(engines.engines[4].carried_out() == round - 1u);
    engines.engines[2].resume();
    stream.synchronize();
    CHECK(ends.back == ends.host);
  }
  CHECK(begun(devices) == Counts{0, 0, 99, 0, 99, 0});
}

TEST_CASE("Streams: a stream stays on the engine of its unfinished copy") {
  Engines engines;
  engines.pause();
  StreamDevices devices(engines.options());
  Stream one(devices), other(devices);
  Ends a, b;
  for (int i = 0; i < 5; ++i) a.upload(one);
  CHECK(begun(devices) == Counts{5, 0, 0, 0, 0, 0});
  for (int i = 0; i < 3; ++i) b.upload(other);
  CHECK(begun(devices) == Counts{5, 3, 0, 0, 0, 0});
  a.download(one);  // waits for engine 0, which copies to the host, too
  CHECK(begun(devices) == Counts{6, 3, 0, 0, 0, 0});
  engines.resume();
  devices.streams().synchronize();
  CHECK(a.back == a.host);
}
