// Plans of fences: their choices, the caller's choices, and explanations. fence_invariants_test.cpp
// has random plans.
#include <uptempo/fences/fence_plan.hpp>
#include <uptempo/fences/fence_planner.hpp>
#include <uptempo/runtime/error.hpp>

#include <string>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/errors.hpp"

using namespace uptempo;
using aql::Barrier;
using aql::FenceScope;
using aql::HeaderFlags;
using uptempo::detail::AccessRange;
using uptempo::detail::Declarations;
using uptempo::detail::Overwrites;
using uptempo::test::contains;

namespace {

struct Batch {
  std::vector<Declarations> packets;
  std::vector<AccessRange> accesses;

  Batch& undeclared() {
    packets.emplace_back();
    return *this;
  }
  Batch& declared(std::vector<AccessRange> ranges) {
    Declarations intent;
    intent.declared = true;
    intent.first_access = static_cast<uint32_t>(accesses.size());
    intent.access_count = static_cast<uint32_t>(ranges.size());
    accesses.insert(accesses.end(), ranges.begin(), ranges.end());
    packets.push_back(intent);
    return *this;
  }
  std::vector<PacketPlan> plan(Overwrites overwrites = Overwrites::handed_over,
                               FencePolicy policy = FencePolicy::by_need) const {
    std::vector<PacketPlan> plans(packets.size());
    detail::FencePlanner(overwrites, policy).plan(packets, accesses, plans);
    return plans;
  }
};

AccessRange reads(uintptr_t begin, uintptr_t end) { return {begin, end, false}; }
AccessRange writes(uintptr_t begin, uintptr_t end) { return {begin, end, true}; }

void check(const PacketPlan& plan, Barrier barrier, FenceScope acquire, FenceScope release) {
  CHECK(plan.flags.barrier == barrier);
  CHECK(plan.flags.acquire == acquire);
  CHECK(plan.flags.release == release);
}

}  // namespace

TEST_CASE("independent dispatches need fences at the two ends only", "[fence_plan]") {
  FencePlan plan;
  float memory[8];
  for (float& one : memory) plan.dispatch().writes(&one, 1);
  CHECK(plan.cost() == FenceCost{.system_fences = 2, .barrier_bits = 2, .agent_fences = 0});
  CHECK(plan.packets()[3].flags == HeaderFlags{Barrier::off, FenceScope::none, FenceScope::none});
}

TEST_CASE("a range beyond the end of the address space reaches to that end", "[fence_plan]") {
  double memory[8];
  // SIZE_MAX bytes, and more bytes than a size_t holds
  for (const size_t count : {SIZE_MAX / sizeof(double), SIZE_MAX}) {
    FencePlan plan;
    plan.dispatch().writes(memory, count);
    plan.dispatch().reads(&memory[7], 1);
    plan.dispatch().writes(memory, 1);
    CHECK(plan.packets()[1].flags.barrier == Barrier::on);
    CHECK(plan.packets()[2].flags.barrier == Barrier::on);
  }
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
  Batch batch;
  for (int i = 0; i < 4; ++i) batch.declared({writes(0, 2)});
  CHECK(cost_of(batch.plan(Overwrites::ordered)) ==
        FenceCost{.system_fences = 2, .barrier_bits = 4, .agent_fences = 0});
  CHECK(cost_of(batch.plan(Overwrites::handed_over)) ==
        FenceCost{.system_fences = 2, .barrier_bits = 4, .agent_fences = 6});
}

TEST_CASE("branches of a graph overlap, and their join acquires what both wrote", "[fence_plan]") {
  FencePlan plan;
  plan.dispatch().after_packets({});
  plan.dispatch().after_packets({0});
  plan.dispatch().after_packets({0});
  plan.dispatch().after_packets({1, 2});
  plan.dispatch().after_packets({3});
  const auto packets = plan.packets();
  CHECK(packets[1].flags == HeaderFlags{Barrier::on, FenceScope::agent, FenceScope::agent});
  CHECK(packets[2].flags == HeaderFlags{Barrier::off, FenceScope::none, FenceScope::agent});
  CHECK(packets[3].flags == HeaderFlags{Barrier::on, FenceScope::agent, FenceScope::agent});
  CHECK(contains(plan.explain(), "packet 1: barrier bit: it depends on packet 0;"));
  CHECK(contains(plan.explain(), "packet 3: barrier bit: it depends on packet 2;"));
}

TEST_CASE("dispatches named by what dispatch() returned give the plan of their numbers",
          "[fence_plan]") {
  FencePlan by_number, by_name;
  by_number.dispatch().after_packets({});
  by_number.dispatch().after_packets({0});
  by_number.dispatch().after_packets({0});
  by_number.dispatch().after_packets({1, 2});
  const auto root = by_name.dispatch().after();
  const auto left = by_name.dispatch().after(root), right = by_name.dispatch().after(root);
  const auto join = by_name.dispatch().after(left, right);
  CHECK(by_name.explain() == by_number.explain());
  FencePlan other;
  other.dispatch();
  FencePlan::Dispatch foreign = other.dispatch();
  CHECK(contains(test::error_of<Error>([&] { foreign.after(join); }),
                 "dispatch 1 after dispatch 3 of another plan"));
}

TEST_CASE("a longer plan names the dependency that a barrier bit serves", "[fence_plan]") {
  FencePlan plan;
  for (size_t i = 0; i < 20; ++i)
    if (i == 9) {
      plan.dispatch().after_packets({3, 7});
    } else {
      plan.dispatch().after_packets({});
    }
  CHECK(plan.packets()[9].flags.barrier == Barrier::on);
  CHECK(plan.cost().barrier_bits == 3);
  CHECK(contains(plan.explain(), "packet 9: barrier bit: it depends on packet 7;"));
}

TEST_CASE("a dispatch without declarations follows dependent ones, and they follow it",
          "[fence_plan]") {
  FencePlan plan;
  plan.dispatch().after_packets({});
  plan.dispatch();
  plan.dispatch().after_packets({0});
  plan.dispatch().touches_nothing();
  for (size_t i = 0; i < 3; ++i) CHECK(plan.packets()[i].flags.barrier == Barrier::on);
  CHECK(plan.packets()[1].flags.acquire == FenceScope::agent);
  CHECK(plan.packets()[2].flags.acquire == FenceScope::agent);
}

TEST_CASE("a dependency on a packet that is not earlier is refused, and changes nothing",
          "[fence_plan]") {
  FencePlan plan;
  plan.dispatch().after_packets({});
  FencePlan::Dispatch second = plan.dispatch();
  CHECK(contains(test::error_of<Error>([&] {
                   second.after_packets({0, 1});
                 }),
                 "packet 1 after packet 1: a packet cannot depend on itself"));
  CHECK(contains(test::error_of<Error>([&] { second.after_packets({2}); }),
                 "that packet is not earlier"));
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

TEST_CASE("without declarations: barrier everywhere, system scope at the two ends only",
          "[fence_plan]") {
  const auto plans = Batch{}.undeclared().undeclared().undeclared().undeclared().plan();
  check(plans[0], Barrier::on, FenceScope::system, FenceScope::agent);
  check(plans[1], Barrier::on, FenceScope::agent, FenceScope::agent);
  check(plans[2], Barrier::on, FenceScope::agent, FenceScope::agent);
  check(plans[3], Barrier::on, FenceScope::agent, FenceScope::system);
}

TEST_CASE("the packet of a batch of one acquires and releases at system scope", "[fence_plan]") {
  check(Batch{}.undeclared().plan()[0], Barrier::on, FenceScope::system, FenceScope::system);
}

TEST_CASE("a conflict sets the barrier bit: write after write, read after write, write after read",
          "[fence_plan]") {
  const AccessRange pairs[][2] = {
      {writes(0, 10), writes(9, 20)}, {writes(0, 10), reads(5, 6)}, {reads(5, 6), writes(0, 10)}};
  for (const auto& pair : pairs) {
    const auto plans = Batch{}
                           .declared({reads(1000, 1001)})
                           .declared({pair[0]})
                           .declared({pair[1]})
                           .undeclared()
                           .plan();
    CHECK(plans[1].flags.barrier == Barrier::off);
    CHECK(plans[2].flags.barrier == Barrier::on);
    CHECK(plans[2].barrier == BarrierReason::conflict);
    CHECK(plans[2].conflict == PacketPair{1, 2});
  }
}

TEST_CASE("two readers, neighbours and empty ranges do not conflict", "[fence_plan]") {
  const AccessRange pairs[][2] = {
      {reads(0, 10), reads(0, 10)}, {writes(0, 10), writes(10, 20)}, {writes(0, 10), writes(5, 5)}};
  for (const auto& pair : pairs) {
    const auto plans = Batch{}
                           .declared({reads(1000, 1001)})
                           .declared({pair[0]})
                           .declared({pair[1]})
                           .undeclared()
                           .plan();
    CHECK(plans[2].flags.barrier == Barrier::off);
  }
}

TEST_CASE("a barrier bit settles all conflicts with packets before it, but not with its own packet",
          "[fence_plan]") {
  const auto plans = Batch{}
                         .declared({writes(0, 10)})
                         .declared({reads(0, 10), writes(50, 60)})  // waits for 0
                         .declared({reads(0, 10)})                  // 0 is over
                         .declared({reads(50, 60)})                 // 1 is not
                         .undeclared()
                         .plan();
  CHECK(plans[1].flags.barrier == Barrier::on);
  CHECK(plans[2].flags.barrier == Barrier::off);
  CHECK(plans[3].flags.barrier == Barrier::on);
  CHECK(plans[3].conflict == PacketPair{1, 3});
}

TEST_CASE("a packet without declarations orders itself and its successor", "[fence_plan]") {
  const auto plans = Batch{}
                         .declared({writes(0, 10)})
                         .undeclared()
                         .declared({writes(20, 30)})
                         .declared({writes(40, 50)})
                         .undeclared()
                         .plan();
  CHECK(plans[1].barrier == BarrierReason::undeclared);
  CHECK(plans[2].barrier == BarrierReason::after_undeclared);
  CHECK(plans[2].flags.barrier == Barrier::on);
  CHECK(plans[3].flags.barrier == Barrier::off);
}

TEST_CASE("inside a batch the caller's scopes and missing barrier bits are kept", "[fence_plan]") {
  for (const FenceScope acquire : {FenceScope::none, FenceScope::agent, FenceScope::system}) {
    for (const FenceScope release : {FenceScope::none, FenceScope::agent, FenceScope::system}) {
      Batch batch = Batch{}.undeclared().undeclared().undeclared();
      batch.packets[1].explicit_fences = true;
      batch.packets[1].acquire = acquire;
      batch.packets[1].release = release;
      batch.packets[1].without_barrier = true;
      const auto plans = batch.plan();
      check(plans[1], Barrier::off, acquire, release);
      CHECK(plans[1].barrier == BarrierReason::caller_without);
    }
  }
}

TEST_CASE(
    "the caller cannot remove the barrier bit or the system release of the packet with the signal",
    "[fence_plan]") {
  Batch batch = Batch{}.undeclared().undeclared();
  batch.packets[1].explicit_fences = true;
  batch.packets[1].acquire = FenceScope::none;
  batch.packets[1].release = FenceScope::none;
  batch.packets[1].without_barrier = true;
  const auto plans = batch.plan();
  check(plans[1], Barrier::on, FenceScope::none, FenceScope::system);
  CHECK(plans[1].barrier == BarrierReason::completion);
  CHECK(plans[1].release == ScopeReason::completion);
}

TEST_CASE("the first packet always acquires: its kernarg block may have been used before",
          "[fence_plan]") {
  Batch batch = Batch{}.undeclared().undeclared();
  batch.packets[0].explicit_fences = true;
  batch.packets[0].acquire = FenceScope::none;
  const auto plans = batch.plan();
  CHECK(plans[0].flags.acquire == FenceScope::agent);
  CHECK(plans[0].acquire == ScopeReason::stale_kernargs);
}

TEST_CASE("system_everywhere sets everything on every packet", "[fence_plan]") {
  const auto plans = Batch{}.undeclared().declared({}).undeclared().plan(
      Overwrites::ordered, FencePolicy::system_everywhere);
  for (const PacketPlan& plan : plans)
    check(plan, Barrier::on, FenceScope::system, FenceScope::system);
}

TEST_CASE("a caller's finished packet keeps its header", "[fence_plan]") {
  Batch batch = Batch{}.undeclared().undeclared().undeclared();
  batch.packets[0].is_finished = true;
  batch.packets[0].acquire = FenceScope::none;
  batch.packets[0].release = FenceScope::none;
  batch.packets[0].without_barrier = true;
  check(batch.plan()[0], Barrier::off, FenceScope::none, FenceScope::none);
}

TEST_CASE("after a raw packet the first dispatch acquires what the host wrote", "[fence_plan]") {
  Batch batch;
  batch.undeclared().undeclared().undeclared();
  batch.packets[0].is_finished = true;
  batch.packets[0].acquire = batch.packets[0].release = FenceScope::none;
  const auto plans = batch.plan();
  CHECK(plans[0].flags.acquire == FenceScope::none);
  CHECK(plans[1].flags.acquire == FenceScope::system);
  CHECK(plans[1].acquire == ScopeReason::host_wrote);
  CHECK(plans[2].flags.acquire == FenceScope::agent);

  batch.packets[1].without_barrier = true;
  CHECK(batch.plan()[1].flags.acquire == FenceScope::system);

  batch.packets[1].explicit_fences = true;
  batch.packets[1].acquire = batch.packets[1].release = FenceScope::none;
  CHECK(batch.plan()[1].flags.acquire == FenceScope::agent);
  CHECK(batch.plan()[1].acquire == ScopeReason::stale_kernargs);
}
