// The packet trace, as device/trace.hpp describes it.
#include "cp/doorbell/doorbell_lines.hpp"
#include "device_fixture.hpp"
#include "test/support/catch.hpp"
#include "test/support/text.hpp"

using namespace uptempo::vgpu;
using namespace uptempo::vgpu::test;
using uptempo::test::contains;

namespace {

std::vector<std::string> lines_with(const std::vector<std::string>& lines,
                                    const std::string& part) {
  std::vector<std::string> result;
  for (const std::string& line : lines)
    if (contains(line, part)) result.push_back(line);
  return result;
}

}  // namespace

TEST_CASE(
    "packets are traced with their header, geometry, kernarg and times, in order of completion") {
  DeviceFixture device(traced());
  ComputeQueue first(device);
  ComputeQueue queue(device);
  amd_signal_t* done = device.signal(1);
  auto packet = dispatch(device.kernel(), 256, 64);
  packet.header = header_of(HSA_PACKET_TYPE_KERNEL_DISPATCH, true, HSA_FENCE_SCOPE_SYSTEM,
                            HSA_FENCE_SCOPE_AGENT);
  packet.kernarg_address = reinterpret_cast<void*>(0x1230);
  queue.write(packet);
  queue.write(barrier_and({}, true, done));
  queue.ring();
  REQUIRE(fires(done));
  const auto lines = device.trace_lines();
  const auto packets = lines_with(lines, "\"index\"");
  REQUIRE(packets.size() == 2);
  CHECK(contains(
      packets[0],
      R"({"queue":1,"index":0,"type":"kernel_dispatch","barrier":true,"acquire":"system","release":"agent","completion_signal":false,"kernel":"0x)"));
  CHECK(contains(packets[0],
                 R"(","grid":[256,1,1],"workgroup":[64,1,1],"kernarg":4656,"start_ns":)"));
  CHECK(contains(
      packets[1],
      R"({"queue":1,"index":1,"type":"barrier_and","barrier":true,"acquire":"none","release":"none","completion_signal":true,"start_ns":)"));
  CHECK_FALSE(contains(packets[1], "grid"));
  const auto bells = lines_with(lines, "\"doorbell\"");
  REQUIRE(bells.size() == 1);
  CHECK(contains(bells[0], R"({"type":"doorbell","queue":1,"value":1,"ns":)"));
}

TEST_CASE("deterministic runs give the same trace, times aside", "[prompt]") {
  const auto run = [] {
    Options options = traced();
    options.deterministic = true;
    DeviceFixture device(options);
    ComputeQueue queue(device);
    ScriptedKernel* kernel = device.kernel([](const Slice& slice) {
      return slice.turn == slice.id[0] % 4 ? Result::ended : Result::preempted;
    });
    amd_signal_t* done = device.signal(1);
    for (uint32_t index = 0; index < 20; ++index)
      queue.write(dispatch(kernel, 64 * (index + 1), 64));
    queue.write(barrier_and({}, true, done));
    queue.ring();
    std::vector<std::string> result;
    if (!fires(done)) return result;
    for (const std::string& line : device.trace_lines()) {
      // Times and addresses differ between two devices in one process. Index and order must not.
      result.push_back(line.substr(0, line.find("\"kernel\""))
                           .substr(0, line.find("\"ns\""))
                           .substr(0, line.find("\"start_ns\"")));
    }
    return result;
  };
  const auto first = run();
  REQUIRE(first.size() == 22);
  CHECK(run() == first);
}

TEST_CASE("every doorbell is traced, also one that is overwritten at once") {
  DeviceFixture device(traced());
  ComputeQueue queue(device, 1024);
  amd_signal_t* done = device.signal(500);
  for (uint64_t index = 0; index < 500; ++index) {
    queue.write(barrier_and({}, false, done));
    queue.ring(index);
  }
  REQUIRE(fires(done));
  // The write index may admit the last packet before the device takes the note of its doorbell.
  std::vector<std::string> bells;
  CHECK(eventually([&] {
    bells = lines_with(device.trace_lines(), "\"doorbell\"");
    return bells.size() >= 500;
  }));
  REQUIRE(bells.size() == 500);
  for (size_t index = 0; index < bells.size(); ++index)
    CHECK(contains(bells[index], "\"value\":" + std::to_string(index) + ","));
}

TEST_CASE("a doorbell that a kernel rings is traced like one of the program's, once") {
  DeviceFixture device(traced());
  ComputeQueue parent(device);
  ComputeQueue child(device);
  amd_signal_t* inner = device.signal(1);
  amd_signal_t* outer = device.signal(1);
  const uint64_t index = child.write(barrier_and({}, false, inner));
  ScriptedKernel* ringer = device.kernel([&](const Slice& slice) {
    if (slice.turn == 0)
      std::atomic_ref<uint64_t>(*child.bell.alias).store(index, std::memory_order_release);
    return DeviceFixture::value(inner) == 0 ? Result::ended : Result::preempted;
  });
  parent.submit(dispatch(ringer, 1, 1, false, outer));
  REQUIRE(fires(outer));
  child.submit(barrier_and({}, false, outer));
  REQUIRE(eventually([&] { return DeviceFixture::value(outer) == -1; }));
  const auto lines = device.trace_lines();
  CHECK(lines_with(lines, R"({"type":"doorbell","queue":0,)").size() == 1);
  const auto rung = lines_with(lines, R"({"type":"doorbell","queue":1,)");
  REQUIRE(rung.size() == 2);
  CHECK(contains(rung[0], R"("value":0,)"));
  CHECK(contains(rung[1], R"("value":1,)"));
}

TEST_CASE("a doorbell has one line, whether it is noted first or found first") {
  DoorbellLines lines;
  CHECK(lines.noted(7, 100));
  CHECK_FALSE(lines.found(7, 200));
  CHECK(lines.found(8, 400));
  CHECK_FALSE(lines.noted(8, 300));
  // Overwritten before it was read, or rung by a kernel.
  CHECK(lines.noted(9, 500));
  CHECK(lines.noted(10, 510));
  CHECK_FALSE(lines.found(10, 520));
  CHECK(lines.found(11, 600));
  // The same value, rung later than it was found.
  CHECK(lines.noted(11, 700));
}

TEST_CASE("a doorbell has one line though a full buffer is noted before the queue reports it") {
  DoorbellLines lines;
  CHECK(lines.noted(0, 0));
  for (uint64_t value = 1; value <= DoorbellWatch::kRecords; ++value)
    CHECK(lines.noted(value, value));
  CHECK_FALSE(lines.found(0, 10'000));
}

TEST_CASE("doorbells that only one side sees are dropped eventually") {
  DoorbellLines lines;
  for (uint64_t value = 0; value < 10'000; ++value) CHECK(lines.noted(value, value));
  CHECK_FALSE(lines.found(9'999, 10'000));
  CHECK(lines.found(0, 10'000));
}
