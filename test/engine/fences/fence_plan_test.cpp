// Plans with the fewest fences: their choices and explanations, their correctness, and that no plan
// is cheaper. The judge in this file uses only the rules: it checks each pair of packets and each
// byte.
#include "engine/fences/fence_plan.hpp"
#include "engine/fences/fence_planner.hpp"
#include "engine/fences/fence_rules.hpp"
#include "engine/runtime/error.hpp"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/errors.hpp"

using namespace uptempo;
using aql::Barrier;
using aql::FenceScope;
using aql::HeaderFlags;
using uptempo::test::contains;

namespace {

constexpr unsigned kMemoryBytes = 12;
char bytes_of_memory[kMemoryBytes];  // the memory that programs read and write

struct Packet {
  uint32_t reads = 0, writes = 0;  // one bit per byte of memory
  Observer observer = Observer::none;
  bool undeclared = false;
  bool depends = false;  // on `after` and, apart from the bytes above, on nothing else
  std::vector<size_t> after{};
};
using PacketList = std::vector<Packet>;

constexpr uint32_t kEverything = (1u << kMemoryBytes) - 1;
uint32_t read_by(const Packet& packet) { return packet.undeclared ? kEverything : packet.reads; }
uint32_t written_by(const Packet& packet) {
  return packet.undeclared ? kEverything : packet.writes;
}

// Calls f for the declared range of each run of set bits.
template <class F>
void for_each_range(uint32_t bits, F&& f) {
  for (unsigned begin = 0; begin < kMemoryBytes; ++begin) {
    unsigned end = begin;
    while (end < kMemoryBytes && (bits >> end & 1) != 0) ++end;
    if (end != begin) f(bytes_of_memory + begin, size_t{end - begin});
    begin = end;
  }
}

std::vector<HeaderFlags> flags_of(std::span<const PacketPlan> plans) {
  std::vector<HeaderFlags> flags;
  for (const PacketPlan& plan : plans) flags.push_back(plan.flags);
  return flags;
}

// Checks the rules by pairs of packets.
class Judge {
 public:
  // With `overwrites`, as on an agent with several L2 caches: overwritten bytes are handed over,
  // too.
  Judge(const PacketList& program, bool overwrites) : count_(program.size()) {
    for (size_t later = 0; later < count_; ++later) {
      const Packet& b = program[later];
      // bytes whose last writer is not found yet
      uint32_t open = read_by(b) | (overwrites ? written_by(b) : 0);
      for (size_t earlier = later; earlier-- > 0;) {
        const Packet& a = program[earlier];
        if ((written_by(a) & (read_by(b) | written_by(b))) != 0 ||
            (read_by(a) & written_by(b)) != 0)
          conflicts_.push_back({earlier, later});
        if ((written_by(a) & open) != 0) hand_overs_.push_back({earlier, later});
        open &= ~written_by(a);
        // A packet with dependencies may access any memory, as one without declarations does.
        if (std::ranges::count(b.after, earlier) != 0 || (a.undeclared && b.depends) ||
            (a.depends && b.undeclared)) {
          conflicts_.push_back({earlier, later});
          hand_overs_.push_back({earlier, later});
        }
      }
    }
    for (const Packet& packet : program)
      least_.push_back(packet.observer == Observer::system  ? FenceScope::system
                       : packet.observer == Observer::agent ? FenceScope::agent
                                                            : FenceScope::none);
    least_.back() = FenceScope::system;
  }

  bool accepts(std::span<const HeaderFlags> flags) const {
    if (flags.front().barrier == Barrier::off || flags.front().acquire != FenceScope::system ||
        flags.back().barrier == Barrier::off)
      return false;
    for (size_t i = 0; i < count_; ++i)
      if (flags[i].release < least_[i]) return false;
    const auto before = [&](size_t i, size_t j) {
      for (size_t at = i + 1; at <= j; ++at)
        if (flags[at].barrier == Barrier::on) return true;
      return false;
    };
    for (const auto& [i, j] : conflicts_)
      if (!before(i, j)) return false;
    for (const auto& [i, j] : hand_overs_) {
      bool handed_over = false;
      for (size_t r = i; r < j && !handed_over; ++r)
        for (size_t q = r + 1; q <= j && !handed_over; ++q)
          handed_over = (r == i || before(i, r)) && before(r, q) &&
                        flags[r].release != FenceScope::none &&
                        flags[q].acquire != FenceScope::none;
      if (!handed_over) return false;
    }
    return true;
  }

  std::span<const FenceScope> least_releases() const { return least_; }

 private:
  struct Pair {
    size_t earlier, later;
  };
  size_t count_;
  std::vector<Pair> conflicts_, hand_overs_;
  std::vector<FenceScope> least_;
};

FenceCost cost_of_flags(std::span<const HeaderFlags> flags) {
  std::vector<PacketPlan> plans;
  for (const HeaderFlags& one : flags) plans.push_back({.flags = one});
  return cost_of(plans);
}

// The least cost of all correct choices. System fences are only where the judge requires them,
// because another one is never cheaper.
FenceCost least_cost(const PacketList& program, const Judge& judge) {
  const size_t count = program.size();
  FenceCost least{~0u, 0, 0};
  std::vector<HeaderFlags> flags(count);
  for (uint32_t bits = 0; bits < 1u << 3 * count; ++bits) {
    for (size_t i = 0; i < count; ++i) {
      const auto bit = [&](size_t which) { return (bits >> (3 * i + which) & 1) != 0; };
      flags[i] = {
          bit(0) ? Barrier::on : Barrier::off, bit(1) ? FenceScope::agent : FenceScope::none,
          std::max(judge.least_releases()[i], bit(2) ? FenceScope::agent : FenceScope::none)};
    }
    flags.front().acquire = FenceScope::system;
    const FenceCost cost = cost_of_flags(flags);
    if (cost < least && judge.accepts(flags)) least = cost;
  }
  return least;
}

PacketList random_program(std::mt19937_64& random, size_t count) {
  PacketList program(count);
  const auto bits = [&] {
    // A few bytes at a time, so that accesses overlap partly.
    const unsigned at = static_cast<unsigned>(random() % kMemoryBytes);
    const unsigned bytes = 1 + static_cast<unsigned>(random() % 4);
    return ((1u << bytes) - 1) << at & kEverything;
  };
  for (size_t number = 0; number < count; ++number) {
    Packet& packet = program[number];
    for (uint64_t i = random() % 3; i > 0; --i) packet.reads |= bits();
    for (uint64_t i = random() % 3; i > 0; --i) packet.writes |= bits();
    const uint64_t chance = random() % 16;
    packet.observer = chance == 0   ? Observer::system
                      : chance == 1 ? Observer::agent
                                    : Observer::none;
    packet.undeclared = chance == 2;
    packet.depends = chance >= 11;
    if (!packet.depends) continue;
    if (chance >= 13) packet.reads = packet.writes = 0;
    for (uint64_t i = random() % 3; i > 0 && number != 0; --i)
      packet.after.push_back(random() % number);
  }
  return program;
}

std::string text_of(const PacketList& program) {
  std::string text;
  for (const Packet& packet : program) {
    if (packet.undeclared) text += "?";
    text += " r" + std::to_string(packet.reads) + " w" + std::to_string(packet.writes) + " o" +
            std::to_string(static_cast<int>(packet.observer));
    if (packet.depends) text += " after";
    for (const size_t earlier : packet.after) text += " " + std::to_string(earlier);
    text += ";";
  }
  return text;
}

// A planner with the rules for gfx90a: overwritten bytes are not handed over.
struct Planned {
  explicit Planned(const PacketList& program, bool overwrites = true)
      : planner(overwrites ? Overwrites::handed_over : Overwrites::ordered) {
    for (const Packet& packet : program) {
      const auto number = static_cast<uint32_t>(intents.size());
      Declarations& intent = intents.emplace_back();
      intent.observer = packet.observer;
      if (packet.undeclared) continue;
      intent.declare(accesses, nullptr, 0, false);
      for_each_range(packet.reads,
                     [&](char* data, size_t n) { intent.declare(accesses, data, n, false); });
      for_each_range(packet.writes,
                     [&](char* data, size_t n) { intent.declare(accesses, data, n, true); });
      if (packet.depends) intent.depend(accesses, number, packet.after);
    }
    plans.resize(program.size());
    planner.plan(intents, accesses, plans);
  }
  detail::FencePlanner planner;
  std::vector<Declarations> intents;
  std::vector<AccessRange> accesses;
  std::vector<PacketPlan> plans;
};

}  // namespace

TEST_CASE("independent dispatches need fences at the two ends only", "[fence_plan]") {
  FencePlan plan;
  float memory[8];
  for (float& one : memory) plan.dispatch().writes(&one, 1);
  CHECK(plan.cost() == FenceCost{.system_fences = 2, .barrier_bits = 2, .agent_fences = 0});
  CHECK(plan.packets()[3].flags == HeaderFlags{Barrier::off, FenceScope::none, FenceScope::none});
}

TEST_CASE("a chain of dependent dispatches needs everything at agent scope", "[fence_plan]") {
  FencePlan plan;
  float memory[8];
  for (int i = 0; i < 20; ++i) plan.dispatch().reads(memory, 8).writes(memory, 8);
  CHECK(plan.cost() == FenceCost{.system_fences = 2, .barrier_bits = 20, .agent_fences = 38});
}

TEST_CASE("branches that join hand over with a release each and one acquire", "[fence_plan]") {
  FencePlan plan;
  float memory[9];
  for (int i = 0; i < 8; ++i) plan.dispatch().writes(memory + i, 1);
  plan.dispatch().reads(memory, 8).writes(memory + 8, 1);
  plan.dispatch().reads(memory, 8);
  const auto packets = plan.packets();
  CHECK(packets[7].flags == HeaderFlags{Barrier::off, FenceScope::none, FenceScope::agent});
  CHECK(packets[8].flags == HeaderFlags{Barrier::on, FenceScope::agent, FenceScope::none});
  CHECK(packets[9].flags == HeaderFlags{Barrier::on, FenceScope::none, FenceScope::system});
}

TEST_CASE("one release serves all finished writers when their readers come later", "[fence_plan]") {
  FencePlan plan;
  float memory[12];
  for (int i = 0; i < 10; ++i) plan.dispatch().writes(memory + i, 1);
  plan.dispatch().reads(memory, 1).writes(memory + 10, 1);       // 10: of packet 0
  plan.dispatch().reads(memory + 10, 1).writes(memory + 11, 1);  // 11: of packet 10
  plan.dispatch().reads(memory, 12);                             // 12: of all
  const auto packets = plan.packets();
  CHECK(packets[0].flags.release == FenceScope::agent);
  for (size_t i = 1; i < 10; ++i) CHECK(packets[i].flags.release == FenceScope::none);
  CHECK(packets[10].flags.release == FenceScope::agent);
  CHECK(plan.cost().agent_fences == 6);
}

TEST_CASE(
    "overwritten memory is ordered, and handed over where an agent may have several L2 caches",
    "[fence_plan]") {
  const PacketList program(4, Packet{.reads = 0, .writes = 3});
  CHECK(cost_of(Planned(program, false).plans) ==
        FenceCost{.system_fences = 2, .barrier_bits = 4, .agent_fences = 0});
  CHECK(cost_of(Planned(program, true).plans) ==
        FenceCost{.system_fences = 2, .barrier_bits = 4, .agent_fences = 6});
}

TEST_CASE("branches of a graph overlap, and their join acquires what both wrote", "[fence_plan]") {
  FencePlan plan;
  plan.dispatch().after({});
  plan.dispatch().after({0});
  plan.dispatch().after({0});
  plan.dispatch().after({1, 2});
  plan.dispatch().after({3});
  const auto packets = plan.packets();
  CHECK(packets[1].flags == HeaderFlags{Barrier::on, FenceScope::agent, FenceScope::agent});
  CHECK(packets[2].flags == HeaderFlags{Barrier::off, FenceScope::none, FenceScope::agent});
  CHECK(packets[3].flags == HeaderFlags{Barrier::on, FenceScope::agent, FenceScope::agent});
  CHECK(contains(plan.explain(), "packet 1: barrier bit: it depends on packet 0;"));
  CHECK(contains(plan.explain(), "packet 3: barrier bit: it depends on packet 2;"));
}

TEST_CASE("a longer plan names the dependency that a barrier bit serves", "[fence_plan]") {
  FencePlan plan;
  for (size_t i = 0; i < 20; ++i)
    if (i == 9) {
      plan.dispatch().after({3, 7});
    } else {
      plan.dispatch().after({});
    }
  CHECK(plan.packets()[9].flags.barrier == Barrier::on);
  CHECK(plan.cost().barrier_bits == 3);
  CHECK(contains(plan.explain(), "packet 9: barrier bit: it depends on packet 7;"));
}

TEST_CASE("a dispatch without declarations follows dependent ones, and they follow it",
          "[fence_plan]") {
  FencePlan plan;
  plan.dispatch().after({});
  plan.dispatch();
  plan.dispatch().after({0});
  plan.dispatch().touches_nothing();
  for (size_t i = 0; i < 3; ++i) CHECK(plan.packets()[i].flags.barrier == Barrier::on);
  CHECK(plan.packets()[1].flags.acquire == FenceScope::agent);
  CHECK(plan.packets()[2].flags.acquire == FenceScope::agent);
}

TEST_CASE("a dependency on a packet that is not earlier is refused, and changes nothing",
          "[fence_plan]") {
  FencePlan plan;
  plan.dispatch().after({});
  FencePlan::Dispatch second = plan.dispatch();
  CHECK(contains(test::error_of<Error>([&] {
                   second.after({0, 1});
                 }),
                 "packet 1 after packet 1: a packet cannot depend on itself"));
  CHECK(contains(test::error_of<Error>([&] { second.after({2}); }), "that packet is not earlier"));
  CHECK(plan.packets()[1].barrier == BarrierReason::undeclared);
}

TEST_CASE("an observer outside the queue costs a release of its scope", "[fence_plan]") {
  FencePlan plan;
  float memory[4];
  plan.dispatch().writes(memory, 1).observed_by(Observer::agent);
  plan.dispatch().writes(memory + 1, 1).observed_by(Observer::system);
  plan.dispatch().writes(memory + 2, 1);
  plan.dispatch().writes(memory + 3, 1);
  const auto packets = plan.packets();
  CHECK(packets[0].flags.release == FenceScope::agent);
  CHECK(packets[1].flags.release == FenceScope::system);
  CHECK(packets[2].flags.release == FenceScope::none);
}

TEST_CASE("without declarations, the fewest fences are those of FencePolicy::planned",
          "[fence_plan]") {
  for (const size_t count : {1u, 2u, 3u, 8u, 9u, 40u}) {
    FencePlan plan;
    for (size_t i = 0; i < count; ++i) plan.dispatch();
    std::vector<PacketPlan> expected(count);
    plan_fences(std::vector<Declarations>(count), {}, FencePolicy::planned, expected);
    CHECK(flags_of(plan.packets()) == flags_of(expected));
  }
}

TEST_CASE("the caller's choices are kept, and serve other packets", "[fence_plan]") {
  FencePlan plan;
  float memory[2];
  plan.dispatch().writes(memory, 1).fences(FenceScope::none, FenceScope::agent);
  plan.dispatch().reads(memory + 1, 1).fences(FenceScope::agent, FenceScope::none);
  plan.dispatch().reads(memory, 1).without_barrier();
  plan.dispatch().touches_nothing();
  const auto packets = plan.packets();
  CHECK(packets[0].flags == HeaderFlags{Barrier::on, FenceScope::agent, FenceScope::agent});
  CHECK(packets[0].acquire == ScopeReason::stale_kernargs);
  CHECK(packets[1].flags == HeaderFlags{Barrier::off, FenceScope::agent, FenceScope::none});
  // Without the barrier bit the two may overlap; the plan still adds the fences.
  CHECK(packets[2].flags == HeaderFlags{Barrier::off, FenceScope::agent, FenceScope::none});
  CHECK(packets[3].flags == HeaderFlags{Barrier::on, FenceScope::none, FenceScope::system});
}

TEST_CASE("a plan gives a reason for each packet", "[fence_plan]") {
  FencePlan plan;
  float memory[3];
  plan.dispatch().writes(memory, 1);
  plan.dispatch().writes(memory + 1, 1);
  plan.dispatch().reads(memory, 2).writes(memory + 2, 1);
  plan.dispatch().touches_nothing();
  const std::string text = plan.explain();
  CAPTURE(text);
  CHECK(contains(
      text,
      "packet 0: barrier bit: first of its batch, earlier batches may still run; acquire system: "
      "the host wrote kernargs and inputs; release agent: packet 2 reads what it wrote\n"));
  CHECK(contains(
      text,
      "packet 1: no barrier bit: no conflict with packets since the last barrier bit; "
      "acquire none: it reads nothing that has not been acquired; release agent: packet 2 reads "
      "what it wrote\n"));
  CHECK(
      contains(text,
               "packet 2: barrier bit: it touches what packet 1 touches, and one of them writes; "
               "acquire agent: it reads what packet 0 wrote; release none: no packet reads what it "
               "wrote, or a later release covers it\n"));
}

TEST_CASE("a dispatch may be declared further after later dispatches are added", "[fence_plan]") {
  FencePlan plan;
  float memory[2];
  FencePlan::Dispatch first = plan.dispatch();
  first.writes(memory, 1);
  FencePlan::Dispatch second = plan.dispatch();
  second.reads(memory + 1, 1);
  plan.dispatch().touches_nothing();
  CHECK(plan.packets()[1].flags.barrier == Barrier::off);
  first.writes(memory + 1, 1);
  CHECK(plan.packets()[1].flags == HeaderFlags{Barrier::on, FenceScope::agent, FenceScope::none});
  plan.clear();
  CHECK(plan.packets().empty());
  plan.dispatch();
  CHECK(plan.cost() == FenceCost{.system_fences = 2, .barrier_bits = 1, .agent_fences = 0});
}

TEST_CASE("random plans are correct, and up to six packets as cheap as the cheapest possible",
          "[fence_plan][random]") {
  std::mt19937_64 random(1);
  for (const auto& [count, programs] :
       {std::pair{1u, 20u}, {2u, 200u}, {3u, 400u}, {4u, 400u}, {5u, 100u}, {6u, 30u}}) {
    for (uint32_t i = 0; i < programs; ++i) {
      const PacketList program = random_program(random, count);
      const bool overwrites = i % 2 == 0;
      CAPTURE(count, overwrites, text_of(program));
      const Judge judge(program, overwrites);
      const Planned planned(program, overwrites);
      REQUIRE(judge.accepts(flags_of(planned.plans)));
      REQUIRE(cost_of(planned.plans) == least_cost(program, judge));
    }
  }
}

TEST_CASE("random plans of any length are correct, and no single fence of them can be removed",
          "[fence_plan][random]") {
  std::mt19937_64 random(2);
  for (uint32_t i = 0; i < 300; ++i) {
    const PacketList program = random_program(random, 1 + random() % 60);
    const bool overwrites = i % 2 == 0;
    CAPTURE(overwrites, text_of(program));
    const Judge judge(program, overwrites);
    const std::vector<HeaderFlags> flags = flags_of(Planned(program, overwrites).plans);
    REQUIRE(judge.accepts(flags));
    for (size_t at = 0; at < flags.size(); ++at) {
      for (int part = 0; part < 3; ++part) {
        std::vector<HeaderFlags> less = flags;
        if (part == 0) less[at].barrier = Barrier::off;
        if (part == 1) less[at].acquire = FenceScope::none;
        if (part == 2) less[at].release = FenceScope::none;
        if (less == flags) continue;
        CAPTURE(at, part);
        CHECK_FALSE(judge.accepts(less));
      }
    }
  }
}

TEST_CASE("a planner keeps its ranges, and plans the same as a new one", "[fence_plan][random]") {
  std::mt19937_64 random(3);
  detail::FencePlanner kept(Overwrites::handed_over);
  for (uint32_t i = 0; i < 2000; ++i) {
    const PacketList program = random_program(random, 1 + random() % 12);
    Planned fresh(program);
    std::vector<PacketPlan> plans(program.size());
    // Other addresses each time, so that ranges are added and removed.
    std::vector<AccessRange> accesses = fresh.accesses;
    for (AccessRange& access : accesses) {
      if (access.is_dependency) continue;
      access.begin += (i % 500) * 64;
      access.end += (i % 500) * 64;
    }
    kept.plan(fresh.intents, accesses, plans);
    CHECK(flags_of(plans) == flags_of(fresh.plans));
  }
}
