// Packets that --inject tears (the processor reads zeros after the first four bytes), packets
// without times, and copies that move nothing.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "device/inject/injector.hpp"
#include "device_fixture.hpp"
#include "sdma_ring.hpp"
#include "test/support/catch.hpp"
#include "test/support/text.hpp"

using namespace uptempo::vgpu;
using namespace uptempo::vgpu::test;

namespace {

// Tears the first packet of the first queue.
struct TornDevice {
  Injector injector{parse_inject_rules("packet queue=0 torn")};
  DeviceFixture fixture;
  TornDevice() { fixture.device->injector = &injector; }
  bool was_torn() const { return injector.counts(0).injected == 1; }
};

template <typename Packet>
uint64_t error_of_torn(const Packet& packet) {
  TornDevice device;
  ComputeQueue queue(device.fixture);
  amd_signal_t* const behind = device.fixture.signal(1);
  queue.write(packet);
  queue.write(barrier_and({}, false, behind));
  queue.ring();
  REQUIRE(eventually([&] { return queue.error() != 0; }));
  settle();
  CHECK(device.was_torn());
  CHECK(DeviceFixture::value(behind) == 1);
  CHECK(queue.read_index() == 0);
  return queue.error();
}

// A packet of any type and format whose other bytes are zero.
hsa_barrier_and_packet_t packet_of(uint16_t header, uint8_t format = 0) {
  hsa_barrier_and_packet_t packet{};
  packet.header = header;
  packet.reserved0 = format;
  return packet;
}

}  // namespace

TEST_CASE("torn packets of a type that the processor refuses stop the queue", "[inject]") {
  CHECK(error_of_torn(packet_of(header_of(HSA_PACKET_TYPE_AGENT_DISPATCH))) ==
        static_cast<uint64_t>(QueueError::packet_format));
  CHECK(error_of_torn(packet_of(7)) == static_cast<uint64_t>(QueueError::packet_format));
  CHECK(error_of_torn(packet_of(header_of(HSA_PACKET_TYPE_BARRIER_AND) | 0x2000)) ==
        static_cast<uint64_t>(QueueError::packet_format));
  CHECK(error_of_torn(packet_of(header_of(HSA_PACKET_TYPE_VENDOR_SPECIFIC), 9)) ==
        static_cast<uint64_t>(QueueError::invalid_vendor_packet));
}

TEST_CASE("a torn barrier waits for nothing and signals nothing", "[inject]") {
  TornDevice device;
  ComputeQueue queue(device.fixture);
  amd_signal_t* const never = device.fixture.signal(1);
  amd_signal_t* const lost = device.fixture.signal(1);
  amd_signal_t* const behind = device.fixture.signal(1);
  queue.write(barrier_and({never}, false, lost));
  queue.write(barrier_and({}, false, behind));
  queue.ring();
  CHECK(fires(behind));
  CHECK(device.was_torn());
  CHECK(DeviceFixture::value(lost) == 1);
}

// A null dependency never satisfies an OR (hsa.h, dep_signal).
TEST_CASE("a torn barrier-OR waits forever", "[inject]") {
  TornDevice device;
  ComputeQueue queue(device.fixture);
  amd_signal_t* const satisfied = device.fixture.signal(0);
  amd_signal_t* const behind = device.fixture.signal(1);
  queue.write(barrier_or({satisfied}, false, nullptr));
  queue.write(barrier_and({}, false, behind));
  queue.ring();
  REQUIRE(eventually([&] { return device.was_torn(); }));
  device.fixture.end_turn();
  device.fixture.end_turn();
  settle();
  CHECK(DeviceFixture::value(behind) == 1);
}

TEST_CASE("the signal of an untimed packet keeps its times, others get theirs", "[inject]") {
  Injector injector(parse_inject_rules("packet queue=0 untimed nth=2 count=2"));
  DeviceFixture device(traced());
  device.device->injector = &injector;
  ComputeQueue queue(device);
  queue.set_property(AMD_QUEUE_PROPERTIES_ENABLE_PROFILING, true);
  amd_signal_t* const blocker = device.signal(1);
  std::array<amd_signal_t*, 4> done{};
  for (amd_signal_t*& signal : done) {
    signal = device.signal(1);
    signal->start_ts = 5;
    signal->end_ts = 6;
  }
  ScriptedKernel* const kernel = device.kernel();
  queue.write(dispatch(kernel, 1, 1, true, done[0]));
  queue.write(dispatch(kernel, 1, 1, true, done[1]));
  queue.write(barrier_and({blocker}, true, done[2]));  // looked at several times
  queue.write(dispatch(kernel, 1, 1, true, done[3]));
  queue.ring();
  REQUIRE(fires(done[1]));
  device.end_turn();
  DeviceFixture::set(blocker, 0);
  queue.ring();
  REQUIRE(fires(done[3]));
  for (const size_t index : {size_t{0}, size_t{3}}) {
    CHECK(done[index]->start_ts > 5);
    CHECK(done[index]->end_ts >= done[index]->start_ts);
  }
  for (const size_t index : {size_t{1}, size_t{2}}) {
    CHECK(done[index]->start_ts == 5);
    CHECK(done[index]->end_ts == 6);
  }
  CHECK(injector.counts(0).injected == 2);
  // The trace has the times of the device's own clock.
  for (const std::string& line : device.trace_lines())
    CHECK_FALSE(uptempo::test::contains(line, "\"start_ns\":0,"));
}

TEST_CASE("a lost copy or fill completes without a byte moved", "[inject]") {
  Injector injector(parse_inject_rules("copy lost nth=2 count=2"));
  DeviceFixture device;
  device.device->injector = &injector;
  SdmaRing ring(device);
  constexpr uint32_t kBytes = 100'003;  // more than one turn's share
  auto* const source = static_cast<uint8_t*>(device.allocate(kBytes));
  std::fill_n(source, kBytes, uint8_t{9});
  std::array<uint8_t*, 4> targets{};
  amd_signal_t* const done = device.signal(4, 77);
  for (size_t index = 0; index < targets.size(); ++index) {
    targets[index] = static_cast<uint8_t*>(device.allocate(kBytes));
    ring.write(index == 2 ? fill(targets[index], 0x09090909, kBytes / 4)
                          : copy(targets[index], source, kBytes));
    ring.write(decrement(const_cast<int64_t*>(&done->value)));
  }
  ring.write(fence(reinterpret_cast<void*>(done->event_mailbox_ptr), 77));
  ring.submit(trap(77));
  REQUIRE(eventually([&] { return device.interrupts.raised(77) == 1; }));
  CHECK(DeviceFixture::value(done) == 0);
  for (const size_t index : {size_t{0}, size_t{3}})
    CHECK(std::count(targets[index], targets[index] + kBytes, 9) == kBytes);
  for (const size_t index : {size_t{1}, size_t{2}})
    CHECK(std::count(targets[index], targets[index] + kBytes, 0) == kBytes);
  CHECK(injector.counts(0).matched == 4);
  CHECK(injector.counts(0).injected == 2);
}

TEST_CASE("a lost copy of a box moves no byte, and data in the ring is no copy", "[inject]") {
  Injector injector(parse_inject_rules("copy lost every=1"));
  DeviceFixture device;
  device.device->injector = &injector;
  SdmaRing ring(device);
  auto* const words = device.allocate_object<uint32_t>(64);
  words[0] = 9;
  // 1 x 1 x 1 element of four bytes, from words[0] to words[32].
  ring.write({1u | 4u << 8 | 2u << 29, low(words), high(words), 0, 0, 0, low(words + 32),
              high(words + 32), 0, 0, 0, 0, 0});
  ring.submit(write_data(words + 33, {8}));
  REQUIRE(ring.drained());
  CHECK(words[32] == 0);
  CHECK(words[33] == 8);
  CHECK(injector.counts(0).injected == 1);
}
