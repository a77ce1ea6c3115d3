// Packets that the processor refuses. The queue stops with the bit that ROCr's handler reads, and
// other queues continue.
#include <cstring>
#include <utility>
#include <vector>

#include "device_fixture.hpp"
#include "test/support/catch.hpp"

using namespace uptempo::vgpu;
using namespace uptempo::vgpu::test;

namespace {

// The bit of an exception that ROCr 6.4 turns into a status (its table QueueErrors).
constexpr uint64_t exception(unsigned code) { return uint64_t{1} << (code - 1); }

// Submits one packet and returns the value of queue_inactive_signal afterwards. The exception is
// reported after RUNTIME_ENABLE only, once.
template <typename Packet>
uint64_t error_of(DeviceFixture& device, const Packet& packet, uint64_t exceptions = 0) {
  ComputeQueue queue(device);
  amd_signal_t* behind = device.signal(1);
  queue.write(packet);
  queue.write(barrier_and({}, false, behind));
  queue.ring();
  if (!eventually([&] { return queue.error() != 0; })) return 0;
  CHECK(eventually([&] { return device.interrupts.raised(queue.error_event()) == 1; }));
  // The exception follows the signal.
  CHECK(eventually(
      [&] { return device.interrupts.raised(queue.exception_event()) == (exceptions != 0); }));
  // The queue stays stopped, and its fields stay unchanged.
  settle();
  CHECK(DeviceFixture::value(behind) == 1);
  CHECK(queue.read_index() == 0);
  CHECK(queue.exceptions() == exceptions);
  CHECK(device.interrupts.raised(queue.exception_event()) == (exceptions != 0));
  return queue.error();
}

}  // namespace

TEST_CASE("a malformed dispatch stops its queue with the matching error bit") {
  DeviceFixture device;
  ScriptedKernel* kernel = device.kernel();
  ScriptedKernel* with_kernargs = device.kernel();
  with_kernargs->kernarg_bytes = 64;
  ScriptedKernel* with_segments = device.kernel();
  with_segments->group_segment_bytes = 1024;
  with_segments->private_segment_bytes = 16;
  ScriptedKernel* bad_kernel = device.kernel();
  bad_kernel->rejected = QueueError::too_many_registers;
  ScriptedKernel* large_kernel = device.kernel();
  large_kernel->vgprs = 136;
  struct Row {
    const char* mistake;
    QueueError error;
    std::function<void(hsa_kernel_dispatch_packet_t&)> make;
  };
  const std::vector<Row> rows{
      {"reserved header bit", QueueError::packet_format,
       [](auto& packet) { packet.header |= 0x2000; }},
      {"acquire scope 3", QueueError::packet_format,
       [](auto& packet) { packet.header |= 3 << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE; }},
      {"release scope 3", QueueError::packet_format,
       [](auto& packet) { packet.header |= 3 << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE; }},
      {"no dimension", QueueError::invalid_dimensions, [](auto& packet) { packet.setup = 0; }},
      {"empty grid", QueueError::invalid_dimensions, [](auto& packet) { packet.grid_size_x = 0; }},
      {"empty workgroup", QueueError::invalid_dimensions,
       [](auto& packet) { packet.workgroup_size_x = 0; }},
      {"a dimension count of 4, of which two bits are read", QueueError::invalid_dimensions,
       [](auto& packet) { packet.setup = 4; }},
      {"an empty grid in a declared dimension", QueueError::invalid_dimensions,
       [](auto& packet) {
         packet.setup = 2;
         packet.grid_size_y = 0;
       }},
      {"more than 2^62 workgroups", QueueError::invalid_dimensions,
       [](auto& packet) {
         packet.setup = 3;
         packet.grid_size_x = packet.grid_size_y = packet.grid_size_z = 1u << 31;
       }},
      {"workgroups whose number has 96 bits", QueueError::invalid_dimensions,
       [](auto& packet) {
         packet.setup = 3;
         packet.grid_size_x = packet.grid_size_y = packet.grid_size_z = 0xffffffff;
         packet.workgroup_size_x = 1;
       }},
      {"more than 1024 work-items", QueueError::workgroup_too_large,
       [](auto& packet) {
         packet.setup = 2;
         packet.grid_size_y = 64;
         packet.workgroup_size_x = 64;
         packet.workgroup_size_y = 17;
       }},
      {"group segment beyond the device's", QueueError::group_memory,
       [](auto& packet) { packet.group_segment_size = 65537; }},
      {"null kernel object", QueueError::invalid_code_object,
       [](auto& packet) { packet.kernel_object = 0; }},
      {"unmapped kernel object", QueueError::invalid_code_object,
       [](auto& packet) { packet.kernel_object = 0x1000; }},
      {"a kernel that the instruction set refuses", QueueError::too_many_registers,
       [=](auto& packet) { packet.kernel_object = DeviceFixture::address(bad_kernel); }},
      {"a workgroup whose waves fit on no compute unit together", QueueError::too_many_registers,
       [=](auto& packet) {
         packet.kernel_object = DeviceFixture::address(large_kernel);
         packet.workgroup_size_x = 1024;
       }},
      {"unaligned kernargs", QueueError::packet_format,
       [=](auto& packet) {
         packet.kernel_object = DeviceFixture::address(with_kernargs);
         packet.kernarg_address = reinterpret_cast<std::byte*>(with_kernargs) + 8;
       }},
      {"group segment smaller than the kernel's", QueueError::group_memory,
       [=](auto& packet) {
         packet.kernel_object = DeviceFixture::address(with_segments);
         packet.private_segment_size = 16;
       }},
      {"private segment smaller than the kernel's", QueueError::packet_format,
       [=](auto& packet) {
         packet.kernel_object = DeviceFixture::address(with_segments);
         packet.group_segment_size = 1024;
       }},
  };
  for (const Row& row : rows) {
    CAPTURE(row.mistake);
    auto packet = dispatch(kernel, 64, 64);
    row.make(packet);
    CHECK(error_of(device, packet) == static_cast<uint64_t>(row.error));
  }
}

TEST_CASE("after RUNTIME_ENABLE an error is also an exception of the queue's save area") {
  DeviceFixture device;
  ScriptedKernel* const kernel = device.kernel();
  device.device->reports_exceptions = true;
  auto packet = dispatch(kernel, 64, 64);
  packet.header |= 0x2000;
  CHECK(error_of(device, packet, exception(20)) ==
        static_cast<uint64_t>(QueueError::packet_format));
  packet = dispatch(kernel, 64, 64);
  packet.setup = 0;
  CHECK(error_of(device, packet, exception(16)) ==
        static_cast<uint64_t>(QueueError::invalid_dimensions));
  packet = dispatch(kernel, 64, 64);
  packet.group_segment_size = 65537;
  CHECK(error_of(device, packet, exception(17)) == static_cast<uint64_t>(QueueError::group_memory));
  packet = dispatch(kernel, 64, 64);
  packet.kernel_object = 0;
  CHECK(error_of(device, packet, exception(18)) ==
        static_cast<uint64_t>(QueueError::invalid_code_object));
  packet = dispatch(kernel, 64, 64);
  packet.setup = 2;
  packet.grid_size_y = 64;
  packet.workgroup_size_y = 17;
  CHECK(error_of(device, packet, exception(21)) ==
        static_cast<uint64_t>(QueueError::workgroup_too_large));
  const std::vector<std::pair<QueueError, unsigned>> of_kernels{
      {QueueError::too_many_registers, 22},
      {QueueError::illegal_instruction, 4},
      {QueueError::aperture_violation, 6},
      {QueueError::trap, 1}};
  for (const auto& [error, code] : of_kernels) {
    CAPTURE(code);
    ScriptedKernel* const bad_kernel = device.kernel();  // another one: the device keeps decisions
    bad_kernel->rejected = error;
    CHECK(error_of(device, dispatch(bad_kernel, 64, 64), exception(code)) ==
          static_cast<uint64_t>(error));
  }
}

TEST_CASE("a save area that is not mapped, or names no word, ends nothing but the queue") {
  DeviceFixture device;
  device.device->reports_exceptions = true;
  auto packet = dispatch(device.kernel(), 64, 64);
  packet.setup = 0;
  for (uint64_t* const word : {static_cast<uint64_t*>(nullptr), reinterpret_cast<uint64_t*>(0x1000),
                               reinterpret_cast<uint64_t*>(0x1001)}) {
    ComputeQueue queue(device);
    std::memcpy(queue.save_area + 6, &word, sizeof word);
    queue.submit(packet);
    CHECK(eventually([&] { return queue.error() != 0; }));
    CHECK(queue.exceptions() == 0);
  }
}

TEST_CASE("the eight bytes before the completion signal may hold a profiler's correlation id") {
  DeviceFixture device;
  ComputeQueue queue(device);
  amd_signal_t* done = device.signal(2);
  auto kernel_packet = dispatch(device.kernel(), 1, 1, false, done);
  kernel_packet.reserved2 = 0x1234;
  auto barrier_packet = barrier_and({}, false, done);
  barrier_packet.reserved2 = 0x1234;
  queue.write(kernel_packet);
  queue.submit(barrier_packet);
  CHECK(fires(done));
}

TEST_CASE("the error names a packet of another type") {
  DeviceFixture device;
  hsa_agent_dispatch_packet_t agent{};
  agent.header = header_of(HSA_PACKET_TYPE_AGENT_DISPATCH);
  CHECK(error_of(device, agent) == static_cast<uint64_t>(QueueError::packet_format));
  auto unknown = barrier_and();
  unknown.header = 9;
  CHECK(error_of(device, unknown) == static_cast<uint64_t>(QueueError::packet_format));
  auto vendor = barrier_value(nullptr, HSA_SIGNAL_CONDITION_EQ, 0);
  vendor.header.AmdFormat = 7;
  CHECK(error_of(device, vendor) == static_cast<uint64_t>(QueueError::invalid_vendor_packet));
  CHECK(error_of(device, barrier_value(nullptr, 4, 0)) ==
        static_cast<uint64_t>(QueueError::invalid_vendor_packet));
}

TEST_CASE("a doorbell signal cannot complete a packet") {
  DeviceFixture device;
  amd_signal_t* doorbell = device.signal(1);
  doorbell->kind = AMD_SIGNAL_KIND_DOORBELL;
  ComputeQueue queue(device);
  queue.submit(barrier_and({}, false, doorbell));
  CHECK(eventually(
      [&] { return queue.error() == static_cast<uint64_t>(QueueError::packet_format); }));
  CHECK(DeviceFixture::value(doorbell) == 1);
}

TEST_CASE("a signal outside the address space is a GPU memory fault and stops the queue") {
  DeviceFixture device;
  bool as_dependency = false;
  SECTION("as completion signal") { as_dependency = false; }
  SECTION("as dependency") { as_dependency = true; }
  ComputeQueue queue(device);
  auto* outside = reinterpret_cast<amd_signal_t*>(0x40);
  amd_signal_t* behind = device.signal(1);
  queue.write(as_dependency ? barrier_and({outside}) : barrier_and({}, false, outside));
  queue.write(barrier_and({}, false, behind));
  queue.ring();
  REQUIRE(eventually([&] { return device.interrupts.faults().size() == 1; }));
  const MemoryFault fault = device.interrupts.faults().front();
  CHECK(fault.address == 0x40);
  CHECK_FALSE(fault.present);
  settle();
  CHECK(DeviceFixture::value(behind) == 1);
}

TEST_CASE("PM4 in a vendor packet: ACQUIRE_MEM and NOP complete, the error names any other") {
  struct Row {
    std::vector<uint32_t> commands;
    QueueError error;
  };
  const auto type3 = [](uint32_t opcode, uint32_t dwords) {
    return 3u << 30 | (dwords - 2) << 16 | opcode << 8;
  };
  const std::vector<Row> rows{
      {{type3(0x58, 7), 0x28840000, ~0u, 0xff, 0, 0, 0}, QueueError::none},
      {{2u << 30, type3(0x10, 2), 0, 2u << 30}, QueueError::none},
      {{3u << 30 | 0x3fff << 16 | 0x10 << 8, 2u << 30}, QueueError::none},  // a NOP of one dword
      {{type3(0x49, 7), 0, 0, 0, 0, 0, 0}, QueueError::invalid_vendor_packet},
      {{type3(0x58, 7), 0}, QueueError::invalid_vendor_packet},
      {{0}, QueueError::invalid_vendor_packet},
  };
  DeviceFixture device;
  for (const Row& row : rows) {
    CAPTURE(row.commands.front());
    auto* buffer = device.allocate_object<uint32_t>(64);
    std::memcpy(buffer, row.commands.data(), row.commands.size() * 4);
    struct {
      uint16_t header, format;
      uint32_t jump[4], remaining, reserved[8];
      hsa_signal_t completion;
    } packet{};
    amd_signal_t* done = device.signal(1);
    packet.header = header_of(HSA_PACKET_TYPE_VENDOR_SPECIFIC);
    packet.format = 1;
    packet.jump[0] = type3(0x3f, 4);
    packet.jump[1] = static_cast<uint32_t>(DeviceFixture::address(buffer));
    packet.jump[2] = static_cast<uint32_t>(DeviceFixture::address(buffer) >> 32);
    packet.jump[3] = static_cast<uint32_t>(row.commands.size()) | 1u << 23;
    packet.remaining = 10;
    packet.completion = DeviceFixture::handle(done);
    if (row.error != QueueError::none) {
      CHECK(error_of(device, packet) == static_cast<uint64_t>(row.error));
      continue;
    }
    ComputeQueue queue(device);
    queue.submit(packet);
    CHECK(fires(done));
  }
}

TEST_CASE(
    "a kernel that faults stops its queue: its packets never complete, its other dispatches end, "
    "and other "
    "queues continue") {
  DeviceFixture device;
  ComputeQueue queue(device);
  ComputeQueue other(device);
  bool memory_fault = false;
  SECTION("with an illegal instruction") { memory_fault = false; }
  SECTION("with a memory access") { memory_fault = true; }
  std::atomic<bool> endless_runs{false};
  ScriptedKernel* endless = device.kernel([&](const Slice&) {
    endless_runs = true;
    return Result::preempted;
  });
  ScriptedKernel* faulty = device.kernel([&](const Slice& slice) {
    if (slice.id[0] != 3) return Result::ended;
    gfx9::Executor::Fault fault;
    if (memory_fault) {
      fault.memory = MemoryFault{.address = 0xbad000,
                                 .access = Access::write,
                                 .present = false,
                                 .where = "kernel faulty, workgroup (3,0,0)"};
    } else {
      fault.error = QueueError::illegal_instruction;
      fault.message = "s_bogus";
    }
    slice.executor.fault = fault;
    return Result::faulted;
  });
  amd_signal_t* first = device.signal(1);
  amd_signal_t* second = device.signal(1);
  queue.submit(dispatch(endless, 16, 1, false, first));
  REQUIRE(eventually([&] { return endless_runs.load(); }));
  queue.submit(dispatch(faulty, 64, 1, false, second));
  if (memory_fault) {
    REQUIRE(eventually([&] { return device.interrupts.faults().size() == 1; }));
    CHECK(device.interrupts.faults().front().address == 0xbad000);
    CHECK(queue.error() == 0);
  } else {
    REQUIRE(eventually(
        [&] { return queue.error() == static_cast<uint64_t>(QueueError::illegal_instruction); }));
  }
  amd_signal_t* elsewhere = device.signal(1);
  other.submit(dispatch(device.kernel(), 64, 1, false, elsewhere));
  CHECK(fires(elsewhere));
  CHECK(DeviceFixture::value(first) == 1);
  CHECK(DeviceFixture::value(second) == 1);
  // The endless kernel has ended too.
  CHECK(eventually([&] {
    endless_runs = false;
    settle();
    return !endless_runs;
  }));
}

TEST_CASE("a ring that is not mapped for the GPU is a memory fault, not a crash") {
  DeviceFixture device;
  ComputeQueueConfig config;
  config.ring = 0x10000;
  config.ring_bytes = 4096;
  config.read_index = 0x20080;
  config.write_index = 0x20038;
  config.doorbell = device.doorbell(~uint64_t{0}).alias;
  const QueueId id = device.processor->create_compute_queue(config);
  CHECK(eventually([&] { return device.interrupts.faults().size() == 1; }));
  CHECK(device.interrupts.faults().front().address == 0x10000);
  CHECK(device.processor->destroy_queue(id));
}

TEST_CASE("a ring whose size is not a power of two is refused with an exception") {
  DeviceFixture device;
  ComputeQueueConfig config;
  config.ring_bytes = 100;
  CHECK_THROWS_AS(device.processor->create_compute_queue(config), std::invalid_argument);
}
