// Several engine queues over one ring: batches of threads that share an HSA queue, against the
// packet processor double.
#include <hsa/hsa.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include <uptempo/runtime/counters.hpp>
#include <uptempo/runtime/error.hpp>
#include "test/engine/dispatch/shared_device.hpp"
#include "test/engine/error_code.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/eventually.hpp"
#include "test/support/hsa_double.hpp"
#include "tools/support/cost_meter.hpp"

using namespace uptempo;
using namespace uptempo::test;
using namespace std::chrono_literals;
using aql::FenceScope;

namespace {

using uptempo::test::contains;
using uptempo::test::error_of;

// A dispatch's number: its submitting thread and its position in that thread's order.
constexpr uint32_t number(uint32_t which, uint32_t i) { return which << 24 | i; }

// Dispatches in the order in which they ran. Its functions run one at a time: in the processor's
// thread, then in the test's.
struct Ran {
  std::vector<uint32_t> all;
  auto note() {
    return [this](uint32_t n) { all.push_back(n); };
  }
  // True if the first `count` dispatches of each of `threads` ran once each, in order.
  bool is_complete(uint32_t threads, uint32_t count) const {
    std::vector<uint32_t> next(threads);
    for (const uint32_t n : all)
      if (n >> 24 >= threads || next[n >> 24]++ != (n & 0xffffff)) return false;
    for (const uint32_t n : next)
      if (n != count) return false;
    return true;
  }
};

}  // namespace

TEST_CASE("batches of two queues over one ring are contiguous in it", "[shared]") {
  Ran ran;
  SharedDevice device(2, {.device = {.ring_size = 64, .paused = true}}, ran.note());
  const auto kernel = number_kernel();
  BatchSubmitter one(device[0], {}), two(device[1], {});
  for (uint32_t i = 0; i < 3; ++i) {
    one.dispatch(kernel, Grid{1}, number(0, i));
    two.dispatch(kernel, Grid{1}, number(1, i));
  }
  const Completion second = two.submit(), first = one.submit();
  CHECK_FALSE(first.ready());
  device.processor().resume();
  CHECK(first.wait(soon(), kActiveWait));
  CHECK(second.ready());  // it is published before the first one
  CHECK(ran.all == std::vector<uint32_t>{number(1, 0), number(1, 1), number(1, 2), number(0, 0),
                                         number(0, 1), number(0, 2)});
  // Each is planned as if it were alone.
  const auto packets = device.processor().completed();
  REQUIRE(packets.size() == 6);
  for (size_t i = 0; i < 6; ++i) {
    CAPTURE(i);
    const auto flags = aql::header_flags(packets[i].packet.header());
    CHECK(flags.barrier == aql::Barrier::on);
    CHECK(flags.acquire == (i % 3 == 0 ? FenceScope::system : FenceScope::agent));
    CHECK(flags.release == (i % 3 == 2 ? FenceScope::system : FenceScope::agent));
  }
}

TEST_CASE("with eight threads over a ring of 64 every dispatch runs once, in order per thread",
          "[shared][stress]") {
  constexpr uint32_t threads = 8, each = 600;
  for (const uint64_t seed : {1u, 2u}) {
    Ran ran;
    SharedDevice device(threads,
                        {.device = {.ring_size = 64, .seed = seed, .early_read_index = seed == 2}},
                        ran.note());
    std::atomic<uint32_t> failed{0};
    const auto produce = [&](uint32_t which) {
      std::mt19937_64 random(seed * 31 + which);
      const auto kernel = number_kernel();
      BatchSubmitter batch(device[which],
                           {.chunking = {.lead = static_cast<uint32_t>(random() % 3), .chunk = 8}});
      Completion last;
      for (uint32_t done = 0; done < each;) {
        // Sometimes longer than the ring.
        uint32_t count = 1 + static_cast<uint32_t>(random() % (random() % 32 == 0 ? 100 : 12));
        if (count > each - done) count = each - done;
        for (uint32_t i = 0; i < count; ++i)
          batch.dispatch(kernel, Grid{1}, number(which, done + i));
        last = batch.submit(Deadline::after(60s));
        done += count;
        if (random() % 4 == 0) failed += !last.wait(Deadline::after(60s), kActiveWait);
        if (random() % 8 == 0)
          std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
      }
      failed += !last.wait(Deadline::after(60s), kActiveWait);
    };
    std::vector<std::thread> others;
    for (uint32_t which = 1; which < threads; ++which) others.emplace_back(produce, which);
    produce(0);
    for (std::thread& other : others) other.join();
    CHECK(failed == 0);
    CHECK(device.processor().error() == HSA_STATUS_SUCCESS);
    REQUIRE(device.processor().wait_completed(threads * each));
    CHECK(ran.is_complete(threads, each));
  }
}

TEST_CASE(
    "a submission waits for a ring that another thread has filled; a try refuses and changes "
    "nothing",
    "[shared]") {
  Ran ran;
  SharedDevice device(2, {.device = {.ring_size = 64, .paused = true}}, ran.note());
  const auto kernel = number_kernel();
  BatchSubmitter one(device[0], {}), two(device[1], {});
  for (uint32_t i = 0; i < 60; ++i) one.dispatch(kernel, Grid{1}, number(0, i));
  one.submit();  // in two parts, the first of which ends with a barrier packet
  for (uint32_t i = 0; i < 5; ++i) two.dispatch(kernel, Grid{1}, number(1, i));
  CHECK_FALSE(two.try_submit().has_value());
  const std::string text = error_of<Error>([&] { two.submit(Deadline::after(5ms)); });
  CAPTURE(text);
  CHECK(contains(text, "5 slots in the ring"));
  CHECK(contains(text, "61 are in use"));
  CHECK(two.size() == 5);
  CHECK(device[1].pressure().publications.in_use == 0);
  CHECK(device[1].pressure().ring.in_use == 61);
  std::thread later([&] {
    std::this_thread::sleep_for(5ms);
    device.processor().resume();
  });
  const Completion completion = two.submit(soon());
  later.join();
  CHECK(completion.wait(soon(), kActiveWait));
  CHECK(ran.all.size() == 65);
}

TEST_CASE("a batch longer than the ring lets other threads' batches in between its parts",
          "[shared]") {
  Ran ran;
  SharedDevice device(2, {.device = {.ring_size = 64, .paused = true}}, ran.note());
  const auto kernel = number_kernel();
  BatchSubmitter one(device[0], {}), two(device[1], {});
  for (uint32_t i = 0; i < 80; ++i) one.dispatch(kernel, Grid{1}, number(0, i));
  CHECK(contains(error_of<Error>([&] { one.submit(Deadline::after(1ms)); }),
                 "31 of 80 packets of this batch are published"));
  SECTION("which submit normally, as other batches of its own queue do") {
    device.processor().resume();
    two.dispatch(kernel, Grid{1}, number(1, 0));
    CHECK(two.submit().wait(soon(), kActiveWait));
    CHECK(one.submit().wait(soon(), kActiveWait));
    CHECK(ran.all.size() == 81);
    CHECK(ran.all[31] == number(1, 0));
    CHECK(ran.is_complete(1, 80) == false);
    std::erase(ran.all, number(1, 0));
    CHECK(ran.is_complete(1, 80));
  }
  SECTION("and leaves the published parts behind when it is given up") {
    device.processor().resume();
    one.clear();
    two.dispatch(kernel, Grid{1}, number(1, 0));
    CHECK(two.submit().wait(soon(), kActiveWait));
    CHECK(ran.all.size() == 32);
    CHECK(aql::packet_type(device.processor().completed()[31].packet.header()) ==
          aql::PacketType::barrier_and);
  }
}

TEST_CASE("an error of the common queue ends the work of every thread", "[shared]") {
  SharedDevice device(3, {.device = {.ring_size = 64, .paused = true}});
  const auto kernel = number_kernel();
  std::vector<Completion> pending;
  for (size_t which = 0; which < 2; ++which) {
    BatchSubmitter batch(device[which], {});
    batch.dispatch(kernel, Grid{1}, 0);
    pending.push_back(batch.submit());
  }
  std::array<std::string, 2> texts;
  std::vector<std::thread> waiters;
  for (size_t which = 0; which < 2; ++which)
    waiters.emplace_back(
        [&, which] { texts[which] = error_of<Error>([&] { (void)pending[which].wait(soon()); }); });
  device.common().fail(
      HSA_STATUS_ERROR_INVALID_PACKET_FORMAT,
      detail::stopped_with(HSA_STATUS_ERROR_INVALID_PACKET_FORMAT, device.processor().queue()));
  for (std::thread& waiter : waiters) waiter.join();
  for (const std::string& text : texts)
    CHECK(contains(text, "the packet processor stopped the queue"));
  // Also the work of a thread that has submitted nothing yet, and of one that joins later.
  BatchSubmitter late(device[2], {});
  late.dispatch(kernel, Grid{1}, 0);
  CHECK(
      contains(error_of<Error>([&] { late.submit(); }), "the packet processor stopped the queue"));
  Timeline& newcomer = Timeline::acquire(4);
  device.common().join(newcomer);
  CHECK(newcomer.failed());
  device.common().leave(newcomer);
  newcomer.release();
}

TEST_CASE("a destroyed queue takes nothing from the others", "[shared]") {
  Ran ran;
  SharedDevice device(2, {.device = {.ring_size = 64}}, ran.note());
  const auto kernel = number_kernel();
  for (uint32_t i = 0; i < 10; ++i) {
    BatchSubmitter one(device[0], {});
    one.dispatch(kernel, Grid{1}, number(0, i));
    one.submit();
  }
  device.destroy_queue(0);
  BatchSubmitter two(device[1], {});
  two.dispatch(kernel, Grid{1}, number(1, 0));
  CHECK(two.submit().wait(soon(), kActiveWait));
  CHECK(ran.all.size() == 11);
}

TEST_CASE("a batch over a common ring allocates nothing, takes no lock and makes no system call",
          "[shared]") {
  SharedDevice device(2, {.device = {.ring_size = 64}});
  const auto kernel = number_kernel();
  BatchSubmitter one(device[0], {}), two(device[1], {});
  const auto round = [&](BatchSubmitter& batch) {
    for (uint32_t i = 0; i < 12; ++i) batch.dispatch(kernel, Grid{1}, i);
    return batch.submit();
  };
  for (int warm_up = 0; warm_up < 20; ++warm_up) {
    round(one).wait(kActiveWait);
    round(two).wait(kActiveWait);
  }
  support::Cost total;
  hsa_calls().reset();
  for (int n = 0; n < 50; ++n) {
    Completion completion;
    total += support::cost_of([&] { completion = round(n % 2 == 0 ? one : two); });
    completion.wait(kActiveWait);
  }
  CHECK(total.allocations == 0);
  CHECK(total.locks == 0);
  CHECK(total.system_calls == 0);
  CHECK(hsa_calls().total() == 0);  // the double's doorbell is a hardware one
}

TEST_CASE("doorbells are counted by the thread that rings them", "[shared]") {
  SharedDevice device(1, {.device = {.ring_size = 64}});
  const auto kernel = number_kernel();
  BatchSubmitter batch(device[0], {.chunking = {.lead = 4, .chunk = 8}});
  for (uint32_t i = 0; i < 20; ++i) batch.dispatch(kernel, Grid{1}, i);
  const Counters before = Counters::now();
  CHECK(batch.submit().wait(soon(), kActiveWait));
  CHECK((Counters::now() - before).doorbells == 3);
}

TEST_CASE("threads over one ring continue after packets that the caller publishes in turns",
          "[shared]") {
  constexpr uint32_t threads = 3, rounds = 60, each = 20;
  Ran ran;
  SignalDouble own(0);
  SharedDevice device(threads, {.device = {.ring_size = 64}}, ran.note());
  const aql::Packet64 packet = aql::to_packet(
      aql::BarrierAnd{.flags = {aql::Barrier::on, FenceScope::none, FenceScope::system},
                      .completion_signal = own.handle()});
  const auto produce = [&](uint32_t which, uint32_t round) {
    BatchSubmitter batch(device[which], {});
    for (uint32_t i = 0; i < each; ++i)
      batch.dispatch(number_kernel(), Grid{1}, number(which, round * each + i));
    batch.submit(soon());
  };
  int64_t published = 0;
  for (uint32_t round = 0; round < rounds; ++round) {
    std::vector<std::thread> all;
    for (uint32_t which = 0; which < threads; ++which) all.emplace_back(produce, which, round);
    for (std::thread& thread : all) thread.join();
    device.common().publish_own([&](uint64_t room) {
      CHECK(room <= 64);
      for (uint64_t i = 0; i < std::min<uint64_t>(room, round % 9); ++i, ++published)
        device.processor().publish(packet);
    });
  }
  REQUIRE(device.processor().wait_completed(threads * rounds * each +
                                            static_cast<uint64_t>(published)));
  CHECK(published > rounds);
  CHECK(own.value() == -published);
  CHECK(ran.is_complete(threads, rounds * each));

  device.processor().publish(packet);  // not in turn
  const std::string error = error_of<Error>([&] { device.common().publish_own([](uint64_t) {}); });
  CHECK(contains(error, "other code publishes to this HSA queue, too"));
}

TEST_CASE("the caller gets no slot of a kernel that may still read its packet", "[shared]") {
  // Stops the processor when it has launched the kernel, whose slot the read index then passes.
  PacketProcessor* stopped = nullptr;
  DoubleOptions options{
      .device = {
          .ring_size = 64, .early_read_index = true, .paused = true, .reads_packet = kReadsPacket}};
  options.device.duration = [&](const hsa_kernel_dispatch_packet_t&) {
    if (stopped != nullptr) stopped->pause();
    return 8u;
  };
  SharedDevice device(1, options);
  PacketProcessor& processor = device.processor();
  stopped = &processor;
  BatchSubmitter batch(device[0], {});
  batch.dispatch(late_reader(), Grid{1}, 1u);
  const Completion completion = batch.submit();
  processor.resume();
  REQUIRE(eventually(
      [&] { return processor.paused() && processor.memory().read_index().load() == 1; }));
  uint64_t slots = 0;
  const auto publish = [&](uint64_t room) { slots = room; };
  device.common().publish_own(publish);
  CHECK(slots == 63);
  stopped = nullptr;
  processor.resume();
  REQUIRE(completion.wait(soon(), kActiveWait));
  device.common().publish_own(publish);
  CHECK(slots == 64);
}

TEST_CASE("the caller publishes nothing of its own to a queue that has failed", "[shared]") {
  const auto refused = [](detail::SharedHsaQueue& queue) {
    return error_of<Error>([&] { queue.publish_own([](uint64_t) { FAIL("called"); }); });
  };
  PacketProcessor processor;
  detail::SharedHsaQueue by_owner(processor.queue(), &processor.error());
  by_owner.publish_own([](uint64_t room) { CHECK(room == 64); });
  processor.fail(HSA_STATUS_ERROR_INVALID_ISA);
  const std::string error = refused(by_owner);
  CHECK(contains(error, "SharedQueue::publish_own"));
  CHECK(contains(error, "the owner of the borrowed queue reported an error"));
  CHECK(code_of_error([&] { by_owner.publish_own([](uint64_t) {}); }) == "failed");

  detail::SharedHsaQueue by_processor(processor.queue());
  by_processor.fail(HSA_STATUS_ERROR_INVALID_ISA, "stopped");
  CHECK(contains(refused(by_processor), "stopped"));
}

TEST_CASE("a write index that a tool may move is no other code's", "[shared]") {
  PacketProcessor processor({.paused = true});
  detail::SharedHsaQueue queue(processor.queue(), nullptr, aql::RingAccess::hsa_calls);
  processor.publish(aql::to_packet(aql::BarrierAnd{}));
  queue.publish_own([&](uint64_t) { processor.publish(aql::to_packet(aql::BarrierAnd{})); });
  CHECK(queue.ring().claimed() == 2);
}
