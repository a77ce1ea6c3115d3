// Fences of packets on a device with stale caches: which fences act, and when. The kernels store
// and load through the caches themselves, as gfx9 does.
#include <algorithm>
#include <cstring>
#include <span>

#include "cp/packet/aql_packet.hpp"
#include "device/caches/incoherent.hpp"
#include "device/inject/injector.hpp"
#include "device_fixture.hpp"
#include "test/support/catch.hpp"

using namespace uptempo::vgpu;
using namespace uptempo::vgpu::test;

namespace {

Options incoherent() {
  Options options;
  options.incoherent = 1;
  options.deterministic = true;
  return options;
}

// A device with one page of coarse-grained memory.
struct Incoherent : DeviceFixture {
  Incoherent() : DeviceFixture(incoherent()) {
    memory.map({.begin = 0x1000000,
                .end = 0x1000000 + sizeof words,
                .host = reinterpret_cast<std::byte*>(words),
                .kind = MemoryKind::coarse_grained});
  }

  ScriptedKernel* stores(uint32_t value) {
    return kernel([this, value](const Slice& slice) {
      const Mapping& mapping = *slice.executor.memory.find(0x1000000);
      caches->store(0, mapping, mapping.begin, std::as_bytes(std::span(&value, 1)));
      return Result::ended;
    });
  }
  // Loads through the vector L1 of compute unit 0 and through its scalar L1.
  ScriptedKernel* loads() {
    return kernel([this](const Slice& slice) {
      const Mapping& mapping = *slice.executor.memory.find(0x1000000);
      caches->load(0, mapping, mapping.begin, std::as_writable_bytes(std::span(&vector, 1)),
                   AccessScope::wave);
      caches->scalar_load(0, mapping, mapping.begin, std::as_writable_bytes(std::span(&scalar, 1)),
                          AccessScope::wave);
      return Result::ended;
    });
  }

  void run(ComputeQueue& queue, ScriptedKernel* kernel, hsa_fence_scope_t acquire,
           hsa_fence_scope_t release) {
    amd_signal_t* done = signal(1);
    auto packet = dispatch(kernel, 1, 1, true, done);
    packet.header = header_of(HSA_PACKET_TYPE_KERNEL_DISPATCH, true, acquire, release);
    queue.submit(packet);
    REQUIRE(fires(done));
  }
  void pass_barrier(ComputeQueue& queue, hsa_fence_scope_t acquire, hsa_fence_scope_t release) {
    amd_signal_t* done = signal(1);
    auto packet = barrier_and({}, true, done);
    packet.header = header_of(HSA_PACKET_TYPE_BARRIER_AND, true, acquire, release);
    queue.submit(packet);
    REQUIRE(fires(done));
  }
  void acquire_memory(ComputeQueue& queue, uint32_t coherence_control) {
    auto* commands = allocate_object<uint32_t>(7);
    commands[0] = 3u << 30 | 5u << 16 | 0x58u << 8;
    commands[1] = coherence_control;
    Pm4IbPacket packet{};
    packet.header = header_of(HSA_PACKET_TYPE_VENDOR_SPECIFIC, true);
    packet.vendor_format = kVendorFormatPm4Ib;
    packet.jump[0] = 3u << 30 | 2u << 16 | 0x3fu << 8;
    packet.jump[1] = static_cast<uint32_t>(address(commands));
    packet.jump[2] = static_cast<uint32_t>(address(commands) >> 32);
    packet.jump[3] = 7;
    amd_signal_t* done = signal(1);
    packet.completion_signal = handle(done);
    queue.submit(packet);
    REQUIRE(fires(done));
  }

  alignas(4096) uint32_t words[1024] = {};
  uint32_t vector = 0, scalar = 0;  // the last loaded values
};

}  // namespace

TEST_CASE(
    "a dispatch's stores reach memory before its signal if it releases to the system, else not") {
  for (const auto release : {kNone, kAgent, kSystem}) {
    Incoherent device;
    ComputeQueue queue(device);
    device.run(queue, device.stores(5), kSystem, release);
    CHECK(device.words[0] == (release == kSystem ? 5 : 0));
  }
}

TEST_CASE("a barrier packet releases the stores of earlier dispatches") {
  for (const auto release : {kNone, kAgent, kSystem}) {
    Incoherent device;
    ComputeQueue queue(device), other(device);
    device.run(queue, device.stores(5), kNone, kNone);
    device.pass_barrier(other, kNone, release);
    CHECK(device.words[0] == (release == kSystem ? 5 : 0));
  }
}

TEST_CASE(
    "a dispatch sees the host's stores if it or an earlier barrier acquires from the system") {
  for (const bool by_barrier : {false, true}) {
    for (const auto acquire : {kNone, kAgent, kSystem}) {
      Incoherent device;
      ComputeQueue queue(device);
      device.run(queue, device.loads(), kSystem, kNone);
      device.words[0] = 5;
      if (by_barrier) device.pass_barrier(queue, acquire, kNone);
      device.run(queue, device.loads(), by_barrier ? kNone : acquire, kNone);
      CHECK(device.vector == (acquire == kSystem ? 5 : 0));
      CHECK(device.scalar == (acquire == kSystem ? 5 : 0));
    }
  }
}

TEST_CASE("a dispatch sees another dispatch's stores if it acquires at agent scope") {
  for (const auto acquire : {kNone, kAgent, kSystem}) {
    Incoherent device;
    ComputeQueue queue(device), other(device);
    device.run(queue, device.loads(), kSystem, kNone);
    ScriptedKernel* writer = device.kernel([&](const Slice& slice) {
      const Mapping& mapping = *slice.executor.memory.find(0x1000000);
      const uint32_t value = 5;
      device.caches->store(1, mapping, mapping.begin, std::as_bytes(std::span(&value, 1)));
      return Result::ended;
    });
    device.run(other, writer, kNone, kAgent);
    device.run(queue, device.loads(), acquire, kNone);
    CHECK(device.vector == (acquire == kNone ? 0 : 5));
    CHECK(device.scalar == (acquire == kNone ? 0 : 5));
  }
}

TEST_CASE("ACQUIRE_MEM acts on the caches that it names") {
  constexpr uint32_t kWriteBack = 1u << 18, kVector = 1u << 22, kL2 = 1u << 23, kScalar = 1u << 27;
  for (const uint32_t control :
       {0u, kWriteBack, kL2 | kVector, kL2 | kScalar, kWriteBack | kL2 | kScalar}) {
    CAPTURE(control);
    Incoherent device;
    ComputeQueue queue(device);
    device.run(queue, device.loads(), kSystem, kNone);
    device.words[0] = 5;
    device.acquire_memory(queue, control);
    device.run(queue, device.loads(), kNone, kNone);
    CHECK(device.vector == ((control & kL2) != 0 && (control & kVector) != 0 ? 5 : 0));
    CHECK(device.scalar == ((control & kL2) != 0 && (control & kScalar) != 0 ? 5 : 0));
    device.run(queue, device.stores(6), kNone, kNone);
    device.acquire_memory(queue, control);
    CHECK(device.words[0] == ((control & kWriteBack) != 0 ? 6 : 5));
  }
}

TEST_CASE("the acquire of a stale packet invalidates no cache, and its release acts") {
  for (const bool by_barrier : {false, true}) {
    // The first queue's: a load, the host's store, then the stale packet.
    Injector injector(parse_inject_rules("packet queue=0 stale nth=2"));
    Incoherent device;
    device.device->injector = &injector;
    ComputeQueue queue(device);
    device.run(queue, device.loads(), kSystem, kNone);
    device.words[0] = 5;
    if (by_barrier) device.pass_barrier(queue, kSystem, kNone);
    device.run(queue, device.loads(), by_barrier ? kNone : kSystem, kNone);
    CHECK(device.vector == 0);
    CHECK(device.scalar == 0);
    CHECK(injector.counts(0).injected == 1);
    device.run(queue, device.loads(), kSystem, kNone);
    CHECK(device.vector == 5);
    CHECK(device.scalar == 5);
  }
  Injector injector(parse_inject_rules("packet queue=0 stale every=1"));
  Incoherent device;
  device.device->injector = &injector;
  ComputeQueue queue(device);
  device.run(queue, device.stores(5), kSystem, kSystem);
  CHECK(device.words[0] == 5);
}

TEST_CASE("unmapping writes L2 back, and the device sees the next mapping at that address") {
  Incoherent device;
  ComputeQueue queue(device);
  device.run(queue, device.loads(), kSystem, kNone);
  device.run(queue, device.stores(5), kNone, kNone);
  CHECK(device.words[0] == 0);
  device.processor->unmap(0x1000000);
  CHECK(device.words[0] == 5);
  device.words[0] = 7;
  device.memory.map({.begin = 0x1000000,
                     .end = 0x1000000 + sizeof device.words,
                     .host = reinterpret_cast<std::byte*>(device.words),
                     .kind = MemoryKind::coarse_grained});
  device.run(queue, device.loads(), kNone, kNone);
  CHECK(device.vector == 7);
  CHECK(device.scalar == 7);
}

TEST_CASE("unmapping waits only for users of the memory, and works with nothing cached") {
  Incoherent device;
  device.processor->unmap(0x1000000);
  device.processor->unmap(0x1000000);
  ComputeQueue queue(device);
  std::atomic<bool> may_end{false};
  ScriptedKernel* spinning =
      device.kernel([&](const Slice&) { return may_end ? Result::ended : Result::preempted; });
  amd_signal_t* done = device.signal(1);
  device.memory.map({.begin = 0x1000000,
                     .end = 0x1000000 + sizeof device.words,
                     .host = reinterpret_cast<std::byte*>(device.words),
                     .kind = MemoryKind::coarse_grained});
  queue.submit(dispatch(spinning, 1, 1, false, done));
  settle();
  device.processor->unmap(0x1000000);
  may_end = true;
  CHECK(fires(done));
}
