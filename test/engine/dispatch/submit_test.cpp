// From dispatch() to completion, against the packet processor double.
#include <hsa/hsa.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "aql/packet.hpp"
#include "engine/runtime/counters.hpp"
#include "engine/runtime/error.hpp"
#include "test/engine/double_device.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/hsa_double.hpp"

using namespace uptempo;
using namespace uptempo::test;
using namespace std::chrono_literals;
using aql::FenceScope;

namespace {

using uptempo::test::contains;
using uptempo::test::error_of;

hsa_kernel_dispatch_packet_t dispatch_of(const Completed& completed) {
  return aql::packet_as<hsa_kernel_dispatch_packet_t>(completed.packet);
}

}  // namespace

TEST_CASE("a batch is one doorbell and one completion signal, on its last packet", "[submit]") {
  std::vector<uint32_t> ran;
  DoubleDevice device({.device = {.ring_size = 256}},
                      [&](uint32_t number) { ran.push_back(number); });
  const auto kernel = number_kernel(0xabc0);
  const Counters before = Counters::now();
  BatchSubmitter batch(device.state(), {});
  for (uint32_t i = 0; i < 120; ++i) batch.dispatch(kernel, Grid{16384}.by(256), i);
  CHECK(batch.submit().wait(soon(), actively));
  const Counters spent = Counters::now() - before;

  const auto packets = device.processor().completed();
  REQUIRE(packets.size() == 120);
  for (uint32_t i = 0; i < 120; ++i) {
    CAPTURE(i);
    CHECK(ran[i] == i);  // barrier bits: in order
    const auto flags = aql::header_flags(packets[i].packet.header());
    CHECK(flags.barrier == aql::Barrier::on);
    CHECK(flags.acquire == (i == 0 ? FenceScope::system : FenceScope::agent));
    CHECK(flags.release == (i == 119 ? FenceScope::system : FenceScope::agent));
    const auto packet = dispatch_of(packets[i]);
    CHECK((packet.completion_signal.handle != 0) == (i == 119));
    CHECK(packet.grid_size_x == 16384);
    CHECK(packet.workgroup_size_x == 256);
    CHECK(packet.kernel_object == 0xabc0);
    CHECK(packet.setup == 1);
  }
  CHECK(spent.doorbells == 1);
  CHECK(spent.completion_signals == 1);
  CHECK(spent.packets == 120);
  CHECK(spent.barrier_bits == 120);
  CHECK(spent.system_acquires == 1);
  CHECK(spent.system_releases == 1);
  CHECK(spent.kernarg_blocks == 120);
  CHECK(spent.host_waits == 1);
  CHECK(spent.batches == 1);
}

TEST_CASE("declared, disjoint dispatches carry no barrier bits", "[submit]") {
  DoubleDevice device;
  const auto kernel = number_kernel();
  uint32_t a[4];
  BatchSubmitter batch(device.state(), {});
  for (uint32_t i = 0; i < 4; ++i) batch.dispatch(kernel, Grid{1}, i).writes(a + i, 1);
  batch.submit().wait(actively);
  auto packets = device.processor().completed();
  std::sort(packets.begin(), packets.end(),
            [](const Completed& x, const Completed& y) { return x.index < y.index; });
  const aql::Barrier expected[] = {aql::Barrier::on, aql::Barrier::off, aql::Barrier::off,
                                   aql::Barrier::on};
  for (size_t i = 0; i < 4; ++i)
    CHECK(aql::header_flags(packets[i].packet.header()).barrier == expected[i]);
  CHECK(contains(batch.explain(), "packet 2: no barrier bit: no conflict"));
}

TEST_CASE("explicit scopes and missing barrier bits reach the packets", "[submit]") {
  DoubleDevice device;
  const auto kernel = number_kernel();
  BatchSubmitter batch(device.state(), {});
  batch.dispatch(kernel, Grid{1}, 0);
  batch.dispatch(kernel, Grid{1}, 1).fences(FenceScope::none, FenceScope::system).without_barrier();
  batch.dispatch(kernel, Grid{1}, 2);
  batch.submit().wait(actively);
  auto packets = device.processor().completed();
  std::sort(packets.begin(), packets.end(),
            [](const Completed& x, const Completed& y) { return x.index < y.index; });
  const auto flags = aql::header_flags(packets[1].packet.header());
  CHECK(flags.barrier == aql::Barrier::off);
  CHECK(flags.acquire == FenceScope::none);
  CHECK(flags.release == FenceScope::system);
}

TEST_CASE("an unsubmitted batch leaves nothing in the queue", "[submit]") {
  DoubleDevice device;
  const auto kernel = number_kernel();
  const uint32_t slabs = device.state().kernargs().free_slabs();
  {
    BatchSubmitter batch(device.state(), {});
    for (uint32_t i = 0; i < 100; ++i) batch.dispatch(kernel, Grid{1}, i);
    CHECK(device.state().kernargs().free_slabs() < slabs);
  }
  CHECK(device.state().kernargs().free_slabs() == slabs);
  CHECK(device.state().writer().next_index() == 0);
  CHECK(device.state().timeline().pending() == 0);
}

TEST_CASE("an empty batch completes with the work submitted before it", "[submit]") {
  DoubleDevice device;
  const auto kernel = number_kernel();
  BatchSubmitter batch(device.state(), {});
  CHECK(batch.submit().ready());
  batch.dispatch(kernel, Grid{1}, 1);
  const Completion first = batch.submit();
  CHECK(batch.submit() == first);
}

TEST_CASE("a batch longer than the ring is published in chunks", "[submit]") {
  std::vector<uint32_t> ran;
  DoubleDevice device({.device = {.ring_size = 16}},
                      [&](uint32_t number) { ran.push_back(number); });
  const auto kernel = number_kernel();
  BatchSubmitter batch(device.state(), {});
  const Counters before = Counters::now();
  for (uint32_t i = 0; i < 100; ++i) batch.dispatch(kernel, Grid{1}, i);
  CHECK(batch.submit().wait(soon(), actively));
  REQUIRE(ran.size() == 100);
  for (uint32_t i = 0; i < 100; ++i) CHECK(ran[i] == i);
  CHECK((Counters::now() - before).doorbells == 13);  // halves of the ring: 12 of 8, 1 of 4
  CHECK((Counters::now() - before).completion_signals == 1);
}

TEST_CASE("a batch interrupted by its deadline continues where it stopped", "[submit]") {
  std::vector<uint32_t> ran;
  DoubleDevice device({.device = {.ring_size = 16, .paused = true}},
                      [&](uint32_t number) { ran.push_back(number); });
  const auto kernel = number_kernel();
  BatchSubmitter batch(device.state(), {});
  for (uint32_t i = 0; i < 40; ++i) batch.dispatch(kernel, Grid{1}, i);
  const std::string error = error_of<Error>([&] { batch.submit(Deadline::after(20ms)); });
  CHECK(contains(error, "16 slots"));
  CHECK(contains(error, "16 packets of this batch are published"));
  device.processor().resume();
  CHECK(batch.submit(soon()).wait(soon(), actively));
  REQUIRE(ran.size() == 40);
  for (uint32_t i = 0; i < 40; ++i) CHECK(ran[i] == i);
}

TEST_CASE("a partly published batch takes no packet and blocks every other batch", "[submit]") {
  std::vector<uint32_t> ran;
  DoubleDevice device({.device = {.ring_size = 16, .paused = true}},
                      [&](uint32_t number) { ran.push_back(number); });
  const auto kernel = number_kernel();
  BatchSubmitter cut_off(device.state(), {});
  for (uint32_t i = 0; i < 40; ++i) cut_off.dispatch(kernel, Grid{1}, i);
  CHECK(error_of<Error>([&] { cut_off.submit(Deadline::after(10ms)); }) != "no error");
  CHECK(contains(error_of<Error>([&] { cut_off.dispatch(kernel, Grid{1}, 40u); }),
                 "are already published"));
  CHECK(contains(error_of<Error>([&] { cut_off.raw(aql::to_packet(aql::BarrierAnd{})); }),
                 "are already published"));
  BatchSubmitter other(device.state(), {});
  other.dispatch(kernel, Grid{1}, 41u);
  device.processor().resume();
  CHECK(contains(error_of<Error>([&] { other.submit(); }), "partly published: 16 packets of 40"));
  CHECK(cut_off.submit(soon()).wait(soon(), actively));
  CHECK(other.submit(soon()).wait(soon(), actively));
  REQUIRE(ran.size() == 41);
  CHECK(ran.back() == 41);
}

TEST_CASE("a half-submitted batch of a borrowed queue is given up when the GPU faults",
          "[submit]") {
  // The owner's error source reports nothing: a memory fault reaches the timeline through another
  // path.
  auto device =
      std::make_unique<DoubleDevice>(DoubleOptions{.device = {.ring_size = 16, .paused = true}});
  const auto kernel = number_kernel();
  auto batch = std::make_unique<BatchSubmitter>(device->state(), BatchOptions{});
  for (uint32_t i = 0; i < 40; ++i) batch->dispatch(kernel, Grid{1}, i);
  CHECK(error_of<Error>([&] { batch->submit(Deadline::after(10ms)); }) != "no error");
  device->state().timeline().fail(static_cast<hsa_status_t>(HSA_STATUS_ERROR_MEMORY_FAULT),
                                  "a fault");
  std::atomic<bool> dropped{false};
  std::thread dropper([&] {
    batch.reset();
    dropped = true;
  });
  const Deadline limit = soon();
  while (!dropped && !limit.passed()) std::this_thread::sleep_for(1ms);
  CHECK(dropped);
  device->processor().resume();  // in every case: room for the closing packet
  dropper.join();
}

TEST_CASE("a batch that is interrupted and then dropped returns everything", "[submit]") {
  DoubleDevice device({.device = {.ring_size = 16, .paused = true}});
  const auto kernel = number_kernel();
  const uint32_t slabs = device.state().kernargs().free_slabs();
  const uint32_t signals = device.state().signals().free(SignalKind::interrupt);
  const Counters before = Counters::now();
  {
    BatchSubmitter batch(device.state(), {});
    for (uint32_t i = 0; i < 40; ++i) batch.dispatch(kernel, Grid{1}, i);
    CHECK(error_of<Error>([&] { batch.submit(Deadline::after(10ms)); }) != "no error");
    device.processor().resume();
  }
  const Counters spent = Counters::now() - before;
  CHECK(spent.packets == 17);  // and the one that closes it
  CHECK(spent.completion_signals == 1);
  CHECK(spent.batches == 0);
  CHECK(device.state().timeline().wait(device.state().timeline().last_begun(), actively, soon()) ==
        WaitResult::done);
  device.state().reclaim(UINT32_MAX);
  CHECK(device.state().kernargs().free_slabs() == slabs);
  CHECK(device.state().signals().free(SignalKind::interrupt) == signals);
  CHECK(device.processor().completed_count() == 17);
}

TEST_CASE("a full ring refuses a try, and the batch can be submitted later unchanged", "[submit]") {
  DoubleDevice device({.device = {.ring_size = 16, .paused = true}});
  const auto kernel = number_kernel();
  BatchSubmitter batch(device.state(), {});
  for (uint32_t i = 0; i < 12; ++i) batch.dispatch(kernel, Grid{1}, i);
  CHECK(batch.try_submit().has_value());
  for (uint32_t i = 0; i < 8; ++i) batch.dispatch(kernel, Grid{1}, i);
  CHECK_FALSE(batch.try_submit().has_value());
  CHECK(batch.size() == 8);
  const std::string error = error_of<Error>([&] { batch.submit(Deadline::after(5ms)); });
  CHECK(contains(error, "run of 8 slots in the ring"));
  CHECK(contains(error, "12 are in use"));
  device.processor().resume();
  CHECK(batch.submit(soon()).wait(soon(), actively));
}

TEST_CASE("a refused batch takes more packets, and only its final ends carry the outer fences",
          "[submit]") {
  for (const bool said : {false, true}) {
    DoubleDevice device({.device = {.ring_size = 16, .paused = true}});
    const auto kernel = number_kernel();
    BatchSubmitter batch(device.state(), {});
    for (uint32_t i = 0; i < 12; ++i) batch.dispatch(kernel, Grid{1}, i);
    CHECK(batch.try_submit().has_value());
    for (uint32_t i = 0; i < 8; ++i) batch.dispatch(kernel, Grid{1}, i);
    CHECK_FALSE(batch.try_submit().has_value());
    for (uint32_t i = 0; i < 3; ++i) batch.dispatch(kernel, Grid{1}, i);
    if (said) batch.dispatch(kernel, Grid{1}, 3u).observed_by(Observer::system);
    device.processor().resume();
    CHECK(batch.submit(soon()).wait(soon(), actively));
    const auto packets = device.processor().completed();
    const size_t end = said ? 24 : 23;
    REQUIRE(packets.size() == end);
    for (size_t i = 12; i < end; ++i) {
      CAPTURE(said, i);
      const auto flags = aql::header_flags(packets[i].packet.header());
      CHECK(flags.acquire == (i == 12 ? FenceScope::system : FenceScope::agent));
      CHECK(flags.release == (i + 1 == end ? FenceScope::system : FenceScope::agent));
      CHECK((dispatch_of(packets[i]).completion_signal.handle != 0) == (i + 1 == end));
    }
  }
}

TEST_CASE("explain() describes the plan of the last submission, packet by packet", "[submit]") {
  for (const FencePolicy policy : {FencePolicy::planned, FencePolicy::system_everywhere}) {
    for (const uint32_t count : {1u, 2u, 5u}) {
      for (const bool said : {false, true}) {
        DoubleDevice device;
        const auto kernel = number_kernel();
        BatchSubmitter batch(device.state(), {.fences = policy});
        CHECK(batch.plan().empty());
        std::vector<Declarations> intents(count);
        for (uint32_t i = 0; i < count; ++i) batch.dispatch(kernel, Grid{1}, i);
        if (said) {
          batch.dispatch(kernel, Grid{1}, count).without_barrier();
          intents.push_back({.without_barrier = true});
        }
        CHECK(batch.submit().wait(soon(), actively));
        std::vector<PacketPlan> expected(intents.size());
        plan_fences(intents, {}, policy, expected);
        const auto packets = device.processor().completed();
        REQUIRE(packets.size() == expected.size());
        REQUIRE(batch.plan().size() == expected.size());
        std::string words;
        for (size_t i = 0; i < expected.size(); ++i) {
          CAPTURE(count, said, i);
          CHECK(batch.plan()[i].flags == expected[i].flags);
          CHECK(batch.plan()[i].barrier == expected[i].barrier);
          CHECK(aql::header_flags(packets[i].packet.header()) == expected[i].flags);
          words += "packet " + std::to_string(i) + ": " + explain(expected[i], i) + '\n';
        }
        CHECK(batch.explain() == words);
      }
    }
  }
}

TEST_CASE("explain() describes a plain submission also while the next batch is being filled",
          "[submit]") {
  DoubleDevice device;
  uint32_t data = 0;
  auto batch = device.batch();
  for (uint32_t i = 0; i < 3; ++i) batch.dispatch(number_kernel(), Grid{64}, i);
  batch.submit();
  batch.dispatch(number_kernel(), Grid{64}, 3u).reads(&data, 1);
  CHECK(batch.plan().size() == 3);
}

TEST_CASE("kernels and grids may change from dispatch to dispatch", "[submit]") {
  std::vector<uint32_t> ran;
  DoubleDevice device({}, [&](uint32_t number) { ran.push_back(number); });
  BatchSubmitter batch(device.state(), {});
  const Grid grids[] = {Grid{64}, Grid{64}.by(32), Grid{64, 2}, Grid{64, 2, 3}.by(8, 2)};
  std::vector<std::pair<uint64_t, Grid>> expected;
  for (uint32_t i = 0; i < 24; ++i) {
    // Appends a dispatch of a temporary kernel; the next kernel may have the same address.
    const auto kernel = number_kernel(0x1000 + 64 * (i / 5));
    const Grid& grid = grids[i / 2 % 4];
    batch.dispatch(kernel, grid, i);
    expected.emplace_back(kernel.info().object, grid);
  }
  CHECK(batch.submit().wait(soon(), actively));
  const auto packets = device.processor().completed();
  REQUIRE(packets.size() == expected.size());
  for (uint32_t i = 0; i < packets.size(); ++i) {
    CAPTURE(i);
    const auto packet = dispatch_of(packets[i]);
    const auto& [object, grid] = expected[i];
    CHECK(ran[i] == i);
    CHECK(packet.kernel_object == object);
    CHECK(aql::Size3{packet.grid_size_x, packet.grid_size_y, packet.grid_size_z} == grid.items);
    CHECK(aql::Size3{packet.workgroup_size_x, packet.workgroup_size_y, packet.workgroup_size_z} ==
          grid.workgroup);
    CHECK(packet.setup == grid.dimensions);
  }
}

TEST_CASE("the error of a full timeline or an empty signal pool names size and occupancy",
          "[submit]") {
  const auto kernel = number_kernel();
  SECTION("timeline") {
    DoubleDevice device(
        {.device = {.ring_size = 64, .paused = true},
         .queue = {
             .packets = 64, .publications = 2, .kernarg_bytes = 8192, .kernarg_slab_bytes = 1024}});
    BatchSubmitter batch(device.state(), {.patience = 5ms});
    for (int i = 0; i < 2; ++i) {
      batch.dispatch(kernel, Grid{1}, 0);
      batch.submit();
    }
    batch.dispatch(kernel, Grid{1}, 0);
    const std::string error = error_of<Error>([&] { batch.submit(); });
    CHECK(contains(error, "2 publications: 2 publications are unfinished"));
    device.processor().resume();
    CHECK(batch.submit(soon()).wait(soon(), actively));
  }
  SECTION("signals") {
    DoubleDevice device({.device = {.ring_size = 64, .paused = true}, .signals = 1});
    BatchSubmitter batch(device.state(), {.patience = 5ms});
    batch.dispatch(kernel, Grid{1}, 0);
    batch.submit();
    batch.dispatch(kernel, Grid{1}, 0);
    CHECK(contains(error_of<Error>([&] { batch.submit(); }),
                   "a free completion signal within the deadline: 1 signals"));
    device.processor().resume();
    CHECK(batch.submit(soon()).wait(soon(), actively));
  }
}

TEST_CASE(
    "without free kernarg blocks a try refuses, a wait is served, and a hopeless wait fails at "
    "once",
    "[submit]") {
  DoubleDevice device(
      {.device = {.ring_size = 64, .paused = true},
       .queue = {
           .packets = 64, .publications = 16, .kernarg_bytes = 2048, .kernarg_slab_bytes = 1024}});
  const auto kernel = number_kernel();
  BatchSubmitter batch(device.state(), {.patience = 10s});
  for (uint32_t i = 0; i < 32; ++i) batch.dispatch(kernel, Grid{1}, i);
  CHECK_FALSE(batch.try_dispatch(kernel, Grid{1}, 0).has_value());
  // No work in flight can return blocks, so no wait can help.
  const auto start = std::chrono::steady_clock::now();
  CHECK(contains(error_of<Error>([&] { batch.dispatch(kernel, Grid{1}, 0); }),
                 "2 slabs of 1024 bytes"));
  CHECK(std::chrono::steady_clock::now() - start < 5s);
  batch.submit();
  device.processor().resume();
  batch.dispatch(kernel, Grid{1}, 7);  // waits for the first publication
  CHECK(batch.submit().wait(soon(), actively));
}

TEST_CASE("an impossible geometry is refused before anything is taken", "[submit]") {
  DoubleDevice device;
  const auto kernel = number_kernel();
  BatchSubmitter batch(device.state(), {});
  CHECK(contains(error_of<Error>([&] { batch.dispatch(kernel, Grid{0}.by(1), 0); }),
                 "a size of zero"));
  CHECK(contains(error_of<Error>([&] { batch.dispatch(kernel, Grid{4096}.by(2048), 0); }),
                 "2048 work-items, but the limit is 1024"));
  CHECK(contains(error_of<Error>([&] { batch.dispatch(kernel, Grid{64}.by(128), 0); }),
                 "larger than the grid"));
  CHECK(batch.size() == 0);
}

TEST_CASE(
    "a raw packet keeps its header and is followed by a barrier packet that completes the batch",
    "[submit]") {
  DoubleDevice device;
  BatchSubmitter batch(device.state(), {});
  SignalDouble own(1);
  batch.raw(aql::to_packet(
      aql::BarrierAnd{.flags = {aql::Barrier::off, FenceScope::none, FenceScope::none},
                      .completion_signal = own.handle()}));
  CHECK(batch.submit().wait(soon(), actively));
  const auto packets = device.processor().completed();
  REQUIRE(packets.size() == 2);
  CHECK(own.value() == 0);
  CHECK(aql::header_flags(packets[0].packet.header()) ==
        aql::HeaderFlags{aql::Barrier::off, FenceScope::none, FenceScope::none});
  CHECK(aql::packet_type(packets[1].packet.header()) == aql::PacketType::barrier_and);
  CHECK(contains(error_of<Error>([&] { batch.raw(aql::Packet64{{1}}); }), "INVALID"));

  // The caller also controls bits that the specification reserves.
  aql::Packet64 reserved = aql::to_packet(aql::BarrierAnd{});
  reserved.word[0] |= 1u << 15;
  batch.raw(reserved);
  CHECK(batch.submit().wait(soon(), actively));
  CHECK(device.processor().completed()[2].packet.word[0] == reserved.word[0]);
}

TEST_CASE("a caller's kernarg block and signal are used", "[submit]") {
  std::vector<uint32_t> ran;
  DoubleDevice device({}, [&](uint32_t number) { ran.push_back(number); });
  const auto kernel = number_kernel();
  alignas(64) std::byte block[64];
  BatchSubmitter batch(device.state(), {});
  const Counters before = Counters::now();
  batch.dispatch_at(block, kernel, Grid{1}, 77u);
  CHECK(batch.submit().wait(soon(), actively));
  CHECK(ran == std::vector<uint32_t>{77});
  CHECK((Counters::now() - before).kernarg_blocks == 0);
  CHECK(dispatch_of(device.processor().completed()[0]).kernarg_address == block);
  CHECK(contains(
      error_of<Error>([&] { batch.dispatch_at(std::span(block).first(16), kernel, Grid{1}, 1u); }),
      "needs 32 bytes"));
  CHECK(contains(
      error_of<Error>([&] { batch.dispatch_at(std::span(block).last(40), kernel, Grid{1}, 1u); }),
      "aligned to 64"));
}

TEST_CASE("times are recorded for every packet, for first and last, or for none", "[submit]") {
  DoubleDevice device({.device = {.ring_size = 64},
                       .queue = {.packets = 64,
                                 .publications = 16,
                                 .kernarg_bytes = 8192,
                                 .kernarg_slab_bytes = 1024},
                       .signals = 32});
  const auto kernel = number_kernel();
  const std::pair<Timing, size_t> expected[] = {
      {Timing::none, 0}, {Timing::batch, 2}, {Timing::each, 6}};
  for (const auto& [timing, count] : expected) {
    BatchSubmitter batch(device.state(), {.timing = timing});
    for (uint32_t i = 0; i < 6; ++i) batch.dispatch(kernel, Grid{1}, i);
    const Completion completion = batch.submit();
    REQUIRE(completion.wait(soon(), actively));
    const std::vector<PacketTime> times = completion.times();
    REQUIRE(times.size() == count);
    for (size_t i = 0; i < times.size(); ++i) {
      CHECK(times[i].start_ns > 0);
      CHECK(times[i].end_ns >= times[i].start_ns);
      if (i > 0) CHECK(times[i].start_ns >= times[i - 1].end_ns);
    }
    device.state().reclaim(UINT32_MAX);
    CHECK(completion.times().size() == count);  // kept after the signals were returned
    if (count > 0) CHECK(completion.times().front().start_ns == times.front().start_ns);
  }
  CHECK(device.state().signals().free(SignalKind::event_less) == 32);
}

TEST_CASE("a Completion outlives its queue", "[submit]") {
  Completion done;
  {
    DoubleDevice device;
    const auto kernel = number_kernel();
    BatchSubmitter batch(device.state(), {});
    batch.dispatch(kernel, Grid{1}, 1);
    done = batch.submit();
  }
  CHECK(done.ready());
  done.wait();
  // The next queue of that size continues the same timeline; the old completion stays complete.
  DoubleDevice other;
  CHECK(done.ready());
}

TEST_CASE("many threads wait for the same and for different publications while the owner submits",
          "[submit]") {
  std::atomic<uint32_t> ran{0};
  DoubleDevice device({.device = {.ring_size = 64}},
                      [&](uint32_t) { ran.fetch_add(1, std::memory_order_relaxed); });
  const auto kernel = number_kernel();
  std::mutex mutex;
  std::vector<Completion> completions;
  std::atomic<bool> stop{false};
  std::atomic<unsigned> waits{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const WaitPolicy policy{.mode = t % 2 == 0 ? WaitMode::blocked : WaitMode::hybrid,
                              .spin = 5us};
      while (!stop.load()) {
        Completion completion;
        {
          const std::lock_guard lock(mutex);
          if (!completions.empty())
            completion = completions[completions.size() - 1 -
                                     (waits + t) % std::min<size_t>(completions.size(), 3)];
        }
        if (!completion.wait(soon(), policy)) FAIL("a publication did not complete");
        ++waits;
      }
    });
  }
  BatchSubmitter batch(device.state(), {});
  for (uint32_t round = 0; round < 300; ++round) {
    for (uint32_t i = 0; i < 3; ++i) batch.dispatch(kernel, Grid{1}, i);
    const Completion completion = batch.submit();
    const std::lock_guard lock(mutex);
    completions.push_back(completion);
  }
  CHECK(completions.back().wait(soon()));
  stop = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(ran == 900);
  CHECK(waits > 0);
  for (const Completion& completion : completions) CHECK(completion.ready());
}

TEST_CASE("a wait ends at its deadline and can be repeated", "[submit]") {
  DoubleDevice device({.device = {.ring_size = 64, .paused = true}});
  const auto kernel = number_kernel();
  BatchSubmitter batch(device.state(), {});
  batch.dispatch(kernel, Grid{1}, 1);
  const Completion completion = batch.submit();
  for (const WaitMode mode : {WaitMode::active, WaitMode::blocked, WaitMode::hybrid}) {
    const auto start = std::chrono::steady_clock::now();
    CHECK_FALSE(completion.wait(Deadline::after(15ms), {.mode = mode}));
    CHECK(std::chrono::steady_clock::now() - start >= 15ms);
  }
  CHECK_FALSE(completion.ready());
  CHECK(contains(error_of<Error>([&] { completion.times(); }), "not complete"));
  device.processor().resume();
  CHECK(completion.wait(soon(), {.mode = WaitMode::blocked}));
}
