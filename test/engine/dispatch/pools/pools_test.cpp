// Kernarg blocks and signals: no block or signal is handed out twice, and all are returned.
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include <uptempo/dispatch/batch_submitter.hpp>
#include <uptempo/dispatch/pools/kernarg_pool.hpp>
#include <uptempo/dispatch/pools/pressure.hpp>
#include <uptempo/dispatch/pools/signal_pool.hpp>
#include <uptempo/runtime/counters.hpp>
#include "test/support/catch.hpp"
#include "test/support/queue_double.hpp"

using namespace uptempo;
using test::SignalDouble;

namespace {

struct alignas(64) Line {
  std::byte bytes[64];
};

struct Memory {
  explicit Memory(size_t bytes) : lines(bytes / sizeof(Line)) {}
  std::span<std::byte> span() { return {lines.front().bytes, lines.size() * sizeof(Line)}; }
  std::vector<Line> lines;
};

}  // namespace

TEST_CASE("kernarg blocks are 64-byte aligned and share no line", "[kernarg_pool]") {
  Memory memory(4096);
  KernargPool pool(memory.span(), 1024);
  KernargPool::Cursor cursor;
  std::set<std::byte*> lines;
  for (const uint32_t size : {1u, 64u, 65u, 8u, 200u}) {
    std::byte* const block = pool.take(cursor, KernargPool::block_bytes(size));
    REQUIRE(block != nullptr);
    CHECK(reinterpret_cast<uintptr_t>(block) % 64 == 0);
    for (uint32_t at = 0; at < size; at += 64) CHECK(lines.insert(block + at).second);
  }
  pool.drop(cursor);
  CHECK(pool.free_slabs() == 4);
}

TEST_CASE("a block larger than a slab or from an exhausted pool is null and changes nothing",
          "[kernarg_pool]") {
  Memory memory(2048);
  KernargPool pool(memory.span(), 1024);
  KernargPool::Cursor cursor;
  CHECK(pool.take(cursor, KernargPool::block_bytes(1025)) == nullptr);
  CHECK(pool.free_slabs() == 2);
  CHECK(pool.take(cursor, KernargPool::block_bytes(1024)) != nullptr);
  CHECK(pool.take(cursor, KernargPool::block_bytes(1024)) != nullptr);
  CHECK(pool.take(cursor, KernargPool::block_bytes(1)) == nullptr);
  CHECK(pool.take(cursor, KernargPool::block_bytes(UINT32_MAX)) == nullptr);
  const KernargPool::Slabs run = pool.publish(cursor);
  CHECK(pool.take(cursor, KernargPool::block_bytes(1)) == nullptr);
  pool.retire(run);
  CHECK(pool.free_slabs() == 1);  // the batch still holds the one it was filling
  CHECK(pool.take(cursor, KernargPool::block_bytes(1)) != nullptr);
  pool.drop(cursor);
  CHECK(pool.free_slabs() == 2);
}

TEST_CASE("a kernarg block is not handed out while a publication that holds it is unfinished",
          "[kernarg_pool]") {
  // A model: every block in use, by the publication or batch that holds it. Several batches, any
  // order of events, in-order completion.
  Memory memory(16 * 512);
  KernargPool pool(memory.span(), 512);
  std::mt19937 random(7);
  std::vector<KernargPool::Cursor> cursors(3);
  std::vector<std::vector<std::byte*>> unpublished(cursors.size());
  struct Publication {
    KernargPool::Slabs slabs;
    std::vector<std::byte*> blocks;
  };
  std::deque<Publication> pending;
  std::set<std::byte*> in_use;
  unsigned taken = 0, refused = 0;
  for (int step = 0; step < 200000; ++step) {
    const size_t batch = random() % cursors.size();
    switch (random() % 8) {
      case 0:
        if (!unpublished[batch].empty()) {
          pending.push_back({pool.publish(cursors[batch]), std::move(unpublished[batch])});
          unpublished[batch].clear();
        }
        break;
      case 1:
        if (!pending.empty()) {
          pool.retire(pending.front().slabs);
          for (std::byte* const block : pending.front().blocks) in_use.erase(block);
          pending.pop_front();
        }
        break;
      case 2:
        if (random() % 16 == 0) {
          pool.drop(cursors[batch]);
          for (std::byte* const block : unpublished[batch]) in_use.erase(block);
          unpublished[batch].clear();
        }
        break;
      default:
        if (std::byte* const block = pool.take(cursors[batch], 64)) {
          if (!in_use.insert(block).second) FAIL("block given out twice at step " << step);
          unpublished[batch].push_back(block);
          ++taken;
        } else {
          ++refused;
        }
    }
  }
  CHECK(taken > 10000);
  CHECK(refused > 100);
  for (const Publication& publication : pending) pool.retire(publication.slabs);
  for (KernargPool::Cursor& cursor : cursors) pool.drop(cursor);
  CHECK(pool.free_slabs() == pool.slabs());
}

TEST_CASE("signals are sorted by their actual kind, not by the requested one", "[signal_pool]") {
  SignalDouble with_event(0), without(0);
  with_event.abi().event_mailbox_ptr = 0x1000;
  const hsa_signal_t signals[] = {with_event.handle(), without.handle()};
  SignalPool pool(signals);
  CHECK(pool.interrupts() == 1);
  CHECK(pool.event_less() == 1);
  CHECK(pool.take(SignalKind::interrupt).handle == with_event.handle().handle);
  CHECK(pool.take(SignalKind::interrupt).handle == 0);  // the event-less one is not a substitute
  CHECK(pool.take(SignalKind::event_less).handle == without.handle().handle);
}

TEST_CASE("a pool without any interrupt signal serves completions with event-less ones",
          "[signal_pool]") {
  SignalDouble signal(-3);
  const hsa_signal_t signals[] = {signal.handle()};
  SignalPool pool(signals);
  CHECK(pool.interrupts() == 0);
  CHECK(pool.size(SignalKind::interrupt) == 1);
  const hsa_signal_t taken = pool.take(SignalKind::interrupt);
  REQUIRE(taken.handle == signal.handle().handle);
  CHECK(signal.value() == 1);  // armed
  CHECK(pool.free(SignalKind::interrupt) == 0);
  pool.give_back(taken);
  CHECK(pool.free(SignalKind::interrupt) == 1);
}

TEST_CASE("a level is high from three quarters of its capacity until it falls to half",
          "[pressure]") {
  detail::Gauge gauge;
  gauge.start(16);
  const auto high_after = [&](uint32_t in_use) {
    gauge.set(in_use);
    CHECK(gauge.level().in_use == in_use);
    return gauge.level().high;
  };
  for (const uint32_t in_use : {0u, 4u, 11u, 9u, 11u}) CHECK_FALSE(high_after(in_use));
  for (const uint32_t in_use : {12u, 16u, 11u, 9u, 10u}) CHECK(high_after(in_use));
  for (const uint32_t in_use : {8u, 9u, 11u, 0u}) CHECK_FALSE(high_after(in_use));
  CHECK(gauge.level().peak == 16);
  CHECK(gauge.level().capacity == 16);
  CHECK(gauge.level().free() == 16);
}

TEST_CASE("a level with odd capacity never sticks and is not high when unused", "[pressure]") {
  for (const uint32_t capacity : {1u, 3u, 7u, 100u}) {
    CAPTURE(capacity);
    detail::Gauge gauge;
    gauge.start(capacity);
    CHECK_FALSE(gauge.level().high);
    gauge.set(capacity);
    CHECK(gauge.level().high);
    gauge.set(0);
    CHECK_FALSE(gauge.level().high);
  }
}

TEST_CASE("pools report their occupancy and its peak, also between two reads", "[pressure]") {
  Memory memory(8 * 512);
  KernargPool kernargs(memory.span(), 512);
  KernargPool::Cursor cursor;
  for (int i = 0; i < 6; ++i) (void)kernargs.take(cursor, 512);
  CHECK(kernargs.level().in_use == 6);
  const KernargPool::Slabs run = kernargs.publish(cursor);
  kernargs.drop(cursor);
  kernargs.retire(run);
  CHECK(kernargs.level().in_use == 0);
  CHECK(kernargs.level().peak == 6);
  CHECK_FALSE(kernargs.level().high);

  SignalDouble a(0), b(0), c(0);
  a.abi().event_mailbox_ptr = b.abi().event_mailbox_ptr = 0x1000;
  const hsa_signal_t signals[] = {a.handle(), b.handle(), c.handle()};
  SignalPool pool(signals);
  const hsa_signal_t first = pool.take(SignalKind::interrupt);
  CHECK_FALSE(pool.level(SignalKind::interrupt).high);
  const hsa_signal_t second = pool.take(SignalKind::interrupt);
  CHECK(pool.level(SignalKind::interrupt).high);
  CHECK(pool.take(SignalKind::interrupt).handle == 0);
  CHECK(pool.level(SignalKind::event_less).in_use == 0);
  pool.give_back(second);
  CHECK_FALSE(pool.level(SignalKind::interrupt).high);
  pool.give_back(first);
  CHECK(pool.level(SignalKind::interrupt).peak == 2);
}

TEST_CASE("counters of several threads add up, also after the threads have ended", "[counters]") {
  const Counters before = Counters::now();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 1000; ++i) detail::count(&detail::CounterBlock::doorbells);
      detail::count(&detail::CounterBlock::bytes_staged, 12345);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Counters spent = Counters::now() - before;
  CHECK(spent.doorbells == 4000);
  CHECK(spent.bytes_staged == 4 * 12345);
  CHECK(spent.host_waits == 0);
}
