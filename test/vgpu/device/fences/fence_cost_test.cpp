// Estimated costs of a run's fences and barrier bits.
#include "device/fences/cost.hpp"

#include "fence_program.hpp"
#include "test/support/catch.hpp"

using namespace uptempo::test;
using namespace uptempo::vgpu;

namespace {

class Cost {
 public:
  Program program{"gfx90a", true, &journal_};
  const DeviceDescription& device = *find_device_description("gfx90a");
  PacketCosts of() { return of(device); }
  PacketCosts of(const DeviceDescription& of_device) {
    return estimate_costs(journal_.recording(), of_device);
  }
  // 1600 MHz, two transfers a clock, 512 bytes each.
  double memory_ns(double bytes) const { return bytes / 1638.4; }
  double link_ns(double bytes) const { return bytes / 31.504; }
  // 64 bytes a clock for each of 104 compute units at 1700 MHz.
  double l1_ns(double bytes) const { return bytes / (64 * 104 * 1.7); }

 private:
  Journal journal_;
};

}  // namespace

TEST_CASE("a system release costs the bytes that it writes back, once") {
  Cost cost;
  Program& program = cost.program;
  const ActorId queue = program.compute();
  program.dispatch(queue, "fill", {false, kNone, kNone},
                   {writes(kLocal, kPages * kPageBytes), writes(kCoarse, 64), writes(kFine, 640)});
  program.dispatch(queue, "again", {true, kNone, kSystem}, {writes(kLocal, 64)});
  program.dispatch(queue, "idle", {true, kNone, kSystem});
  program.dispatch(queue, "third", {true, kNone, kNone}, {writes(kLocal, 64)});
  program.barrier_packet(queue, {true, kNone, kSystem});
  const PacketCosts costs = cost.of();
  CHECK(costs.at({queue, 1}).release_system_ns ==
        Approx(cost.memory_ns(kPages * kPageBytes) + cost.link_ns(64)));
  CHECK(costs.count({queue, 2}) == 0);
  CHECK(costs.at({queue, 4}).release_system_ns == Approx(cost.memory_ns(64)));
}

TEST_CASE("a system release writes back no more than L2 holds") {
  Cost cost;
  Program& program = cost.program;
  const ActorId queue = program.compute();
  program.dispatch(queue, "fill", {true, kNone, kSystem},
                   {writes(kLocal, kMemoryBytes), writes(kCoarse, kMemoryBytes)});
  DeviceDescription small = cost.device;
  small.l2_bytes = kMemoryBytes / 2;
  CHECK(cost.of(small).at({queue, 0}).release_system_ns ==
        Approx((cost.memory_ns(kMemoryBytes) + cost.link_ns(kMemoryBytes)) / 4));
}

TEST_CASE("an acquire costs the bytes read again: from L2, and at system scope from memory") {
  for (const FenceScope scope : {kAgent, kSystem}) {
    Cost cost;
    Program& program = cost.program;
    const ActorId queue = program.compute();
    program.dispatch(queue, "warm", {false, kNone, kNone},
                     {reads(kLocal, 1280), reads(kCoarse, 64)});
    program.dispatch(queue, "again", {false, scope, kNone},
                     {reads(kLocal, 640), reads(kCoarse, 64), reads(kLocal + 8192, 64)});
    const PacketCost found = cost.of().at({queue, 1});
    CHECK(found.acquire_agent_ns == Approx(cost.l1_ns(704)));
    CHECK(found.acquire_system_ns ==
          Approx(scope == kSystem ? cost.memory_ns(640) + cost.link_ns(64) : 0));
  }
}

TEST_CASE("an acquire costs no more than the caches hold") {
  Cost cost;
  Program& program = cost.program;
  const ActorId queue = program.compute();
  program.dispatch(queue, "warm", {}, {reads(kLocal, kPages * kPageBytes)});
  program.dispatch(queue, "again", {false, kSystem, kNone}, {reads(kLocal, kPages * kPageBytes)});
  DeviceDescription small = cost.device;
  small.compute_units = 2;
  small.l2_bytes = 3 * kPageBytes;
  const PacketCost found = cost.of(small).at({queue, 1});
  CHECK(found.acquire_agent_ns == Approx(2 * small.l1_bytes / (64 * 2 * 1.7)));
  CHECK(found.acquire_system_ns == Approx(cost.memory_ns(3 * kPageBytes)));
}

TEST_CASE("an acquire costs nothing for lines that are only written afterwards") {
  Cost cost;
  Program& program = cost.program;
  const ActorId queue = program.compute();
  program.dispatch(queue, "warm", {}, {reads(kLocal, 640)});
  program.dispatch(queue, "write", {false, kSystem, kNone}, {writes(kLocal, 640)});
  CHECK(cost.of().empty());
}

TEST_CASE(
    "an acquire costs only lines that an L1 held, vector or scalar, and that are read again "
    "through it") {
  struct Case {
    Path before, behind;
    bool costs;
  };
  for (const Case& one :
       {Case{Path::vector, Path::vector, true}, Case{Path::scalar, Path::scalar, true},
        Case{Path::synchronising, Path::vector, false},
        Case{Path::vector, Path::synchronising, false}}) {
    CAPTURE(static_cast<int>(one.before), static_cast<int>(one.behind));
    Cost cost;
    Program& program = cost.program;
    const ActorId queue = program.compute();
    program.dispatch(queue, "warm", {}, {reads(kLocal, 640, one.before)});
    program.dispatch(queue, "again", {false, kAgent, kNone}, {reads(kLocal, 640, one.behind)});
    CHECK(cost.of()[{queue, 1}].acquire_agent_ns == Approx(one.costs ? cost.l1_ns(640) : 0));
  }
}

TEST_CASE("of two consecutive acquires neither costs anything, because the other would remain") {
  for (const FenceScope scope : {kAgent, kSystem}) {
    Cost cost;
    Program& program = cost.program;
    const ActorId queue = program.compute();
    program.dispatch(queue, "warm", {false, kNone, kNone}, {reads(kLocal, 640)});
    program.barrier_packet(queue, {true, scope, kNone});
    program.dispatch(queue, "again", {false, scope, kNone}, {reads(kLocal, 640)});
    CHECK(cost.of().empty());
  }
}

TEST_CASE("a barrier bit costs the time for which two dispatches could have overlapped") {
  const uint64_t slots = 104 * 4 * 8;
  struct Case {
    uint64_t waves_before, waves;
    double share;
  };
  for (const Case& one :
       {Case{1, 1, 1}, Case{slots / 2, slots, 0.5}, Case{slots, 8, 0}, Case{2 * slots, 8, 0}}) {
    CAPTURE(one.waves_before, one.waves);
    Cost cost;
    Program& program = cost.program;
    const ActorId queue = program.compute();
    program.dispatch(queue, "long", {.waves = one.waves_before}, {writes(kLocal, 1 << 16)});
    program.dispatch(queue, "short", {.barrier = true, .waves = one.waves},
                     {writes(kLocal + (1 << 16), 1 << 13)});
    CHECK(cost.of()[{queue, 1}].barrier_ns == Approx(one.share * cost.memory_ns(1 << 13)));
  }
}

TEST_CASE("a barrier bit costs the lost overlap with the dispatch directly before it, once") {
  Cost cost;
  Program& program = cost.program;
  const ActorId queue = program.compute();
  const auto bytes = [](uint64_t first, uint64_t count) {
    return writes(kLocalFine + first * kPageBytes, count * kPageBytes);
  };
  program.dispatch(queue, "a", {.waves = 1}, {bytes(0, 8)});
  program.dispatch(queue, "b", {.barrier = true, .waves = 1}, {bytes(8, 1)});
  program.dispatch(queue, "c", {.barrier = true, .waves = 1}, {bytes(9, 4)});
  program.dispatch(queue, "d", {.waves = 1}, {bytes(13, 4)});
  PacketCosts costs = cost.of();
  CHECK(costs[{queue, 1}].barrier_ns == Approx(cost.memory_ns(kPageBytes)));
  CHECK(costs[{queue, 2}].barrier_ns == Approx(cost.memory_ns(kPageBytes)));
  CHECK(costs[{queue, 3}].barrier_ns == 0);
}

TEST_CASE(
    "of two barrier bits between dispatches neither costs anything; a single one on a barrier "
    "packet does") {
  for (const bool both : {true, false}) {
    Cost cost;
    Program& program = cost.program;
    const ActorId queue = program.compute();
    program.dispatch(queue, "a", {.waves = 1}, {writes(kLocal, 4096)});
    program.barrier_packet(queue, {.barrier = true});
    program.dispatch(queue, "b", {.barrier = both, .waves = 1}, {writes(kLocal + 4096, 4096)});
    PacketCosts costs = cost.of();
    CHECK(costs[{queue, 1}].barrier_ns == Approx(both ? 0 : cost.memory_ns(4096)));
    CHECK(costs[{queue, 2}].barrier_ns == 0);
  }
}
