// Storage of a batch's packets: the ring's free slots while the batch holds them, otherwise memory
// of its own.
#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "engine/dispatch/detail/packet_store.hpp"
#include "engine/runtime/counters.hpp"
#include "engine/runtime/error.hpp"
#include "test/engine/double_device.hpp"
#include "test/support/catch.hpp"

using namespace uptempo;
using namespace uptempo::test;
using detail::PacketStore;

namespace {

void add(PacketStore& store, uint32_t number) {
  aql::Packet64& packet = store.add();
  packet = {};
  packet.word[0] = aql::first_word(aql::kInvalidHeader, 1);
  packet.word[5] = number;
}

bool holds_numbers_up_to(PacketStore& store, uint32_t count) {
  if (store.size() != count) return false;
  for (uint32_t i = 0; i < count; ++i)
    if (store[i].word[5] != i) return false;
  return true;
}

bool ring_reads_invalid(const std::vector<aql::Packet64>& ring, size_t first, size_t count) {
  for (size_t i = first; i < first + count; ++i)
    if (ring[i % ring.size()].header() != aql::kInvalidHeader) return false;
  return true;
}

uint64_t ready_headers(DoubleDevice& device) {
  QueueDouble& queue = device.processor().memory();
  uint64_t ready = 0;
  for (uint64_t i = 0; i < queue.ring_size(); ++i)
    ready +=
        aql::packet_type(static_cast<uint16_t>(queue.first_word(i))) != aql::PacketType::invalid;
  return ready;
}

}  // namespace

TEST_CASE("a store in a ring keeps its first packet apart, wraps, and leaves with all its packets",
          "[packet_store]") {
  std::vector<aql::Packet64> ring(16);
  PacketStore store;
  CHECK(store.empty());
  CHECK(store.room() == 1);
  add(store, 0);
  CHECK(store.full());
  store.open_ring(ring.data(), 15, 0x1'0000'000a, std::span(ring).subspan(11, 5));
  uint32_t number = 1;
  while (!store.full()) add(store, number++);
  store.extend(std::span(ring).first(4));
  CHECK(store.room() == 4);
  while (!store.full()) add(store, number++);
  CHECK(number == 10);
  CHECK(store.in_ring());
  CHECK(&store[1] == &ring[11]);
  CHECK(&store[9] == &ring[3]);
  CHECK(ring[10] == aql::Packet64{});
  CHECK(holds_numbers_up_to(store, 10));
  store.leave_ring();
  CHECK(ring_reads_invalid(ring, 11, 9));
  std::fill(ring.begin(), ring.end(), aql::Packet64{});
  CHECK_FALSE(store.in_ring());
  CHECK_FALSE(store.full());
  CHECK(holds_numbers_up_to(store, 10));
}

TEST_CASE("a store outside a ring grows, keeps its packets, and keeps its memory when cleared",
          "[packet_store]") {
  PacketStore store;
  const aql::Packet64* memory = nullptr;
  for (int round = 0; round < 3; ++round) {
    for (uint32_t i = 0; i < 1000; ++i) {
      if (store.full()) store.grow();
      add(store, i);
    }
    CHECK(holds_numbers_up_to(store, 1000));
    if (round != 0) CHECK(&store[0] == memory);
    memory = &store[0];
    store.close();
    CHECK(store.full());
    CHECK(store.size() == 1000);
    store.clear();
    CHECK(store.size() == 0);
    CHECK(store.empty());
  }
}

TEST_CASE("a store that leaves a ring reuses its memory", "[packet_store]") {
  std::vector<aql::Packet64> ring(64);
  PacketStore store;
  store.grow();
  for (uint32_t i = 0; i < 64; ++i) add(store, i);
  const aql::Packet64* const memory = &store[0];
  store.clear();
  add(store, 0);
  store.open_ring(ring.data(), 63, 0, std::span(ring).subspan(1));
  for (uint32_t i = 1; i < 63; ++i) add(store, i);
  store.leave_ring();
  CHECK(&store[0] == memory);
  CHECK(holds_numbers_up_to(store, 63));
  add(store, 63);
  CHECK(store.full());
  CHECK(holds_numbers_up_to(store, 64));
}

// Nothing keeps an allocator from placing the ring right before the store's own memory. The
// addresses are only compared.
TEST_CASE("a store whose last slot ends where its own memory begins is not empty",
          "[packet_store]") {
  PacketStore store;
  const auto own = reinterpret_cast<uintptr_t>(&store.add());
  auto* const ring = reinterpret_cast<aql::Packet64*>(own - 64 * sizeof(aql::Packet64));
  store.open_ring(ring, 63, 1, std::span(ring + 2, 62));
  store.add(62);
  CHECK(store.full());
  CHECK(store.size() == 63);
  CHECK_FALSE(store.empty());
}

TEST_CASE("slots of a discarded store and of a dropped packet read INVALID", "[packet_store]") {
  std::vector<aql::Packet64> ring(16);
  PacketStore store;
  const auto add_ready = [&] {
    store.add().word[0] =
        aql::first_word(aql::make_header(aql::PacketType::kernel_dispatch, {}), 1);
  };
  add_ready();
  store.open_ring(ring.data(), 15, 12, std::span(ring).subspan(13, 3));
  for (int i = 0; i < 3; ++i) add_ready();
  store.extend(std::span(ring).first(2));
  for (int i = 0; i < 2; ++i) add_ready();
  CHECK_FALSE(ring_reads_invalid(ring, 17, 1));
  store.drop_last();
  CHECK(store.size() == 5);
  CHECK(ring_reads_invalid(ring, 17, 1));
  store.discard();
  CHECK(store.empty());
  CHECK(ring_reads_invalid(ring, 13, 5));
}

TEST_CASE(
    "packets of an unsubmitted batch are in the ring, beyond the write index, after an INVALID "
    "slot",
    "[packet_store]") {
  DoubleDevice device({.device = {.ring_size = 64}});
  QueueDouble& queue = device.processor().memory();
  const auto kernel = number_kernel(0xabc0);
  auto batch = device.batch();
  for (uint32_t i = 0; i < 40; ++i) batch.dispatch(kernel, Grid{64}, i);
  for (uint64_t i = 1; i < 40; ++i)
    CHECK(aql::packet_as<hsa_kernel_dispatch_packet_t>(queue.slot(i)).kernel_object == 0xabc0);
  CHECK(ready_headers(device) == 39);
  CHECK(aql::packet_type(static_cast<uint16_t>(queue.first_word(0))) == aql::PacketType::invalid);
  CHECK(queue.write_index().load() == 0);
  batch.clear();
  CHECK(ready_headers(device) == 0);
  CHECK(device.batch().submit().ready());
}

TEST_CASE("a batch of the ring's size may end with a finished packet", "[packet_store]") {
  DoubleDevice device({.device = {.ring_size = 16, .paused = true}});
  const aql::Packet64 barrier = aql::to_packet(aql::BarrierAnd{});
  auto batch = device.batch();
  for (uint32_t i = 0; i < 15; ++i) batch.dispatch(number_kernel(), Grid{64}, i);
  batch.raw(barrier);
  CHECK(device.processor().memory().write_index().load() == 0);
  device.processor().resume();
  CHECK(batch.submit().wait(soon(), kActiveWait));
  CHECK(device.processor().completed_count() >= 17);
}

TEST_CASE("a refused batch that ends with a finished packet is unchanged", "[packet_store]") {
  DoubleDevice device({.device = {.ring_size = 32, .paused = true}});
  auto first = device.batch(), second = device.batch();
  for (uint32_t i = 0; i < 16; ++i) first.dispatch(number_kernel(), Grid{64}, i);
  first.submit();
  for (uint32_t i = 0; i < 15; ++i) second.dispatch(number_kernel(), Grid{64}, i);
  second.raw(aql::to_packet(aql::BarrierAnd{}));
  CHECK_FALSE(second.try_submit());
  CHECK(second.size() == 16);
  device.processor().resume();
  CHECK(second.submit().wait(soon(), kActiveWait));
  CHECK(device.processor().completed_count() == 33);
}

TEST_CASE("a batch that is refused with an error is unchanged", "[packet_store]") {
  DoubleDevice device;  // without timing signals
  BatchSubmitter batch(device.queue(), {.timing = Timing::each});
  batch.dispatch(number_kernel(), Grid{64}, 1u);
  for (int i = 0; i < 40; ++i) batch.raw(aql::to_packet(aql::BarrierAnd{}));
  CHECK_THROWS_AS(batch.submit(), Error);
  CHECK(batch.size() == 41);
}

TEST_CASE("a chunk size of zero means one packet", "[packet_store]") {
  DoubleDevice device;
  BatchSubmitter batch(device.queue(), {.chunking = {.lead = 0, .chunk = 0}});
  const Counters before = Counters::now();
  for (uint32_t i = 0; i < 5; ++i) batch.dispatch(number_kernel(), Grid{64}, i);
  CHECK(batch.submit().wait(soon(), kActiveWait));
  CHECK((Counters::now() - before).doorbells == 5);
}

TEST_CASE(
    "the second batch of a queue uses its own memory, and its submission moves the first from the "
    "ring",
    "[packet_store]") {
  std::vector<uint32_t> ran;
  DoubleDevice device({}, [&](uint32_t number) { ran.push_back(number); });
  const auto kernel = number_kernel();
  auto first = device.batch(), second = device.batch();
  for (uint32_t i = 0; i < 5; ++i) {
    first.dispatch(kernel, Grid{64}, 10 + i);
    second.dispatch(kernel, Grid{64}, 20 + i);
  }
  CHECK(second.submit().wait(soon(), kActiveWait));
  first.dispatch(kernel, Grid{64}, 15u);
  CHECK(first.submit().wait(soon(), kActiveWait));
  CHECK(ran == std::vector<uint32_t>{20, 21, 22, 23, 24, 10, 11, 12, 13, 14, 15});
}

TEST_CASE("a batch that outgrows the free slots continues in memory, and reaches the ring complete",
          "[packet_store]") {
  std::vector<uint32_t> ran;
  DoubleDevice device({.device = {.ring_size = 32, .paused = true}},
                      [&](uint32_t number) { ran.push_back(number); });
  const auto kernel = number_kernel();
  auto batch = device.batch();
  for (uint32_t i = 0; i < 24; ++i) batch.dispatch(kernel, Grid{64}, i);
  batch.submit();
  // Eight slots are free, and the ring's end is between them.
  for (uint32_t i = 24; i < 40; ++i) batch.dispatch(kernel, Grid{64}, i);
  CHECK_FALSE(batch.try_submit());
  device.processor().resume();
  CHECK(batch.submit(soon()).wait(soon(), kActiveWait));
  REQUIRE(ran.size() == 40);
  for (uint32_t i = 0; i < 40; ++i) CHECK(ran[i] == i);
}

TEST_CASE(
    "batches that alternate on one small ring, dropped and submitted at random, run each dispatch "
    "once",
    "[packet_store]") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    std::vector<uint32_t> ran;
    DoubleDevice device({.device = {.ring_size = 32, .seed = seed}},
                        [&](uint32_t number) { ran.push_back(number); });
    const auto kernel = number_kernel();
    std::mt19937_64 random(seed);
    constexpr uint32_t batches = 3;
    std::vector<std::unique_ptr<BatchSubmitter>> batch;
    std::vector<uint32_t> filled(batches), expected;
    std::vector<std::vector<uint32_t>> holds(batches);
    for (uint32_t i = 0; i < batches; ++i)
      batch.push_back(std::make_unique<BatchSubmitter>(device.queue(), BatchOptions{}));
    Completion last;
    uint32_t number = 0;
    for (int step = 0; step < 400; ++step) {
      const auto which = static_cast<uint32_t>(random() % batches);
      switch (random() % 8) {
        case 0:
          expected.insert(expected.end(), holds[which].begin(), holds[which].end());
          holds[which].clear();
          last = batch[which]->submit();
          break;
        case 1:
          if (random() % 4 != 0) break;
          holds[which].clear();
          batch[which]->clear();
          break;
        default:
          for (auto count = random() % 6; count > 0; --count) {
            holds[which].push_back(number);
            batch[which]->dispatch(kernel, Grid{64}, number++);
          }
      }
      REQUIRE(batch[which]->size() == holds[which].size());
    }
    REQUIRE(last.wait(soon(), kActiveWait));
    CAPTURE(seed);
    REQUIRE(ran == expected);
  }
}

TEST_CASE("a refused batch with later declarations has the same headers as a new batch",
          "[packet_store]") {
  const auto headers = [](bool refused) {
    DoubleDevice device({.device = {.ring_size = 16, .paused = true}});
    const auto kernel = number_kernel();
    uint32_t a[4]{};
    auto blocker = device.batch(), batch = device.batch();
    for (uint32_t i = 0; i < 12; ++i) blocker.dispatch(kernel, Grid{64}, i);
    blocker.submit();
    for (uint32_t i = 0; i < 3; ++i) batch.dispatch(kernel, Grid{64}, i);
    if (refused) {
      batch.dispatch(kernel, Grid{64}, 3u);
      batch.dispatch(kernel, Grid{64}, 4u);
      CHECK_FALSE(batch.try_submit());
    } else {
      batch.dispatch(kernel, Grid{64}, 3u);
      batch.dispatch(kernel, Grid{64}, 4u);
    }
    batch.dispatch(kernel, Grid{64}, 5u).writes(a, 1);
    batch.raw(aql::to_packet(aql::BarrierAnd{}));
    batch.dispatch(kernel, Grid{64}, 6u).fences(aql::FenceScope::none, aql::FenceScope::none);
    device.processor().resume();
    CHECK(batch.submit(soon()).wait(soon(), kActiveWait));
    std::vector<uint16_t> seen;
    for (const Completed& completed : device.processor().completed())
      seen.push_back(completed.packet.header());
    return seen;
  };
  CHECK(headers(true) == headers(false));
  CHECK(headers(true).size() == 20);
}

TEST_CASE("dispatch_each() also fills a batch outside the ring", "[packet_store]") {
  std::vector<uint32_t> ran;
  DoubleDevice device({.device = {.ring_size = 32}},
                      [&](uint32_t number) { ran.push_back(number); });
  auto in_ring = device.batch(), apart = device.batch();
  const auto first = in_ring.prepare(number_kernel(), Grid{64}),
             second = apart.prepare(number_kernel(), Grid{64});
  first.dispatch_each(5, [](uint32_t i) noexcept { return std::tuple(i); });
  second.dispatch_each(100, [](uint32_t i) noexcept { return std::tuple(100 + i); });
  CHECK(apart.submit(soon()).wait(soon(), kActiveWait));
  CHECK(in_ring.submit(soon()).wait(soon(), kActiveWait));
  REQUIRE(ran.size() == 105);
  for (uint32_t i = 0; i < 100; ++i) CHECK(ran[i] == 100 + i);
  for (uint32_t i = 0; i < 5; ++i) CHECK(ran[100 + i] == i);
}

TEST_CASE("a timed batch across the ring's end has a signal on every packet, also after a refusal",
          "[packet_store]") {
  DoubleOptions options{.device = {.ring_size = 16, .paused = true}};
  options.queue.timing_signals = 12;
  DoubleDevice device(options);
  auto blocker = device.batch();
  for (uint32_t i = 0; i < 12; ++i) blocker.dispatch(number_kernel(), Grid{64}, i);
  blocker.submit();
  BatchSubmitter batch(device.queue(), {.timing = Timing::each});
  for (uint32_t i = 0; i < 8; ++i) batch.dispatch(number_kernel(), Grid{64}, i);
  CHECK_FALSE(batch.try_submit());
  device.processor().resume();
  const Completion done = batch.submit(soon());
  CHECK(done.wait(soon(), kActiveWait));
  CHECK(done.times().size() == 8);
  const auto packets = device.processor().completed();
  REQUIRE(packets.size() == 20);
  for (size_t i = 12; i < 20; ++i)
    CHECK(
        aql::packet_as<hsa_kernel_dispatch_packet_t>(packets[i].packet).completion_signal.handle !=
        0);
}
