// SDMA packets, encoded by hand as ROCr encodes them on gfx9.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "cp/packet/sdma_packet.hpp"
#include "device/clock.hpp"
#include "device_fixture.hpp"
#include "sdma_ring.hpp"
#include "test/support/catch.hpp"

using namespace uptempo::vgpu;
using namespace uptempo::vgpu::test;

TEST_CASE("a copy as ROCr submits it: dependency, times, flush, copy, signal, mailbox, interrupt") {
  DeviceFixture device;
  SdmaRing ring(device);
  constexpr uint32_t bytes = 100'003;
  auto* source = static_cast<uint8_t*>(device.allocate(bytes + 1));
  auto* destination = static_cast<uint8_t*>(device.allocate(bytes + 1));
  std::iota(source, source + bytes + 1, uint8_t{1});
  amd_signal_t* dependency = device.signal(1ll << 33 | 1);
  amd_signal_t* done = device.signal(1, 77);
  auto* dependency_words = reinterpret_cast<uint32_t*>(const_cast<int64_t*>(&dependency->value));
  ring.write(poll(dependency_words + 1, 0));
  ring.write(poll(dependency_words, 0));
  ring.write(timestamp(&done->start_ts));
  ring.write(hdp_flush());
  ring.write(copy(destination, source, bytes));
  ring.write(timestamp(&done->end_ts));
  ring.write(decrement(const_cast<int64_t*>(&done->value)));
  ring.write(fence(reinterpret_cast<void*>(done->event_mailbox_ptr), 77));
  ring.submit(trap(77));
  settle();
  CHECK(DeviceFixture::value(done) == 1);
  DeviceFixture::set(dependency, 1);
  CHECK(eventually([&] { return ring.read() == 24; }));  // the upper half is 0 now
  settle();
  CHECK(ring.read() == 24);  // the lower half not yet
  const uint64_t before = gpu_clock_ticks();
  DeviceFixture::set(dependency, 0);
  REQUIRE(eventually([&] { return device.interrupts.raised(77) == 1; }));
  CHECK(DeviceFixture::value(done) == 0);
  CHECK(std::memcmp(source, destination, bytes) == 0);
  CHECK(destination[bytes] == 0);
  CHECK(done->start_ts >= before);
  CHECK(done->end_ts >= done->start_ts);
  CHECK(*reinterpret_cast<uint32_t*>(done->event_mailbox_ptr) == 77);
  CHECK(ring.drained());
}

TEST_CASE("a fill writes exactly its dwords") {
  DeviceFixture device;
  SdmaRing ring(device);
  auto* words = device.allocate_object<uint32_t>(1002);
  ring.submit(fill(words + 1, 0xdeadbeef, 1000));
  REQUIRE(ring.drained());
  CHECK(words[0] == 0);
  CHECK(std::all_of(words + 1, words + 1001, [](uint32_t word) { return word == 0xdeadbeef; }));
  CHECK(words[1001] == 0);
}

TEST_CASE("a write stores exactly the dwords that follow its header") {
  DeviceFixture device;
  SdmaRing ring(device);
  auto* words = device.allocate_object<uint32_t>(600);
  ring.write(write_data(words + 1, {0xdeadbeef}));
  Words data(500);
  std::iota(data.begin(), data.end(), 7u);
  ring.write(write_data(words + 10, data));
  ring.submit(fence(words + 599, 1));
  REQUIRE(ring.drained());
  CHECK(words[0] == 0);
  CHECK(words[1] == 0xdeadbeef);
  CHECK(words[2] == 0);
  CHECK(words[9] == 0);
  CHECK(std::equal(data.begin(), data.end(), words + 10));
  CHECK(words[510] == 0);
  CHECK(words[599] == 1);  // the packet after the data
}

TEST_CASE("a write's data may continue at the ring's begin, and may take several turns") {
  DeviceFixture device;
  constexpr uint64_t kRingBytes = 1 << 20;
  SdmaRing ring(device, kRingBytes);
  constexpr uint32_t kDwords = 200'000;
  auto* words = device.allocate_object<uint32_t>(kDwords + 1);
  Words data(kDwords);
  for (uint32_t turn = 0; turn < 3; ++turn) {
    CAPTURE(turn);
    std::iota(data.begin(), data.end(), turn * kDwords + 1);
    ring.submit(write_data(words, data));
    REQUIRE(ring.drained());
    CHECK(std::equal(data.begin(), data.end(), words));
    CHECK(words[kDwords] == 0);
  }
  CHECK(ring.written() > 2 * kRingBytes);
}

TEST_CASE("a write that the doorbell cuts off stops its queue before it stores anything") {
  DeviceFixture device;
  SdmaRing ring(device);
  auto* words = device.allocate_object<uint32_t>(4);
  Words packet = write_data(words, {1, 2, 3, 4});
  packet.pop_back();
  ring.submit(packet);
  settle();
  CHECK(ring.read() == 0);
  CHECK(words[0] == 0);
}

TEST_CASE(
    "the trace line of a copy or a fill has the addresses that it reads and writes; no other has "
    "them") {
  DeviceFixture device(traced());
  SdmaRing ring(device, 4096, 3);
  auto* source = static_cast<std::byte*>(device.allocate(64));
  auto* destination = device.allocate_object<uint32_t>(32);
  ring.write(copy(destination, source, 64));
  ring.write(fill(destination + 16, 7, 4));
  ring.submit(fence(destination + 31, 1));
  REQUIRE(ring.drained());
  const std::vector<std::string> lines = device.trace_lines();
  REQUIRE(lines.size() == 4);  // the doorbell's first
  const auto field = [](const char* name, const void* address) {
    return "\"" + std::string(name) + "\":" + std::to_string(reinterpret_cast<uint64_t>(address)) +
           ",";
  };
  CHECK(lines[1].find(field("from", source) + field("to", destination) + "\"start_ns\"") !=
        std::string::npos);
  CHECK(lines[2].find(field("to", destination + 16) + "\"start_ns\"") != std::string::npos);
  CHECK(lines[2].find("from") == std::string::npos);
  CHECK(lines[3].find("\"bytes\":0,\"start_ns\"") != std::string::npos);
  for (size_t i = 1; i < lines.size(); ++i)
    CHECK(lines[i].find("\"sdma_engine\":3,") != std::string::npos);
}

TEST_CASE("copies and their bytes are counted by engine") {
  DeviceFixture device;
  // An engine's queues have separate rings.
  SdmaRing first(device, 4096, 1), second(device, 4096, 4);
  void* const one = device.allocate(64);
  void* const other = device.allocate(64);
  first.write(copy(one, other, 64));
  first.write(fill(one, 7, 4));
  first.submit(copy(other, one, 32));
  REQUIRE(first.drained());
  second.submit(copy(one, other, 16));
  REQUIRE(second.drained());
  CHECK(device.counts.copies(1) == 2);
  CHECK(device.counts.copied_bytes(1) == 96);
  CHECK(device.counts.copies(4) == 1);
  CHECK(device.counts.copied_bytes(4) == 16);
  for (const uint32_t engine : {0u, 2u, 3u, 15u}) CHECK(device.counts.copies(engine) == 0);
}

TEST_CASE("a sub-window copy moves a box between pitched buffers, for every element size") {
  DeviceFixture device;
  SdmaRing ring(device);
  for (uint32_t log2_element = 0; log2_element <= 4; ++log2_element) {
    CAPTURE(log2_element);
    const uint32_t element = 1u << log2_element;
    const uint32_t source_pitch = 16 * element, source_slice = source_pitch * 9;
    const uint32_t target_pitch = 20 * element, target_slice = target_pitch * 7;
    auto* source = static_cast<uint8_t*>(device.allocate(source_slice * 4));
    auto* target = static_cast<uint8_t*>(device.allocate(target_slice * 4));
    for (uint32_t at = 0; at < source_slice * 4; ++at)
      source[at] = static_cast<uint8_t>(at * 7 + 1);
    const uint32_t width = 5, height = 4, depth = 3;
    ring.submit({1u | 4u << 8 | log2_element << 29, low(source), high(source), 2u | 3u << 16,
                 1u | (source_pitch / element - 1) << 13, source_slice / element - 1, low(target),
                 high(target), 1u | 2u << 16, 0u | (target_pitch / element - 1) << 13,
                 target_slice / element - 1, (width - 1) | (height - 1) << 16, depth - 1});
    REQUIRE(ring.drained());
    std::vector<uint8_t> expected(target_slice * 4, 0);
    for (uint32_t z = 0; z < depth; ++z)
      for (uint32_t y = 0; y < height; ++y)
        std::memcpy(&expected[z * target_slice + (y + 2) * target_pitch + element],
                    source + (z + 1) * source_slice + (y + 3) * source_pitch + 2 * element,
                    width * element);
    CHECK(std::memcmp(expected.data(), target, expected.size()) == 0);
  }
}

TEST_CASE("a poll performs each of its comparisons") {
  using sdma::PollMemory;
  struct Row {
    uint32_t function, below, equal, above;
  };
  for (const Row& row : {Row{0, 1, 1, 1}, Row{1, 1, 0, 0}, Row{2, 1, 1, 0}, Row{3, 0, 1, 0},
                         Row{4, 1, 0, 1}, Row{5, 0, 1, 1}, Row{6, 0, 0, 1}}) {
    CAPTURE(row.function);
    const PollMemory poll_packet{0, 5, 0xff, row.function};
    CHECK(sdma::poll_holds(poll_packet, 0x104) == (row.below != 0));
    CHECK(sdma::poll_holds(poll_packet, 0x105) == (row.equal != 0));
    CHECK(sdma::poll_holds(poll_packet, 0x106) == (row.above != 0));
  }
}

TEST_CASE("padding, a wrapping ring and many copies are processed") {
  DeviceFixture device;
  SdmaRing ring(device, 1024);
  auto* words = device.allocate_object<uint32_t>(2000);
  for (uint32_t index = 0; index < 1000; ++index) {
    if (const uint64_t left = 1024 - ring.written() % 1024; left < 4 * 4)
      ring.write(Words(left / 4, 0));
    ring.submit(fence(&words[index], index + 1));
  }
  REQUIRE(ring.drained());
  for (uint32_t index = 0; index < 1000; ++index) REQUIRE(words[index] == index + 1);
  // The header of a NOP may give a number of following dwords.
  ring.write({2u << 16, 0xffffffff, 0xffffffff});
  ring.submit(fence(&words[1500], 9));
  REQUIRE(ring.drained());
  CHECK(words[1500] == 9);
}

TEST_CASE("a large copy does not block another queue") {
  DeviceFixture device;
  SdmaRing ring(device);
  ComputeQueue queue(device);
  queue.set_property(AMD_QUEUE_PROPERTIES_ENABLE_PROFILING, true);
  constexpr uint32_t bytes = 16u << 20;
  auto* source = static_cast<uint8_t*>(device.allocate(bytes));
  auto* destination = static_cast<uint8_t*>(device.allocate(bytes));
  std::memset(source, 0x5a, bytes);
  // The barrier's dependency is resolved when a quarter has been copied. Only a processor that
  // leaves a ring with remaining work completes the barrier before the rest. Both ends are timed by
  // the device's clock, independent of this thread.
  amd_signal_t* first_copied = device.signal(1);
  amd_signal_t* done = device.signal(1);
  auto* ring_ended = device.allocate_object<uint64_t>();
  ring.write(copy(destination, source, 0x3fffe0));
  ring.write(decrement(const_cast<int64_t*>(&first_copied->value)));
  for (uint32_t at = 0x3fffe0; at < bytes; at += 0x3fffe0)
    ring.write(copy(destination + at, source + at, std::min(0x3fffe0u, bytes - at)));
  ring.write(timestamp(ring_ended));
  queue.submit(barrier_and({first_copied}, false, done));
  ring.ring();
  REQUIRE(ring.drained());
  REQUIRE(fires(done));
  CHECK(done->end_ts < *ring_ended);
  CHECK(std::memcmp(source, destination, bytes) == 0);
}

TEST_CASE("a copy crosses from one mapping to the next") {
  DeviceFixture device;
  SdmaRing ring(device);
  auto* pages = static_cast<std::byte*>(device.allocate(8192, 4096));
  std::memset(pages, 0x77, 8192);
  // Two adjacent GPU ranges with separate host memory.
  Mapping first, second;
  first.begin = 0x100000;
  first.end = second.begin = 0x101000;
  second.end = 0x102000;
  first.host = pages + 4096;
  second.host = pages;
  device.memory.map(first);
  device.memory.map(second);
  auto* source = static_cast<std::byte*>(device.allocate(6000));
  for (int at = 0; at < 6000; ++at) source[at] = static_cast<std::byte>(at);
  ring.submit(copy(reinterpret_cast<void*>(0x100000), source, 6000));
  REQUIRE(ring.drained());
  CHECK(std::memcmp(pages + 4096, source, 4096) == 0);
  CHECK(std::memcmp(pages, source + 4096, 6000 - 4096) == 0);
  CHECK(pages[6000 - 4096] == std::byte{0x77});
}

TEST_CASE("the error names an unsupported SDMA packet") {
  for (const auto& [words, name] : std::vector<std::pair<Words, std::string>>{
           {{2u | 1u << 8, 0, 0, 0}, "WRITE"},
           {{2, 0, 0}, "cut off"},
           {{1u | 1u << 8, 0, 0, 0, 0, 0, 0}, "COPY"},
           {{10u | 15u << 25, 0, 0, 0, 0, 0, 0, 0}, "operation 15"},
           {{17, 0, 0, 0, 0}, "GCR"},
           {{13, 0, 0}, "TIMESTAMP"},
           {{8u | 3u << 28, 0, 0, 0, 0, 0}, "register"},
           {{5, 0}, "cut off"},
           {{200}, "unknown"}}) {
    CAPTURE(name);
    const sdma::Decoded decoded = sdma::decode(words);
    const auto* unsupported = std::get_if<sdma::Unsupported>(&decoded.packet);
    REQUIRE(unsupported != nullptr);
    CHECK(unsupported->reason.find(name) != std::string::npos);
  }
}

TEST_CASE("an unsupported SDMA packet stops its queue, and the others continue") {
  DeviceFixture device;
  SdmaRing ring(device);
  SdmaRing other(device);
  auto* word = device.allocate_object<uint32_t>(2);
  ring.write(fence(&word[0], 1));
  ring.write({2u | 1u << 8, 0, 0, 0});
  ring.submit(fence(&word[0], 2));
  other.submit(fence(&word[1], 3));
  CHECK(other.drained());
  REQUIRE(eventually([&] { return ring.read() == 16; }));
  settle();
  CHECK(word[0] == 1);
  CHECK(ring.read() == 16);
}

TEST_CASE(
    "SDMA outside the address space, or into read-only memory, is a memory fault with the first "
    "bad "
    "address") {
  DeviceFixture device;
  auto* page = static_cast<std::byte*>(device.allocate(4096, 4096));
  Mapping readable;
  readable.begin = 0x200000;
  readable.end = 0x201000;
  readable.host = page;
  readable.writable = false;
  device.memory.map(readable);
  struct Row {
    Words words;
    GpuAddress address;
    Access access;
    bool present;
  };
  auto* memory = device.allocate(4096);
  for (const Row& row :
       {Row{copy(memory, reinterpret_cast<void*>(0x200800), 4096), 0x201000, Access::read, false},
        Row{copy(reinterpret_cast<void*>(0x200000), memory, 16), 0x200000, Access::write, true},
        Row{fence(reinterpret_cast<void*>(0x300000), 1), 0x300000, Access::write, false},
        Row{poll(reinterpret_cast<void*>(0x300004), 1), 0x300004, Access::read, false},
        Row{decrement(reinterpret_cast<void*>(0x300008)), 0x300008, Access::atomic, false},
        Row{write_data(reinterpret_cast<void*>(0x200000), {1, 2}), 0x200000, Access::write, true},
        Row{write_data(static_cast<std::byte*>(memory) + 2, {1}),
            DeviceFixture::address(memory) + 2, Access::write, true},
        Row{fill(reinterpret_cast<void*>(0x30000c), 1, 4), 0x30000c, Access::write, false}}) {
    CAPTURE(row.address);
    SdmaRing ring(device);
    const size_t before = device.interrupts.faults().size();
    ring.submit(row.words);
    REQUIRE(eventually([&] { return device.interrupts.faults().size() == before + 1; }));
    const MemoryFault fault = device.interrupts.faults().back();
    CHECK(fault.address == row.address);
    CHECK(fault.access == row.access);
    CHECK(fault.present == row.present);
  }
}

TEST_CASE(
    "access to registered host memory that was unmapped is a memory fault, not the end of the "
    "process") {
  DeviceFixture device;
  SdmaRing ring(device);
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  Mapping mapping;
  mapping.begin = 0x400000;
  mapping.end = 0x401000;
  mapping.host = static_cast<std::byte*>(page);
  device.memory.map(mapping);
  munmap(page, 4096);
  ring.submit(fence(reinterpret_cast<void*>(0x400010), 1));
  REQUIRE(eventually([&] { return device.interrupts.faults().size() == 1; }));
  CHECK(device.interrupts.faults().front().address == reinterpret_cast<GpuAddress>(page) + 0x10);
  munmap(page, 4096);
}
