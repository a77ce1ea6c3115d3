// Threads that share an HSA queue through a SharedQueue, on a device.
#include <uptempo/kernels/basics.hpp>
#include <uptempo/uptempo.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/on_device.hpp"
#include "test/support/own_dispatch.hpp"

using namespace uptempo;
using namespace std::chrono_literals;

namespace {

using uptempo::test::contains;
using uptempo::test::error_of;
using uptempo::test::OnDevice;
using uptempo::test::OwnDispatch;
using uptempo::test::OwnQueue;
using uptempo::test::soon;

}  // namespace

TEST_CASE_METHOD(OnDevice,
                 "threads over one HSA queue: every dispatch runs once, in order per thread",
                 "[shared]") {
  constexpr uint32_t threads = 4, each = 1200, lanes = 64;
  const Program program{gpu, builtin_kernels::basics()};
  const auto link = program.kernel<uint32_t*, uint32_t>("chain_increment");
  SharedQueue shared{gpu, {.packets = 256}};
  Copier copier{gpu};
  const DeviceBuffer<uint32_t> values{gpu, threads * lanes};
  copier.fill(values, 0);
  std::atomic<uint32_t> late{0};

  const auto produce = [&](uint32_t which) {
    Queue mine = shared.producer();
    std::mt19937 random(which);
    // Only its barrier bit orders a link after the previous one.
    BatchSubmitter batch{mine, {.timing = which % 2 == 0 ? Timing::none : Timing::batch}};
    for (uint32_t done = 0; done < each;) {
      // Sometimes longer than the ring.
      const uint32_t count = std::min<uint32_t>(
          each - done, 1 + static_cast<uint32_t>(random() % (random() % 16 == 0 ? 400 : 8)));
      for (uint32_t i = 0; i < count; ++i)
        batch.dispatch(link, Grid{lanes}, values.data() + which * lanes, done + i);
      const Completion completion = batch.submit();
      if (random() % 4 == 0) late += !completion.wait(soon());
      done += count;
    }
    late += !mine.last_submitted().wait(soon());
  };
  std::vector<std::thread> others;
  for (uint32_t which = 1; which < threads; ++which) others.emplace_back(produce, which);
  produce(0);
  for (std::thread& other : others) other.join();
  CHECK(late == 0);

  uint32_t expected = 0;
  for (uint32_t i = 0; i < each; ++i) expected = expected * 3 + i;
  std::vector<uint32_t> host(values.size());
  copier.copy(host, values);
  CHECK(std::count(host.begin(), host.end(), expected) == static_cast<ptrdiff_t>(host.size()));
}

TEST_CASE_METHOD(OnDevice, "threads and their caller dispatch in turns in a queue of the caller's",
                 "[shared]") {
  constexpr uint32_t threads = 3, rounds = 12, each = 90, lanes = 64;
  const Program program{gpu, builtin_kernels::basics()};
  const auto link = program.kernel<uint32_t*, uint32_t>("chain_increment");
  Copier copier{gpu};
  const DeviceBuffer<uint32_t> values{gpu, threads * lanes};
  copier.fill(values, 0);
  const OwnQueue owned{gpu, 64};
  {
    SharedQueue shared = SharedQueue::borrow(gpu, owned.handle(), owned.error());
    CHECK(shared.handle() == owned.handle());
    CHECK(shared.ring_size() == 64);
    std::vector<Queue> queues;
    for (uint32_t which = 0; which < threads; ++which) queues.push_back(shared.producer());
    CHECK(contains(queues[0].describe(), "that of a SharedQueue, which borrows it"));
    // A batch is longer than the ring. The caller's dispatch continues each thread's chain.
    std::vector<std::unique_ptr<OwnDispatch>> own;
    for (uint32_t round = 0; round < rounds; ++round) {
      std::vector<std::thread> all;
      for (uint32_t which = 0; which < threads; ++which)
        all.emplace_back([&, which] {
          BatchSubmitter batch{queues[which], {.timing = Timing::batch}};
          for (uint32_t i = 0; i < each; ++i)
            batch.dispatch(link, Grid{lanes}, values.data() + which * lanes, i);
          batch.submit(soon());
        });
      for (std::thread& thread : all) thread.join();
      own.push_back(std::make_unique<OwnDispatch>(gpu, link, Grid{threads * lanes}.by(64),
                                                  values.data(), round));
      for (bool is_published = false; !is_published;)
        shared.publish_own([&](uint64_t room) {
          if (room == 0) return;
          own.back()->publish(owned.handle());
          is_published = true;
        });
    }
    for (const Queue& queue : queues) {
      const Completion last = queue.last_submitted();
      CHECK(last.wait(soon()));
      CHECK(last.times().size() == 2);
    }
    CHECK(hsa_signal_wait_scacquire(own.back()->done().handle(), HSA_SIGNAL_CONDITION_EQ, 0,
                                    UINT64_MAX, HSA_WAIT_STATE_BLOCKED) == 0);
  }
  uint32_t expected = 0;
  for (uint32_t round = 0; round < rounds; ++round) {
    for (uint32_t i = 0; i < each; ++i) expected = expected * 3 + i;
    expected = expected * 3 + round;
  }
  std::vector<uint32_t> host(values.size());
  copier.copy(host, values);
  CHECK(std::count(host.begin(), host.end(), expected) == static_cast<ptrdiff_t>(host.size()));

  SharedQueue library{gpu, {.packets = 256}};
  CHECK(contains(error_of<Error>([&] { library.publish_own([](uint64_t) {}); }),
                 "the library created that queue"));
}

TEST_CASE_METHOD(OnDevice, "an error of the HSA queue ends the work of every thread that shares it",
                 "[shared]") {
  const Program program{gpu, builtin_kernels::basics()};
  const auto empty = program.kernel<>("empty");
  SharedQueue shared{gpu, {.packets = 256, .drain_timeout = 100ms}};
  Queue one = shared.producer(), two = shared.producer();
  const Signal gate;
  BatchSubmitter good{two};
  good.raw(aql::to_packet(aql::BarrierAnd{.dependencies = {gate.handle()}}));
  const Completion pending = good.submit();
  // An undefined packet type, so no packet processor can pass it.
  BatchSubmitter batch{one};
  aql::Packet64 broken{};
  broken.word[0] = aql::first_word(static_cast<uint16_t>(0x1400 | 0x77));
  batch.raw(broken);
  const Completion bad = batch.submit();
  good.dispatch(empty, Grid{64});
  const Completion behind = good.submit();
  hsa_signal_store_screlease(gate.handle(), 0);
  CHECK(contains(error_of([&] { (void)bad.wait(soon()); }),
                 "the packet processor stopped the queue"));
  CHECK(contains(error_of([&] { (void)behind.wait(soon()); }),
                 "the packet processor stopped the queue"));
  CHECK(pending.ready());
  Queue late = shared.producer();
  BatchSubmitter refused{late};
  refused.dispatch(empty, Grid{64});
  CHECK(contains(error_of([&] { refused.submit(); }), "this one takes no more work"));
}

TEST_CASE("the HSA queue exists until the last producer is destroyed", "[shared]") {
  std::optional<Runtime> runtime;
  runtime.emplace();
  const Agent gpu = runtime->gpu();
  const Program program{gpu, builtin_kernels::basics()};
  const auto empty = program.kernel<>("empty");
  std::optional<SharedQueue> shared;
  shared.emplace(gpu, QueueOptions{.packets = 256});
  std::optional<Queue> one(shared->producer()), two(shared->producer());
  const auto works = [&](Queue& queue) {
    BatchSubmitter batch{queue};
    batch.dispatch(empty, Grid{64});
    return batch.submit().wait(soon());
  };
  CHECK(one->handle() == two->handle());
  CHECK(shared->ring_size() == 256);
  CHECK(works(*one));
  one.reset();
  CHECK(works(*two));
  {
    const SharedQueue copy = *shared;
    shared.reset();
    CHECK(works(*two));
    shared.emplace(copy);
  }
  runtime.reset();
  CHECK(contains(error_of([&] { shared->producer(); }), "destroyed with the Runtime"));
  two.reset();
}

TEST_CASE_METHOD(
    OnDevice,
    "a thread that leaves with unfinished work loses it, and the queue still serves the others",
    "[shared]") {
  const Program program{gpu, builtin_kernels::basics()};
  const auto fill = program.kernel<uint32_t*, uint32_t>("fill");
  const PinnedBuffer<uint32_t> out{gpu, 64};
  const Signal gate;
  SharedQueue shared{gpu, {.packets = 256, .drain_timeout = 10ms}};
  Queue stays = shared.producer();
  Completion lost;
  {
    Queue leaves = shared.producer();
    BatchSubmitter batch{leaves};
    batch.raw(aql::to_packet(aql::BarrierAnd{.dependencies = {gate.handle()}}));
    batch.dispatch(fill, Grid{64}, out.data(), 0xfeedu);
    lost = batch.submit();
  }
  CHECK(contains(error_of([&] { (void)lost.ready(); }), "destroyed before the work was complete"));
  hsa_signal_store_screlease(gate.handle(), 0);
  BatchSubmitter batch{stays};
  batch.raw(aql::to_packet(aql::BarrierAnd{}));
  CHECK(batch.submit().wait(soon()));
  CHECK(std::count(out.begin(), out.end(), 0xfeedu) == 64);
}

// The device has signals with events, whose waiters the loss wakes by changing their values.
TEST_CASE_METHOD(OnDevice, "slots that a lost kernel holds are free once it has ended",
                 "[shared]") {
  const Program program{gpu, builtin_kernels::basics()};
  const auto empty = program.kernel<>("empty");
  const Signal gate;
  SharedQueue shared{gpu, {.packets = 256, .drain_timeout = 10ms}};
  const uint32_t ring = shared.ring_size();
  Queue stays = shared.producer();
  Completion lost;
  {
    Queue leaves = shared.producer();
    BatchSubmitter batch{leaves};
    batch.raw(aql::to_packet(aql::BarrierAnd{.dependencies = {gate.handle()}}));
    // A finished dispatch holds its slot, because its kernel may read its packet.
    batch.raw(aql::to_packet(
        aql::KernelDispatch{.grid = {64, 1, 1},
                            .workgroup = {64, 1, 1},
                            .dimensions = 1,
                            .private_segment_size = empty.info().private_segment_size,
                            .group_segment_size = empty.info().group_segment_size,
                            .kernel_object = empty.info().object}));
    lost = batch.submit();
  }
  CHECK(contains(error_of([&] { (void)lost.ready(); }), "destroyed before the work was complete"));
  hsa_signal_store_screlease(gate.handle(), 0);
  BatchSubmitter batch{stays};
  for (uint32_t i = 0; i < 2 * ring; ++i) batch.dispatch(empty, Grid{64});
  CHECK(batch.submit(soon()).wait(soon()));
  CHECK(contains(error_of([&] { (void)lost.ready(); }), "destroyed before the work was complete"));
}

TEST_CASE_METHOD(OnDevice, "queues that cannot be shared are refused", "[shared]") {
  CHECK(contains(error_of([&] { SharedQueue(gpu, {.packets = 63}); }), "not a power of two"));
}
