// Streams on a device.
#include <dlfcn.h>
#include <fmt/format.h>
#include <hsa/hsa_ext_amd.h>
#include <deque>
#include <map>
#include <uptempo/kernels/basics.hpp>
#include <uptempo/kernels/probes.hpp>
#include <uptempo/uptempo.hpp>
#include <vector>

#include "test/engine/state_access.hpp"
#include "test/engine/units.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/on_device.hpp"
#include "test/support/text.hpp"

using namespace uptempo;
using namespace std::chrono_literals;
using test::contains;
using test::hardware_queue;

namespace {

// Priorities that queues were created with, which HSA does not report later.
std::map<const hsa_queue_t*, hsa_amd_queue_priority_t> priorities;

struct StreamDevice : test::OnDevice {
  Program basics{gpu, builtin_kernels::basics()};
  Program probes{gpu, builtin_kernels::probes()};
  Kernel<uint32_t*, uint32_t> chain = basics.kernel<uint32_t*, uint32_t>("chain_increment");
  Copier copier{gpu};
};

}  // namespace

// Replaces ROCr's function and calls it.
extern "C" hsa_status_t hsa_amd_queue_set_priority(hsa_queue_t* queue,
                                                   hsa_amd_queue_priority_t priority) {
  static const auto real = reinterpret_cast<decltype(&hsa_amd_queue_set_priority)>(
      dlsym(RTLD_NEXT, "hsa_amd_queue_set_priority"));
  priorities[queue] = priority;
  return real(queue, priority);
}

TEST_CASE("a chain through several streams gives the host's result, whatever launches acquire",
          "[device][stream]") {
  StreamDevice device;
  Streams streams(device.gpu, {.system_acquires = GENERATE(false, true)});
  constexpr size_t count = 1000;
  DeviceBuffer<uint32_t> values(device.gpu, count);
  std::vector<uint32_t> expected(count, 7);
  device.copier.copy(values, expected);
  std::deque<Stream> all;
  for (int i = 0; i < 9; ++i) all.emplace_back(streams);
  Event last;
  for (uint32_t step = 0; step < 500; ++step) {
    Stream& stream = all[step * 5 % all.size()];
    stream.after(last);
    stream.launch(device.chain, Grid{count}.by(64), values.data(), step);
    last = stream.record();
    for (uint32_t& value : expected) value = value * 3 + step;
  }
  last.wait();
  CHECK(test::download(device.copier, values) == expected);
}

TEST_CASE("a caller's signal may be destroyed before the stream's work has used it",
          "[device][stream]") {
  StreamDevice device;
  const PinnedBuffer<uint32_t> values(device.gpu, 1);
  values[0] = 5;
  Streams streams(device.gpu);
  Stream stream(streams);
  const Signal gate;
  stream.after(gate, GENERATE(SignalSetBy::host, SignalSetBy::device));
  {
    const Signal input, output;
    stream.after(input, GENERATE(SignalSetBy::host, SignalSetBy::device));
    stream.launch(device.chain, Grid{1}, values.data(), 1u);
    stream.signal(output);
    hsa_signal_store_screlease(input.handle(), 0);
  }
  // ROCr would give these the memory of a destroyed one.
  const std::vector<Signal> others(64);
  hsa_signal_store_screlease(gate.handle(), 0);
  CHECK(stream.synchronize(test::soon()));
  CHECK(values[0] == 16);
  for (const Signal& other : others) CHECK(hsa_signal_load_scacquire(other.handle()) == 1);
}

TEST_CASE("priority and mask reach the queue", "[device][stream][placement]") {
  StreamDevice device;
  priorities.clear();  // of queues of earlier tests, whose addresses may be used again
  Streams streams(device.gpu);
  Stream ordinary(streams), urgent(streams, {.priority = StreamPriority::high}),
      patient(streams, {.priority = StreamPriority::low}), masked(streams, {.cu_mask = {0x3}});
  // Unset, or set to normal where the queue had another owner.
  const auto of_ordinary = priorities.find(hardware_queue(ordinary));
  CHECK((of_ordinary == priorities.end() || of_ordinary->second == HSA_AMD_QUEUE_PRIORITY_NORMAL));
  CHECK(priorities.at(hardware_queue(urgent)) == HSA_AMD_QUEUE_PRIORITY_HIGH);
  CHECK(priorities.at(hardware_queue(patient)) == HSA_AMD_QUEUE_PRIORITY_LOW);
  test::ComputeUnits units(device.gpu);
  CHECK(units.of(masked) == 2);
  CHECK(units.of(ordinary) > device.gpu.properties().compute_units / 2);
  PinnedBuffer<uint32_t> values(device.gpu, 64);
  for (Stream* stream : {&ordinary, &urgent, &patient, &masked}) {
    for (uint32_t& value : values) value = 1;
    stream->launch(device.chain, Grid{64}, values.data(), 4u);
    stream->synchronize();
    for (const uint32_t value : values) REQUIRE(value == 7);
  }
  CHECK_THROWS_AS(Stream(streams, {.cu_mask = {0}}), Error);
}

TEST_CASE("a mask beyond the last compute unit is cut, and refused if nothing is left",
          "[device][stream][placement]") {
  StreamDevice device;
  Streams streams(device.gpu);
  const uint32_t units = device.gpu.properties().compute_units;
  // The word of the last units, whole, and one more.
  std::vector<uint32_t> mask(units / 32 + 2);
  mask[units / 32] = mask[units / 32 + 1] = 0xffffffff;
  uint32_t last = 0;
  for (uint32_t unit = units / 32 * 32; unit < units; ++unit) last |= 1u << (unit % 32);
  if (last != 0) {
    Stream cut(streams, {.cu_mask = mask});
    CHECK(test::ComputeUnits(device.gpu).of(cut) == units % 32);
    CHECK(contains(streams.describe(), fmt::format("0x{:08x} 0x00000000; asked for: ", last)));
    CHECK(contains(streams.describe(), ", the agent has no more"));
  }
  mask[units / 32] = 0;
  const std::string error = test::error_of<Error>([&] { Stream(streams, {.cu_mask = mask}); });
  CHECK(contains(error, fmt::format("has {} compute units", units)));
}

TEST_CASE("timed events report the device time of the work between them",
          "[device][stream][timed]") {
  StreamDevice device;
  Streams streams(device.gpu, {.hardware_queues = 2});
  Stream stream(streams), other(streams);
  const auto spin = device.probes.kernel<uint32_t*, uint32_t, uint32_t>("spin");
  DeviceBuffer<uint32_t> out(device.gpu, 64);
  TimedEvent idle, begin, middle, same, end;
  CHECK_THROWS_AS(idle.ns(), Error);
  stream.record(idle);  // nothing unfinished: the host's time
  const uint64_t idle_ns = idle.ns();
  stream.launch(spin, Grid{64}, out.data(), 1000u, 1u);
  stream.record(begin);
  const Signal gate;  // so that the work is unfinished at the next records
  stream.after(gate);
  stream.launch(spin, Grid{64}, out.data(), 20000u, 1u);
  const Counters before = Counters::now();
  stream.record(middle);
  stream.record(same);
  CHECK((Counters::now() - before).markers == 1);
  other.after(middle);
  other.launch(spin, Grid{64}, out.data(), 1000u, 1u);
  other.record(end);
  hsa_signal_store_screlease(gate.handle(), 0);
  end.wait();
  CHECK(same.ns() == middle.ns());
  CHECK(idle_ns <= begin.ns());
  CHECK(elapsed(begin, middle) > 0ns);
  CHECK(elapsed(middle, end) > 0ns);
  CHECK(elapsed(end, begin) == -(elapsed(begin, middle) + elapsed(middle, end)));
}

TEST_CASE("a timed event keeps its time over many later ones, and loses it when recorded again",
          "[device][stream][timed]") {
  StreamDevice device;
  PinnedBuffer<uint32_t> values(device.gpu, 64);
  TimedEvent first, again;
  uint64_t first_ns = 0;
  {
    Streams streams(device.gpu, {.queue = {.publications = 4}});
    Stream stream(streams);
    stream.launch(device.chain, Grid{64}, values.data(), 0u);
    stream.record(first);
    uint64_t last_ns = 0;
    for (uint32_t i = 0; i < 100; ++i) {
      stream.launch(device.chain, Grid{64}, values.data(), i);
      stream.record(again);
      if (i % 3 == 0) {
        again.wait();
        CHECK(again.ns() > last_ns);
        last_ns = again.ns();
      }
    }
    again.wait();
    first_ns = first.ns();
    CHECK(first_ns < last_ns);
    CHECK(elapsed(first, again) > 0ns);
    stream.launch(device.chain, Grid{64}, values.data(), 0u);
    stream.record(again);
  }
  CHECK(first.ns() == first_ns);
  CHECK(again.ns() > first_ns);  // the queue has finished its work
}

// A separate ctest runs this under the fence checker in its portable mode, which must find nothing.
TEST_CASE(
    "with system acquires streams emit the fences that the specification requires on any target",
    "[portable]") {
  StreamDevice device;
  Streams streams(device.gpu, {.hardware_queues = 2, .system_acquires = true});
  Stream a(streams), b(streams);
  PinnedBuffer<uint32_t> values(device.gpu, 64);
  for (uint32_t& value : values) value = 1;
  uint32_t expected = 1;
  for (uint32_t step = 0; step < 50; ++step) {
    Stream& stream = step % 3 == 0 ? a : b;
    stream.after(step % 3 == 0 ? b.record() : a.record());
    stream.launch(device.chain, Grid{64}, values.data(), step);
    expected = expected * 3 + step;
  }
  streams.synchronize();
  for (const uint32_t value : values) REQUIRE(value == expected);
}
