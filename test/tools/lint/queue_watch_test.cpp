// The reader of a queue's packets, on a ring and indices of the test.
#include "tools/lint/queue_watch.hpp"

#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "test/support/catch.hpp"

namespace {

using namespace uptempo::lint;

constexpr uint64_t kSize = 64, kKernel = 0x1000, kSignal = 0x7000;
constexpr uint32_t kBarrier = 1u << HSA_PACKET_HEADER_BARRIER;
constexpr uint32_t kSystemAcquire = HSA_FENCE_SCOPE_SYSTEM
                                    << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE;

// The indices that the device and the producers have reached. `on_*` run in the reader's calls.
std::atomic<uint64_t> read_index{0}, write_index{0};
std::function<void()> on_read_index, on_write_index;

uint64_t call(std::function<void()>& hook, const std::atomic<uint64_t>& index) {
  if (hook) std::exchange(hook, nullptr)();
  return index.load();
}

struct Ring {
  alignas(64) std::array<uint32_t, kSize * 16> slots{};
  hsa_queue_t queue{};
  std::unique_ptr<Ledger> ledger = std::make_unique<Ledger>();
  SignalTable signals{*ledger};
  std::unique_ptr<QueueWatch> watch;

  Ring() {
    read_index = write_index = 0;
    on_read_index = on_write_index = nullptr;
    for (uint64_t i = 0; i < kSize; ++i) invalidate(i);
    queue.size = kSize;
    queue.base_address = slots.data();
    const QueueCalls calls{[](const hsa_queue_t*) { return call(on_read_index, read_index); },
                           [](const hsa_queue_t*) { return call(on_write_index, write_index); }};
    watch = std::make_unique<QueueWatch>(&queue, 0, "gpu", calls, *ledger, signals);
  }
  std::atomic_ref<uint32_t> header(uint64_t index) {
    return std::atomic_ref(slots[index % kSize * 16]);
  }
  void invalidate(uint64_t index) { header(index) = HSA_PACKET_TYPE_INVALID; }
  void write(uint64_t index, uint32_t bits = kBarrier, uint64_t done = 0, uint64_t kernarg = 0) {
    uint32_t* const slot = slots.data() + index % kSize * 16;
    const auto put = [slot](size_t byte, uint64_t value) {
      std::atomic_ref(reinterpret_cast<uint64_t&>(slot[byte / 4])).store(value);
    };
    put(offsetof(hsa_kernel_dispatch_packet_t, kernel_object), kKernel);
    put(offsetof(hsa_kernel_dispatch_packet_t, kernarg_address), kernarg);
    put(offsetof(hsa_kernel_dispatch_packet_t, completion_signal), done);
    header(index) = HSA_PACKET_TYPE_KERNEL_DISPATCH | bits | 1u << 16;
  }
  // A packet at the write index.
  uint64_t publish(uint32_t bits = kBarrier, uint64_t done = 0, uint64_t kernarg = 0) {
    const uint64_t index = write_index++;
    write(index, bits, done, kernarg);
    return index;
  }
  // As hsa_signal_store_*.
  void ring(uint64_t value) {
    if (watch->repeat(value).number == 0) watch->ring(value);
  }
  // The device has executed all packets.
  void drain() {
    for (uint64_t i = read_index; i < write_index; ++i) invalidate(i);
    read_index = write_index.load();
  }
  uint64_t count(Count count) const {
    uint64_t sum = 0;
    ledger->for_each_record([&](const Pair&, RecordNumber, const auto& counts) {
      sum += counts[static_cast<size_t>(count)];
    });
    return sum;
  }
};

}  // namespace

TEST_CASE("packets are read once, up to the doorbell's value") {
  Ring ring;
  for (uint64_t turn = 0; turn < 5 * kSize; ++turn) {
    ring.publish();
    const uint64_t last = ring.publish();
    ring.ring(last);
    if (turn % 8 == 7) ring.drain();
  }
  const QueueCounts counts = ring.watch->counts();
  CHECK(counts.packets == 10 * kSize);
  CHECK(counts.missed == 0);
  CHECK(counts.doorbells == 5 * kSize);
  CHECK(ring.count(Count::packets) == 10 * kSize);
  CHECK(ring.count(Count::barrier_bits) == 10 * kSize);
  CHECK(ring.count(Count::doorbells) == 5 * kSize);
  CHECK(ring.count(Count::lone_doorbells) == 0);
}

TEST_CASE("a doorbell beyond the write index announces no packet") {
  Ring ring;
  for (uint64_t i = 0; i < kSize; ++i) ring.publish();
  SECTION("far beyond") {
    ring.ring(200'000'000);
    CHECK(ring.watch->counts().rung_end == kSize);
  }
  SECTION("one beyond") { ring.ring(kSize); }
  SECTION("one beyond, after the right one") {
    ring.ring(kSize - 1);
    ring.ring(kSize);  // its slot still holds packet 0
  }
  CHECK(ring.watch->counts().packets == kSize);
  CHECK(ring.watch->counts().read_end == kSize);
  CHECK(ring.count(Count::packets) == kSize);
  // The queue is read on as before.
  ring.drain();
  ring.ring(ring.publish());
  CHECK(ring.watch->counts().packets == kSize + 1);
  CHECK(ring.watch->counts().missed == 0);
}

TEST_CASE("a doorbell that is announced during the reading is read in the same call") {
  Ring ring;
  ring.publish(kBarrier | kSystemAcquire);
  ring.publish(kBarrier | kSystemAcquire);
  // The reader loads the read index before the packets, and after them because of the acquires.
  // Another thread rings then.
  on_read_index = [&] {
    on_read_index = [&] { ring.ring(ring.publish(kBarrier | kSystemAcquire)); };
  };
  ring.ring(1);
  REQUIRE(!on_read_index);
  CHECK(ring.watch->counts().packets == 3);
  CHECK(ring.watch->counts().rung_end == 3);
  CHECK(ring.watch->counts().doorbells == 2);
  // The device may have taken packet 2 before the host wrote for packet 3.
  ring.ring(ring.publish(kBarrier | kSystemAcquire));
  CHECK(ring.watch->counts().packets == 4);
  CHECK(ring.count(Count::system_acquires) == 4);
  CHECK(ring.count(Count::wide_acquires) == 0);
}

TEST_CASE("packets that the device took, or that were overwritten, are missed") {
  Ring ring;
  ring.ring(ring.publish());
  ring.publish();
  ring.drain();  // packet 1 before its doorbell
  ring.ring(1);
  CHECK(ring.watch->counts().packets == 1);
  CHECK(ring.watch->counts().missed == 1);
  // A doorbell of another thread covers the next ring of packets before they are read.
  ring.publish();
  ring.publish();
  on_write_index = [&] {
    ring.ring(3);
    ring.drain();
    for (uint64_t i = 0; i < kSize; ++i) ring.publish();  // in the same slots
  };
  ring.ring(3);
  CHECK(ring.watch->counts().missed == 3);
  CHECK(ring.watch->counts().packets == 1);
}

TEST_CASE("a slot without a packet ends the reading until the next doorbell") {
  Ring ring;
  ring.ring(ring.publish());
  const uint64_t hole = write_index++;  // another thread's, reserved
  const uint64_t behind = ring.publish();
  ring.ring(behind);
  CHECK(ring.watch->counts().packets == 1);
  ring.write(hole);
  ring.ring(hole);
  CHECK(ring.watch->counts().packets == 3);
  CHECK(ring.watch->counts().missed == 0);
}

TEST_CASE("the signal of a packet that another thread has waited for is left alone") {
  Ring ring;
  ring.signals.created(kSignal, 1);
  SignalTable::Entry* const entry = ring.signals.find(kSignal);
  ring.publish();
  ring.publish();
  // Meanwhile another thread rings for packet 2, waits for it, and destroys its signal. A new one
  // gets its handle.
  on_write_index = [&] {
    ring.ring(ring.publish(kBarrier, kSignal));
    read_index = write_index.load();
    ring.signals.destroy(*entry, 0);
    ring.signals.created(kSignal, 1);
  };
  ring.ring(1);
  CHECK(ring.watch->counts().packets == 3);
  CHECK(ring.count(Count::signals) == 1);
  CHECK(!SignalTable::awaited(*entry));
  // A packet that the device has not taken owns its signal.
  ring.ring(ring.publish(kBarrier, kSignal));
  REQUIRE(SignalTable::awaited(*entry));
  CHECK(SignalTable::awaited(*entry)->last.index == 3);
}

TEST_CASE("a host wait counts if it drains the queue") {
  Ring ring;
  ring.ring(ring.publish());
  ring.ring(ring.publish());
  const auto waits_of_next = [&] {
    const uint64_t before = ring.count(Count::host_waits);
    ring.ring(ring.publish());
    return ring.count(Count::host_waits) - before;
  };
  SECTION("for the last packet") {
    ring.watch->waited(1, 500);
    CHECK(waits_of_next() == 1);
    CHECK(ring.count(Count::waited_ns) == 500);
    CHECK(waits_of_next() == 0);
  }
  SECTION("not for an earlier one") {
    ring.watch->waited(0, 500);
    CHECK(waits_of_next() == 0);
    CHECK(ring.count(Count::waited_ns) == 0);
  }
  SECTION("not if the packet was complete before") {
    ring.watch->waited(1, std::nullopt);
    CHECK(waits_of_next() == 0);
  }
}

TEST_CASE("a doorbell for one packet is lone unless the host waited before it") {
  Ring ring;
  for (int i = 0; i < 10; ++i) ring.ring(ring.publish());
  CHECK(ring.count(Count::lone_doorbells) == 9);  // none before the first
  ring.watch->waited(9, std::nullopt);            // the program needed its result
  ring.ring(ring.publish());
  CHECK(ring.count(Count::lone_doorbells) == 9);
  ring.publish();
  ring.ring(ring.publish());
  CHECK(ring.count(Count::lone_doorbells) == 9);
  ring.ring(ring.publish());
  CHECK(ring.count(Count::lone_doorbells) == 10);
}

TEST_CASE("threads that share a queue lose no packet that the device has not taken") {
  // Given a device that takes nothing, in a ring that holds all packets.
  constexpr int kThreads = 4;
  for (int round = 0; round < 200; ++round) {
    Ring ring;
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i)
      threads.emplace_back([&] {
        for (uint64_t k = 0; k < kSize / kThreads - 1; ++k) {
          const uint64_t index = ring.publish();
          ring.ring(index);
        }
      });
    for (std::thread& thread : threads) thread.join();
    ring.ring(ring.publish());  // reads what was announced too late
    const QueueCounts counts = ring.watch->counts();
    REQUIRE(counts.packets == kSize - kThreads + 1);
    REQUIRE(counts.missed == 0);
    REQUIRE(counts.doorbells == counts.packets);
    REQUIRE(ring.count(Count::packets) == counts.packets);
  }
}

TEST_CASE("a loop of one kernel is counted like any packets, wherever it is interrupted") {
  Ring ring;
  std::mt19937 random(1);
  uint64_t packets = 0, barriers = 0, unaligned = 0, signals = 0, idle = 0, lone = 0, doorbells = 0;
  uint64_t complete = 0;
  bool rang = false, waited = false;
  const auto publish = [&](uint32_t bits, uint64_t done, uint64_t kernarg) {
    const uint64_t index = ring.publish(bits, done, kernarg);
    ++packets;
    barriers += (bits & kBarrier) != 0;
    idle += (bits & kBarrier) != 0 && complete != 0 && complete >= index;
    unaligned += kernarg % 64 != 0;
    signals += done != 0;
  };
  for (int doorbell = 0; doorbell < 20000; ++doorbell) {
    // Long loops with one event now and then.
    const uint32_t event = random() % 8 != 0 ? 0 : random() % 8;
    const uint32_t bits = doorbell % 1000 < 500 ? kBarrier : 0;
    publish(event == 1 ? bits ^ kBarrier : bits, event == 2 ? kSignal : 0, event == 3 ? 16 : 64);
    if (event == 4) publish(bits, 0, 0);
    ring.ring(write_index - 1);
    ++doorbells;
    lone += rang && !waited && event != 4;
    rang = true;
    waited = false;
    if (event == 5 || write_index - read_index > kSize - 3) {
      ring.drain();
      if (event == 5) {
        complete = write_index;
        ring.watch->complete(complete);
        ring.watch->waited(write_index - 1, 10);
        waited = true;
      }
    }
    // Another thread, while no one reads. From then on the threads share the reader's role.
    if (event == 6 && doorbell > 15000) {
      std::thread([&] {
        publish(bits, 0, 0);
        ring.ring(write_index - 1);
      }).join();
      ++doorbells;
      ++lone;
    }
  }
  const QueueCounts counts = ring.watch->counts();
  CHECK(counts.packets == packets);
  CHECK(counts.missed == 0);
  CHECK(counts.doorbells == doorbells);
  CHECK(counts.read_end == packets);
  CHECK(counts.rung_end == packets);
  CHECK(ring.count(Count::packets) == packets);
  CHECK(ring.count(Count::doorbells) == doorbells);
  CHECK(ring.count(Count::barrier_bits) == barriers);
  CHECK(ring.count(Count::unaligned_kernargs) == unaligned);
  CHECK(ring.count(Count::signals) == signals);
  CHECK(ring.count(Count::idle_barriers) == idle);
  CHECK(ring.count(Count::lone_doorbells) == lone);
}
