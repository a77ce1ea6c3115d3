// Runs that are kept: what is left of them, and that it is judged as they were.
#include "device/fences/journal.hpp"

#include "device/fences/cost.hpp"
#include "fence_program.hpp"
#include "support/catch.hpp"

using namespace uptempo::test;
using namespace uptempo::vgpu;

namespace {

constexpr FenceScope none = FenceScope::none, agent = FenceScope::agent, system_ = FenceScope::system;
constexpr std::uint32_t kPages = 50;

// How many pages each kept page stands for, most first.
std::vector<std::uint64_t> counts(const Recording& run) {
  std::vector<std::uint64_t> result;
  for (const auto& [page, count] : run.page_count) result.push_back(count);
  std::sort(result.rbegin(), result.rend());
  return result;
}

}  // namespace

TEST_CASE("Of pages with the same past one is kept") {
  Journal journal;
  Program program("gfx90a", true, &journal);
  const ActorId queue = program.compute();
  program.dispatch(queue, "fill", {false, none, agent}, {writes(kLocal, kPages * kPageBytes)});
  program.dispatch(queue, "half", {true, agent, none}, {reads(kLocal, kPages / 2 * kPageBytes)});
  program.dispatch(queue, "byte", {true, agent, none}, {reads(kLocal + 3 * kPageBytes, 1)});
  const Recording run = journal.recording();
  CHECK(counts(run) == std::vector<std::uint64_t>{kPages / 2, kPages / 2 - 1, 1});
}

TEST_CASE("Pages of different kinds, or touched by several workgroups, are different") {
  Journal journal;
  Program program("gfx90a", true, &journal);
  const ActorId queue = program.compute();
  program.dispatch(queue, "fill", {},
                   {writes(kLocal), writes(kFine), reads(kLocal + kPageBytes),
                    writes(kLocal + 2 * kPageBytes, 4, Path::vector, 0),
                    writes(kLocal + 2 * kPageBytes, 4, Path::vector, 1)});
  CHECK(counts(journal.recording()) == std::vector<std::uint64_t>{1, 1, 1, 1});
}

TEST_CASE("What the host does page by page is the same for all of them, as long as it knew the same") {
  Journal journal;
  Program program("gfx90a", true, &journal);
  const ActorId queue = program.compute();
  const auto page = [](std::uint32_t number) { return kFine + number * kPageBytes; };
  for (std::uint32_t i = 0; i < kPages; ++i) program.host_opens(page(i));
  for (std::uint32_t i = 0; i < kPages; ++i) program.host_wrote(page(i));
  program.dispatch(queue, "sum", {true, system_, system_, 7}, {reads(kFine, kPages * kPageBytes)});
  for (std::uint32_t i = 0; i < kPages / 2; ++i) program.host_reads(page(i));
  program.dispatch(queue, "idle", {true, none, none, 8});
  for (std::uint32_t i = kPages / 2; i < kPages; ++i) program.host_reads(page(i));
  CHECK(counts(journal.recording()) == std::vector<std::uint64_t>{kPages / 2, kPages / 2});
}

TEST_CASE("A kept run is judged as the run was, page for page") {
  Journal journal;
  Program program("gfx90a", true, &journal);
  const ActorId queue = program.compute(), engine = program.sdma();
  program.host_writes(kFine);
  program.dispatch(queue, "fill", {false, agent, none}, {reads(kFine), writes(kCoarse, 2 * kPageBytes)});
  program.dispatch(queue, "race", {false, none, none, 7}, {reads(kCoarse, 2 * kPageBytes)});
  program.sdma_waits(engine, 7);
  program.copy(engine, "copy", kCoarse + 100, kLocal + 100, 2 * kPageBytes);
  program.host_reads(kCoarse);
  program.forget(kCoarse, kCoarse + kPageBytes);
  program.finish();

  const Recording run = journal.recording();
  std::vector<std::string> found, again;
  for (const Finding& finding : program.findings()) found.push_back(to_json(finding, "gfx90a"));
  Judge judge({"gfx90a", true}, [&](const Finding& finding) { again.push_back(to_json(finding, "gfx90a")); });
  for (const Event& event : run.events) judge.tell(event);
  REQUIRE(found.size() == 4);
  CHECK(again == found);
}

TEST_CASE("A run that is too long is not kept at all") {
  Journal journal(64 << 10);
  Program program("gfx90a", true, &journal);
  const ActorId queue = program.compute();
  CHECK_FALSE(journal.overflowed());
  for (std::uint32_t i = 0; i < 1000; ++i) program.dispatch(queue, "step", {}, {writes(kLocal + 4 * i)});
  CHECK(journal.overflowed());
  CHECK(journal.recording().events.empty());
}

// ---- what it cost

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

TEST_CASE("A release of system scope costs what it writes back, once") {
  Cost cost;
  Program& program = cost.program;
  const ActorId queue = program.compute();
  program.dispatch(queue, "fill", {false, none, none},
                   {writes(kLocal, kPages * kPageBytes), writes(kCoarse, 64), writes(kFine, 640)});
  program.dispatch(queue, "again", {true, none, system_}, {writes(kLocal, 64)});
  program.dispatch(queue, "idle", {true, none, system_});
  const PacketCosts costs = cost.of();
  CHECK(costs.at({queue, 1}).release_system_ns ==
        Approx(cost.memory_ns(kPages * kPageBytes) + cost.link_ns(64)));
  CHECK(costs.count({queue, 2}) == 0);
}

TEST_CASE("A release of system scope writes back no more than L2 holds") {
  Cost cost;
  Program& program = cost.program;
  const ActorId queue = program.compute();
  program.dispatch(queue, "fill", {true, none, system_},
                   {writes(kLocal, kMemoryBytes), writes(kCoarse, kMemoryBytes)});
  DeviceDescription small = cost.device;
  small.l2_bytes = kMemoryBytes / 2;
  CHECK(cost.of(small).at({queue, 0}).release_system_ns ==
        Approx((cost.memory_ns(kMemoryBytes) + cost.link_ns(kMemoryBytes)) / 4));
}

TEST_CASE("An acquire costs what is read again because of it: from L2, and of system scope from memory") {
  for (const FenceScope scope : {agent, system_}) {
    Cost cost;
    Program& program = cost.program;
    const ActorId queue = program.compute();
    program.dispatch(queue, "warm", {false, none, none}, {reads(kLocal, 1280), reads(kCoarse, 64)});
    program.dispatch(queue, "again", {false, scope, none},
                     {reads(kLocal, 640), reads(kCoarse, 64), reads(kLocal + 8192, 64)});
    const PacketCost found = cost.of().at({queue, 1});
    CHECK(found.acquire_agent_ns == Approx(cost.l1_ns(704)));
    CHECK(found.acquire_system_ns == Approx(scope == system_ ? cost.memory_ns(640) + cost.link_ns(64) : 0));
  }
}

TEST_CASE("Of two acquires in a row neither costs anything: one of them would be left") {
  Cost cost;
  Program& program = cost.program;
  const ActorId queue = program.compute();
  program.dispatch(queue, "warm", {false, none, none}, {reads(kLocal, 640)});
  program.barrier_packet(queue, {true, agent, none});
  program.dispatch(queue, "again", {false, agent, none}, {reads(kLocal, 640)});
  CHECK(cost.of().empty());
}

TEST_CASE("A barrier bit costs the time for which two dispatches could have run side by side") {
  const std::uint64_t slots = 104 * 4 * 8;
  struct Case {
    std::uint64_t waves_before, waves;
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
                     {writes(kLocal + (1 << 16), 1 << 12)});
    CHECK(cost.of()[{queue, 1}].barrier_ns == Approx(one.share * cost.memory_ns(1 << 12)));
  }
}

TEST_CASE(
    "Of two barrier bits between dispatches neither costs anything; one on a barrier packet costs as much as "
    "on the dispatch") {
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
