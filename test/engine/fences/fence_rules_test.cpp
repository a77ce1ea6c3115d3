// The fence plan as a pure function: the fences of each packet, and the reasons.
#include "engine/fences/fence_rules.hpp"

#include <vector>

#include "test/support/catch.hpp"
#include "test/support/errors.hpp"

using namespace uptempo;
using aql::Barrier;
using aql::FenceScope;

namespace {

using uptempo::test::contains;

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
  Batch& after(std::vector<size_t> earlier) {
    Declarations& intent = packets.emplace_back();
    intent.depend(accesses, static_cast<uint32_t>(packets.size() - 1), earlier);
    return *this;
  }
  std::vector<PacketPlan> plan(FencePolicy policy = FencePolicy::planned) const {
    std::vector<PacketPlan> plans(packets.size());
    plan_fences(packets, accesses, policy, plans);
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

TEST_CASE("without declarations: barrier everywhere, system scope at the two ends only",
          "[fence_rules]") {
  const auto plans = Batch{}.undeclared().undeclared().undeclared().undeclared().plan();
  check(plans[0], Barrier::on, FenceScope::system, FenceScope::agent);
  check(plans[1], Barrier::on, FenceScope::agent, FenceScope::agent);
  check(plans[2], Barrier::on, FenceScope::agent, FenceScope::agent);
  check(plans[3], Barrier::on, FenceScope::agent, FenceScope::system);
}

TEST_CASE("the packet of a batch of one acquires and releases at system scope", "[fence_rules]") {
  check(Batch{}.undeclared().plan()[0], Barrier::on, FenceScope::system, FenceScope::system);
}

TEST_CASE("a packet waits only if it depends on a packet since the last barrier bit",
          "[fence_rules]") {
  const Batch batch = Batch{}.after({}).after({}).after({0}).after({1}).after({2, 3}).after({4});
  const auto plans = batch.plan();
  check(plans[0], Barrier::on, FenceScope::system, FenceScope::agent);
  check(plans[1], Barrier::off, FenceScope::agent, FenceScope::agent);
  check(plans[2], Barrier::on, FenceScope::agent, FenceScope::agent);
  check(plans[3], Barrier::off, FenceScope::agent, FenceScope::agent);
  check(plans[4], Barrier::on, FenceScope::agent, FenceScope::agent);
  CHECK(plans[2].barrier == BarrierReason::dependency);
  CHECK(contains(explain(plans), "packet 4: barrier bit: it depends on packet 3;"));
}

TEST_CASE("packets with disjoint accesses lose their barrier bits, except the first and the last",
          "[fence_rules]") {
  const auto plans = Batch{}
                         .declared({writes(0, 100)})
                         .declared({writes(100, 200)})
                         .declared({writes(200, 300)})
                         .declared({writes(300, 400)})
                         .plan();
  CHECK(plans[0].flags.barrier == Barrier::on);
  CHECK(plans[1].flags.barrier == Barrier::off);
  CHECK(plans[2].flags.barrier == Barrier::off);
  CHECK(plans[2].barrier == BarrierReason::independent);
  CHECK(plans[3].flags.barrier == Barrier::on);
  CHECK(plans[3].barrier == BarrierReason::completion);
}

TEST_CASE("a conflict sets the barrier bit: write after write, read after write, write after read",
          "[fence_rules]") {
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

TEST_CASE("two readers, neighbours and empty ranges do not conflict", "[fence_rules]") {
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
          "[fence_rules]") {
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

TEST_CASE("a packet without declarations orders itself and its successor", "[fence_rules]") {
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

TEST_CASE("an observer outside the agent gets a system release, within the batch too",
          "[fence_rules]") {
  Batch batch = Batch{}.undeclared().undeclared().undeclared().undeclared();
  batch.packets[1].observer = Observer::system;
  batch.packets[2].observer = Observer::agent;
  const auto plans = batch.plan();
  CHECK(plans[1].flags.release == FenceScope::system);
  CHECK(plans[1].release == ScopeReason::observed);
  CHECK(plans[2].flags.release == FenceScope::agent);
}

TEST_CASE("inside a batch the caller's scopes and missing barrier bits are kept", "[fence_rules]") {
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
    "[fence_rules]") {
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
          "[fence_rules]") {
  Batch batch = Batch{}.undeclared().undeclared();
  batch.packets[0].explicit_fences = true;
  batch.packets[0].acquire = FenceScope::none;
  const auto plans = batch.plan();
  CHECK(plans[0].flags.acquire == FenceScope::agent);
  CHECK(plans[0].acquire == ScopeReason::stale_kernargs);
}

TEST_CASE("system_everywhere sets everything on every packet", "[fence_rules]") {
  const auto plans =
      Batch{}.undeclared().declared({}).undeclared().plan(FencePolicy::system_everywhere);
  for (const PacketPlan& plan : plans)
    check(plan, Barrier::on, FenceScope::system, FenceScope::system);
}

TEST_CASE("a caller's finished packet keeps its header", "[fence_rules]") {
  Batch batch = Batch{}.undeclared().undeclared().undeclared();
  batch.packets[0].is_finished = true;
  batch.packets[0].acquire = FenceScope::none;
  batch.packets[0].release = FenceScope::none;
  batch.packets[0].without_barrier = true;
  check(batch.plan()[0], Barrier::off, FenceScope::none, FenceScope::none);
}

TEST_CASE("a plan explains itself", "[fence_rules]") {
  const auto plans = Batch{}.declared({writes(0, 10)}).declared({reads(0, 10)}).undeclared().plan();
  CHECK(explain(plans[0], 0) ==
        "barrier bit: first of its batch, earlier batches may still run; acquire system: the host "
        "wrote "
        "kernargs and inputs; "
        "release agent: only packets of this agent read it");
  CHECK(contains(explain(plans[1], 1),
                 "barrier bit: it touches what packet 0 touches, and one of them writes"));
  CHECK(
      contains(explain(plans[2], 2), "release system: the host reads after the completion signal"));
}

TEST_CASE("after a raw packet the first dispatch acquires what the host wrote", "[fence_rules]") {
  Batch batch;
  batch.undeclared().undeclared().undeclared();
  batch.packets[0].is_finished = true;
  batch.packets[0].acquire = batch.packets[0].release = FenceScope::none;
  const auto plans = batch.plan();
  CHECK(plans[0].flags.acquire == FenceScope::none);
  CHECK(plans[1].flags.acquire == FenceScope::system);
  CHECK(plans[1].acquire == ScopeReason::host_wrote);
  CHECK(plans[2].flags.acquire == FenceScope::agent);

  batch.packets[1].explicit_fences = true;
  batch.packets[1].acquire = batch.packets[1].release = FenceScope::none;
  CHECK(batch.plan()[1].flags.acquire == FenceScope::agent);
  CHECK(batch.plan()[1].acquire == ScopeReason::stale_kernargs);
}
