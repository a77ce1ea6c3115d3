// Packets that --inject tears: the processor reads zeros after the first four bytes.
#include <cstring>

#include "device/inject/injector.hpp"
#include "device_fixture.hpp"
#include "test/support/catch.hpp"

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
