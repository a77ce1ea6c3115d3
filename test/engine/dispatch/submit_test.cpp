// The packets that a batch publishes, from dispatch() to completion, against the packet processor
// double.
#include <hsa/hsa.h>

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include <uptempo/aql/packet.hpp>
#include <uptempo/fences/fence_planner.hpp>
#include <uptempo/runtime/counters.hpp>
#include <uptempo/runtime/error.hpp>
#include "test/engine/double_device.hpp"
#include "test/engine/error_code.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/hsa_double.hpp"
#include "tools/support/cost_meter.hpp"

using namespace uptempo;
using namespace uptempo::test;
using aql::FenceScope;

namespace {

using uptempo::test::contains;
using uptempo::test::error_of;

}  // namespace

TEST_CASE("a batch is one doorbell and one completion signal, on its last packet", "[submit]") {
  std::vector<uint32_t> ran;
  DoubleDevice device({.device = {.ring_size = 256}},
                      [&](uint32_t number) { ran.push_back(number); });
  const auto kernel = number_kernel(0xabc0);
  const Counters before = Counters::now();
  BatchSubmitter batch(device.queue(), {});
  for (uint32_t i = 0; i < 120; ++i) batch.dispatch(kernel, Grid{16384}.by(256), i);
  CHECK(batch.submit().wait(soon(), kActiveWait));
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
  BatchSubmitter batch(device.queue(), {});
  for (uint32_t i = 0; i < 4; ++i) batch.dispatch(kernel, Grid{1}, i).writes(a + i, 1);
  batch.submit().wait(kActiveWait);
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
  BatchSubmitter batch(device.queue(), {});
  batch.dispatch(kernel, Grid{1}, 0);
  batch.dispatch(kernel, Grid{1}, 1).fences(FenceScope::none, FenceScope::system).without_barrier();
  batch.dispatch(kernel, Grid{1}, 2);
  batch.submit().wait(kActiveWait);
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
  const uint32_t slabs = device.queue().pressure().kernarg_slabs.free();
  {
    BatchSubmitter batch(device.queue(), {});
    for (uint32_t i = 0; i < 100; ++i) batch.dispatch(kernel, Grid{1}, i);
    CHECK(device.queue().pressure().kernarg_slabs.free() < slabs);
  }
  CHECK(device.queue().pressure().kernarg_slabs.free() == slabs);
  CHECK(device.state().writer().next_index() == 0);
  CHECK(device.state().timeline().pending() == 0);
}

TEST_CASE("an empty batch completes with the work submitted before it", "[submit]") {
  DoubleDevice device;
  const auto kernel = number_kernel();
  BatchSubmitter batch(device.queue(), {});
  CHECK(batch.submit().ready());
  batch.dispatch(kernel, Grid{1}, 1);
  const Completion first = batch.submit();
  CHECK(batch.submit() == first);
}

TEST_CASE("a batch longer than the ring is published in parts", "[submit]") {
  std::vector<uint32_t> ran;
  DoubleDevice device({.device = {.ring_size = 16}},
                      [&](uint32_t number) { ran.push_back(number); });
  const auto kernel = number_kernel();
  BatchSubmitter batch(device.queue(), {});
  const Counters before = Counters::now();
  for (uint32_t i = 0; i < 100; ++i) batch.dispatch(kernel, Grid{1}, i);
  CHECK(batch.submit().wait(soon(), kActiveWait));
  REQUIRE(ran.size() == 100);
  for (uint32_t i = 0; i < 100; ++i) CHECK(ran[i] == i);
  // Halves of the ring: 14 of 7 packets and a barrier packet, and one of 2 packets.
  CHECK((Counters::now() - before).doorbells == 15);
  CHECK((Counters::now() - before).completion_signals == 15);
  CHECK((Counters::now() - before).packets == 114);
  CHECK((Counters::now() - before).batches == 1);
}

TEST_CASE("barrier bits that parts add are counted", "[submit]") {
  DoubleDevice device({.device = {.ring_size = 16}});
  const auto kernel = number_kernel();
  BatchSubmitter batch(device.queue(), {});
  const Counters before = Counters::now();
  for (uint32_t i = 0; i < 100; ++i) batch.dispatch(kernel, Grid{1}, i).without_barrier();
  CHECK(batch.submit().wait(soon(), kActiveWait));
  uint64_t barriers = 0;
  for (const auto& done : device.processor().completed())
    barriers += aql::header_flags(done.packet.header()).barrier == aql::Barrier::on;
  CHECK(barriers == 14 + 14 + 1);  // of barrier packets, of packets after one, of the last packet
  CHECK((Counters::now() - before).barrier_bits == barriers);
}

TEST_CASE("explain() describes the plan of the last submission, packet by packet", "[submit]") {
  for (const FencePolicy policy : {FencePolicy::by_need, FencePolicy::system_everywhere}) {
    for (const uint32_t count : {1u, 2u, 5u}) {
      for (const bool declares : {false, true}) {
        DoubleDevice device;
        const auto kernel = number_kernel();
        BatchSubmitter batch(device.queue(), {.fences = policy});
        CHECK(batch.plan().empty());
        std::vector<detail::Declarations> intents(count);
        for (uint32_t i = 0; i < count; ++i) batch.dispatch(kernel, Grid{1}, i);
        if (declares) {
          batch.dispatch(kernel, Grid{1}, count).without_barrier();
          intents.push_back({.without_barrier = true});
        }
        CHECK(batch.submit().wait(soon(), kActiveWait));
        std::vector<PacketPlan> expected(intents.size());
        detail::FencePlanner(detail::Overwrites::handed_over, policy).plan(intents, {}, expected);
        const auto packets = device.processor().completed();
        REQUIRE(packets.size() == expected.size());
        REQUIRE(batch.plan().size() == expected.size());
        std::string words;
        for (size_t i = 0; i < expected.size(); ++i) {
          CAPTURE(count, declares, i);
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
  BatchSubmitter batch(device.queue(), {});
  const Grid grids[] = {Grid{64}, Grid{64}.by(32), Grid{64, 2}, Grid{64, 2, 3}.by(8, 2)};
  std::vector<std::pair<uint64_t, Grid>> expected;
  for (uint32_t i = 0; i < 24; ++i) {
    // Appends a dispatch of a temporary kernel; the next kernel may have the same address.
    const auto kernel = number_kernel(0x1000 + 64 * (i / 5));
    const Grid& grid = grids[i / 2 % 4];
    batch.dispatch(kernel, grid, i);
    expected.emplace_back(kernel.info().object, grid);
  }
  CHECK(batch.submit().wait(soon(), kActiveWait));
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

TEST_CASE("an impossible geometry is refused before anything is taken", "[submit]") {
  DoubleDevice device;
  const auto kernel = number_kernel();
  BatchSubmitter batch(device.queue(), {});
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
  BatchSubmitter batch(device.queue(), {});
  SignalDouble own(1);
  batch.raw(aql::to_packet(
      aql::BarrierAnd{.flags = {aql::Barrier::off, FenceScope::none, FenceScope::none},
                      .completion_signal = own.handle()}));
  CHECK(batch.submit().wait(soon(), kActiveWait));
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
  CHECK(batch.submit().wait(soon(), kActiveWait));
  CHECK(device.processor().completed()[2].packet.word[0] == reserved.word[0]);
}

TEST_CASE("a caller's kernarg block and signal are used", "[submit]") {
  std::vector<uint32_t> ran;
  DoubleDevice device({}, [&](uint32_t number) { ran.push_back(number); });
  const auto kernel = number_kernel();
  alignas(64) std::byte block[64];
  BatchSubmitter batch(device.queue(), {});
  const Counters before = Counters::now();
  batch.dispatch_at(block, kernel, Grid{1}, 77u);
  CHECK(batch.submit().wait(soon(), kActiveWait));
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

namespace {

struct alignas(64) CallerLine {
  std::byte bytes[64];
};

}  // namespace

TEST_CASE("a caller's kernarg block is refused while an earlier dispatch still reads it",
          "[submit]") {
  std::vector<uint32_t> ran;
  DoubleDevice device({.device = {.ring_size = 64, .paused = true}},
                      [&](uint32_t number) { ran.push_back(number); });
  const auto kernel = number_kernel();
  std::vector<CallerLine> lines(3);
  const std::span<std::byte> first(lines[0].bytes), second(lines[1].bytes);
  BatchSubmitter batch(device.queue(), {}), other(device.queue(), {});
  const auto refused = [&](BatchSubmitter& by, std::span<std::byte> block, const char* why) {
    const std::string error = error_of<Error>([&] { by.dispatch_at(block, kernel, Grid{1}, 99u); });
    CAPTURE(error);
    CHECK(contains(error, "the kernarg block of"));
    CHECK(contains(error, why));
    CHECK(contains(error, "use one block for each dispatch until its completion"));
  };
  batch.dispatch_at(first, kernel, Grid{1}, 1u);
  refused(batch, first, "an earlier dispatch, not submitted yet, uses it");
  refused(other, first, "an earlier dispatch, not submitted yet, uses it");
  CHECK(batch.size() == 1);
  CHECK(other.size() == 0);
  batch.dispatch_at(second, kernel, Grid{1}, 2u);
  const Completion completion = batch.submit();
  const std::string in_flight =
      "publication " + std::to_string(completion.value()) + ", which is not complete";
  refused(batch, second, in_flight.c_str());
  refused(other, first, in_flight.c_str());
  // A kernel reads as much as its arguments take, however long the caller's memory is.
  other.dispatch_at({lines[2].bytes, sizeof(CallerLine)}, kernel, Grid{1}, 3u);
  other.clear();
  device.processor().resume();
  CHECK(completion.wait(soon(), kActiveWait));
  other.dispatch_at({first.data(), 3 * sizeof(CallerLine)}, kernel, Grid{1}, 4u);
  other.dispatch_at(second, kernel, Grid{1}, 5u);
  CHECK(other.submit().wait(soon(), kActiveWait));
  CHECK(ran == std::vector<uint32_t>{1, 2, 4, 5});
}

// Kernels with hidden arguments take several lines.
TEST_CASE("caller's kernarg blocks that overlap are refused", "[submit]") {
  DoubleDevice device;
  const auto small = number_kernel();
  const auto large =
      kernel_of<Arguments>({.name = "large",
                            .kernarg_bytes = 200,
                            .arguments = {argument(ArgumentKind::by_value, 0, 200)}});
  std::vector<CallerLine> lines(6);
  const auto at = [&](size_t line) {
    return std::span(lines[line].bytes, (lines.size() - line) * sizeof(CallerLine));
  };
  const std::vector<std::byte> arguments(200);
  BatchSubmitter batch(device.queue(), {});
  const auto dispatch_large = [&](size_t line) {
    return error_of<Error>(
        [&] { batch.dispatch_at(at(line), large, Grid{1}, std::span(arguments)); });
  };
  const auto dispatch_small = [&](size_t line) {
    return error_of<Error>([&] { batch.dispatch_at(at(line), small, Grid{1}, 1u); });
  };
  CHECK(dispatch_large(1) == "no error");  // lines 1 to 4
  for (size_t line = 1; line <= 4; ++line) CHECK(contains(dispatch_small(line), "uses it"));
  CHECK(contains(dispatch_large(0), "uses it"));
  // The refused one has kept nothing.
  CHECK(dispatch_small(0) == "no error");
  CHECK(dispatch_small(5) == "no error");
  batch.clear();
  CHECK(dispatch_large(2) == "no error");
  CHECK(dispatch_small(1) == "no error");
}

TEST_CASE("many kernarg blocks of callers are told apart, and taking them again allocates nothing",
          "[submit]") {
  constexpr uint32_t kBlocks = 3000;
  std::vector<CallerLine> lines(2 * kBlocks);
  DoubleDevice device({.device = {.ring_size = 4096}});
  const auto kernel = number_kernel();
  std::deque<BatchSubmitter> batches;
  for (int i = 0; i < 3; ++i) batches.emplace_back(device.queue(), BatchOptions{});
  Completion last;
  const auto round = [&](size_t offset, uint32_t step) {
    for (uint32_t i = 0; i < kBlocks; i += step) {
      for (uint32_t j = i; j < std::min(i + step, kBlocks); ++j)
        batches[i / step % 3].dispatch_at(lines[offset + j].bytes, kernel, Grid{1}, j);
      last = batches[i / step % 3].submit();
    }
    REQUIRE(last.wait(soon(), kActiveWait));
  };
  // More blocks at a time than the rounds have in flight, however slow the device is.
  for (CallerLine& line : lines) batches[0].dispatch_at(line.bytes, kernel, Grid{1}, 0u);
  batches[0].clear();
  for (const size_t offset : {size_t{0}, size_t{kBlocks}, size_t{kBlocks / 2}}) round(offset, 60);
  const support::Cost cost = support::cost_of([&] {
    for (const size_t offset : {size_t{0}, size_t{kBlocks}, size_t{kBlocks / 2}}) round(offset, 60);
  });
  CHECK(cost.allocations == 0);
}

TEST_CASE("a caller's completion signal is refused while an earlier publication uses it",
          "[submit]") {
  SignalDouble own(1), other(1);  // outlive the queue that waits for them
  DoubleDevice device({.device = {.ring_size = 64, .paused = true}});
  const auto publish = [&](const SignalDouble& signal) {
    detail::Publication publication(FencePolicy::by_need);  // dropped by its destructor
    device.state().join(publication);
    device.state().make_room(publication);
    publication.put_barrier();
    publication.own_signal = signal.handle();
    return device.state().submit(publication, soon());
  };
  const auto value = publish(own);
  CHECK(contains(error_of<Error>([&] { publish(own); }), "which is not complete, still uses it"));
  CHECK(code_of_error([&] { publish(own); }) == "signals");
  BatchSubmitter batch(device.queue());
  batch.complete_with(own.handle());
  CHECK(code_of(batch.try_submit()) == "signals");
  CHECK(publish(other) == *value + 1);
  device.processor().resume();
  CHECK(device.state().timeline().wait(*value, kActiveWait, soon()) == WaitResult::done);
  CHECK(publish(own).has_value());
  REQUIRE(eventually([&] { return batch.try_submit().has_value(); }));
  CHECK(device.queue().last_submitted().wait(soon(), kActiveWait));
}
