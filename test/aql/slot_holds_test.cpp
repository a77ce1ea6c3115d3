// Slots that stay in use after the read index has passed them.
#include <uptempo/aql/slot_holds.hpp>

#include <array>
#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include <uptempo/aql/writer.hpp>
#include "test/support/catch.hpp"
#include "test/support/hsa_double.hpp"
#include "test/support/queue_double.hpp"

using namespace uptempo;
using namespace uptempo::aql;
using namespace uptempo::test;

namespace {

// Complete up to and including `value`.
using Owner = std::atomic<uint64_t>;
bool is_complete(const HoldEnd& end) noexcept {
  return static_cast<Owner*>(end.owner)->load() >= end.value;
}

Packet64 dispatch() {
  return to_packet(KernelDispatch{.grid = {1}, .workgroup = {1}, .kernel_object = 0x1000});
}

}  // namespace

TEST_CASE("without holds the read index frees every slot", "[holds]") {
  SlotHolds holds(8, 100, is_complete);
  CHECK(holds.free_below(100) == 100);
  CHECK(holds.free_below(107) == 107);
  CHECK(holds.free_below(103) == 107);  // an older read index frees nothing and holds nothing
}

TEST_CASE("a hold ends with its owner's completion, and later slots wait for it", "[holds]") {
  Owner owner{0};
  SlotHolds holds(8, 0, is_complete);
  holds.add(2, 4, {.owner = &owner, .value = 1});
  holds.add(6, 6, {.owner = &owner, .value = 2});
  CHECK(holds.free_below(1) == 1);
  CHECK(holds.free_below(5) == 2);
  CHECK(holds.free_below(8) == 2);
  owner = 1;
  CHECK(holds.free_below(8) == 6);
  owner = 2;
  CHECK(holds.free_below(8) == 8);
}

TEST_CASE("a completion frees no slot that the read index has not passed", "[holds]") {
  Owner owner{1};
  SlotHolds holds(8, 0, is_complete);
  holds.add(0, 5, {.owner = &owner, .value = 1});
  CHECK(holds.free_below(3) == 3);
  CHECK(holds.free_below(5) == 5);
  CHECK(holds.free_below(7) == 7);
}

TEST_CASE("holds of one lap do not count in the next", "[holds]") {
  Owner owner{0};
  SlotHolds holds(4, 0, is_complete);
  for (uint64_t lap = 0; lap < 5; ++lap) {
    const uint64_t first = lap * 4;
    holds.add(first, first + 1, {.owner = &owner, .value = lap + 1});
    CHECK(holds.free_below(first + 4) == first);
    owner = lap + 1;
    CHECK(holds.free_below(first + 4) == first + 4);
    // A lap without holds.
    ++lap;
    CHECK(holds.free_below(lap * 4 + 4) == lap * 4 + 4);
  }
}

TEST_CASE("a writer with holds refuses slots that the read index has passed", "[holds]") {
  Owner owner{0};
  for (const bool shared : {false, true}) {
    CAPTURE(shared);
    owner = 0;
    QueueDouble queue({.ring_size = 8});
    SlotHolds holds(8, 0, is_complete);
    SharedRing ring(queue.queue());
    AqlQueueWriter writer =
        shared ? AqlQueueWriter::share(ring) : AqlQueueWriter::borrow(queue.queue());
    writer.use_holds(holds);
    const std::vector<Packet64> packets(8, dispatch());
    const auto emit = [&](uint64_t i, void* slot) noexcept { return fill(slot, packets[i]); };
    REQUIRE(writer.publish(2, Deadline::now(), emit));
    aql::Slots slots{3};
    REQUIRE(writer.try_reserve(slots));
    writer.hold(slots, {.owner = &owner, .value = 1});
    writer.commit(slots, emit);
    REQUIRE(writer.publish(3, Deadline::now(), emit));
    queue.read_index().store(8);
    CHECK(writer.free_below() == 2);
    CHECK(writer.room().occupancy == 6);
    const PublishResult refused = writer.publish(3, Deadline::now(), emit);
    CHECK(refused.status == PublishStatus::resource_full);
    CHECK(refused.occupancy == 6);
    CHECK(writer.publish(2, Deadline::now(), emit));
    owner = 1;
    CHECK(writer.free_below() == 8);
    CHECK(writer.publish(6, Deadline::now(), emit));
  }
}

TEST_CASE("several threads agree on the slots in use, whatever lap each of them sees",
          "[holds][stress]") {
  // One thread adds holds and ends them in order. The others ask with read indices of any age. No
  // answer may pass the first hold that had not ended when the question was asked.
  constexpr uint64_t kRing = 8, kHolds = 40000;
  static_assert(kHolds % 2 == 0);
  Owner owner{0};
  SlotHolds holds(kRing, 0, is_complete);
  std::atomic<uint64_t> published{0};
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> wrong{0};
  const auto ask = [&] {
    while (!stop.load()) {
      const uint64_t read = published.load();
      const uint64_t free = holds.free_below(read);
      // Hold i covers packet 2 i; what ends it after the question may count.
      wrong += free > 2 * owner.load();
    }
  };
  std::vector<std::thread> others;
  for (int i = 0; i < 3; ++i) others.emplace_back(ask);
  for (uint64_t i = 0; i < kHolds; ++i) {
    while (2 * i + 2 - holds.free_below(published.load()) > kRing) std::this_thread::yield();
    holds.add(2 * i, 2 * i, {.owner = &owner, .value = i + 1});
    published.store(2 * i + 2);
    if (i >= 2) owner.store(i - 1);
  }
  stop = true;
  for (std::thread& other : others) other.join();
  CHECK(wrong == 0);
  owner = kHolds;
  CHECK(holds.free_below(2 * kHolds) == 2 * kHolds);
}
