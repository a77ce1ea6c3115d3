// Storage of a batch's packets until they are published.
#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include <uptempo/dispatch/detail/packet_store.hpp>
#include <uptempo/runtime/counters.hpp>
#include <uptempo/runtime/error.hpp>
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

}  // namespace

TEST_CASE("a store grows, keeps its packets, and keeps its memory when cleared", "[packet_store]") {
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
    store.open();
    CHECK_FALSE(store.full());
    CHECK(store.room() == 24);
    store.clear();
    CHECK(store.size() == 0);
    CHECK(store.empty());
  }
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

TEST_CASE("batches of one queue are published in the order of their submissions",
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

TEST_CASE("a batch that outgrows the free slots reaches the ring complete", "[packet_store]") {
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
    DoubleDevice device({.device = {.ring_size = 32, .paused = true}});
    const auto kernel = number_kernel();
    uint32_t a[4]{};
    auto blocker = device.batch(), batch = device.batch();
    for (const uint32_t count : {24u, 4u}) {
      for (uint32_t i = 0; i < count; ++i) blocker.dispatch(kernel, Grid{64}, i);
      blocker.submit();
    }
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
  CHECK(headers(true).size() == 36);
}

TEST_CASE("dispatch_each() fills two batches of one queue", "[packet_store]") {
  std::vector<uint32_t> ran;
  DoubleDevice device({.device = {.ring_size = 32}},
                      [&](uint32_t number) { ran.push_back(number); });
  auto one = device.batch(), other = device.batch();
  const auto first = one.prepare(number_kernel(), Grid{64}),
             second = other.prepare(number_kernel(), Grid{64});
  first.dispatch_each(5, [](uint32_t i) noexcept { return std::tuple(i); });
  second.dispatch_each(100, [](uint32_t i) noexcept { return std::tuple(100 + i); });
  CHECK(other.submit(soon()).wait(soon(), kActiveWait));
  CHECK(one.submit(soon()).wait(soon(), kActiveWait));
  REQUIRE(ran.size() == 105);
  for (uint32_t i = 0; i < 100; ++i) CHECK(ran[i] == 100 + i);
  for (uint32_t i = 0; i < 5; ++i) CHECK(ran[100 + i] == i);
}

TEST_CASE("a timed batch across the ring's end has a signal on every packet, also after a refusal",
          "[packet_store]") {
  DoubleOptions options{.device = {.ring_size = 32, .paused = true}};
  options.queue.timing_signals = 12;
  DoubleDevice device(options);
  auto blocker = device.batch();
  for (const uint32_t count : {24u, 4u}) {
    for (uint32_t i = 0; i < count; ++i) blocker.dispatch(number_kernel(), Grid{64}, i);
    blocker.submit();
  }
  BatchSubmitter batch(device.queue(), {.timing = Timing::each});
  for (uint32_t i = 0; i < 8; ++i) batch.dispatch(number_kernel(), Grid{64}, i);
  CHECK_FALSE(batch.try_submit());
  device.processor().resume();
  const Completion done = batch.submit(soon());
  CHECK(done.wait(soon(), kActiveWait));
  CHECK(done.times().size() == 8);
  const auto packets = device.processor().completed();
  REQUIRE(packets.size() == 36);
  for (size_t i = 28; i < 36; ++i)
    CHECK(
        aql::packet_as<hsa_kernel_dispatch_packet_t>(packets[i].packet).completion_signal.handle !=
        0);
}
