// Checks the planner of fences (engine/fences/fence_planner.hpp) against the rules of litmus tests,
// which share no code with it: its plans have no hazards; those with fewer system fences or barrier
// bits have some, and so have its plans without any one of their fences. Plans for one L2
// (Overwrites::ordered) are checked by the caches of gfx9. Plans for every target
// (Overwrites::handed_over) hand over what they overwrite: they are checked by the caches of
// gfx942, and as if every writer also read what it writes.
#include <algorithm>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <uptempo/fences/fence_planner.hpp>
#include "test/support/catch.hpp"
#include "tools/litmus/litmus.hpp"
#include "tools/litmus/rules.hpp"

using namespace uptempo;
using uptempo::detail::AccessRange;
using uptempo::detail::Declarations;
using uptempo::detail::Overwrites;
using namespace uptempo::litmus;
using aql::Barrier;
using aql::FenceScope;
using aql::HeaderFlags;

namespace {

// Host stores, dispatches in one queue, a wait for the last one, host loads.
struct Program {
  Test test{.name = "planned", .cells = {}, .steps = {}};
  StepId first = 0;
  size_t packets = 0;

  std::span<Step> dispatches() { return std::span(test.steps).subspan(first, packets); }
  void give(std::span<const HeaderFlags> flags) {
    for (size_t i = 0; i < packets; ++i) test.steps[first + i].flags = flags[i];
  }
};

Program random_program(std::mt19937_64& random, size_t packets) {
  Program program{.packets = packets};
  Test& test = program.test;
  const auto cells = static_cast<CellId>(2 + random() % 4);
  for (CellId cell = 0; cell < cells; ++cell) {
    const auto kind = static_cast<CellKind>(random() % 3);
    test.cell("c" + std::to_string(cell), kind);
  }
  // The host cannot access device-local memory; its content was acquired before.
  const auto is_of_host = [&](CellId cell) {
    return test.cells[cell].kind != CellKind::device_local;
  };
  for (CellId cell = 0; cell < cells; ++cell)
    if (is_of_host(cell)) test.host_store(cell, 7);
  program.first = test.steps.size();
  for (size_t i = 0; i < packets; ++i) {
    const CellId to = random() % cells, from = (to + 1 + random() % (cells - 1)) % cells;
    const auto value = static_cast<uint32_t>(random() % 100);
    switch (random() % 3) {
      case 0:
        test.store(0, to, value, {});
        break;
      case 1:
        test.copy(0, from, to, {});
        break;
      default:
        test.add(0, to, value, {});
    }
  }
  test.host_wait(program.first + packets - 1);
  for (CellId cell = 0; cell < cells; ++cell)
    if (is_of_host(cell)) test.host_load(cell);
  return program;
}

// The address range of a cell is a page of its own; nothing dereferences it.
std::vector<HeaderFlags> planned(Program& program, detail::FencePlanner& planner) {
  std::vector<Declarations> intents(program.packets);
  std::vector<AccessRange> accesses;
  for (size_t i = 0; i < program.packets; ++i)
    for (const Access& access : accesses_of(program.test, program.dispatches()[i]))
      intents[i].declare(accesses, reinterpret_cast<const void*>(4096 * (access.cell + 1)), 4096,
                         access.write);
  std::vector<PacketPlan> plans(program.packets);
  planner.plan(intents, accesses, plans);
  std::vector<HeaderFlags> flags;
  for (const PacketPlan& plan : plans) flags.push_back(plan.flags);
  return flags;
}

FenceCost cost_of_flags(std::span<const HeaderFlags> flags) {
  std::vector<PacketPlan> plans;
  for (const HeaderFlags& one : flags) plans.push_back({.flags = one});
  return cost_of(plans);
}

// A program's dispatches, each of which also reads what it writes.
Program with_reads(Program program) {
  for (Step& step : program.dispatches()) {
    step.declared = accesses_of(program.test, step);
    step.is_declared = true;
    for (size_t i = 0, count = step.declared.size(); i < count; ++i)
      if (step.declared[i].write)
        step.declared.push_back({step.declared[i].cell, false, Path::vector});
  }
  return program;
}

std::string text_of(Program& program) {
  std::string text;
  for (const Step& step : program.dispatches())
    text += name_of(step) + ' ' + std::to_string(step.from) + ' ' + std::to_string(step.to) + "; ";
  return text;
}

// Calls `f` for the flags without any one of their fences, and for every flag combination with
// fewer barrier bits and with system fences only at the two ends.
template <class F>
void for_each_cheaper(std::span<const HeaderFlags> planned, F&& f) {
  const size_t packets = planned.size();
  const FenceCost cost = cost_of_flags(planned);
  for (size_t at = 0; at < packets; ++at) {
    for (FenceScope HeaderFlags::*const scope : {&HeaderFlags::acquire, &HeaderFlags::release}) {
      std::vector<HeaderFlags> less(planned.begin(), planned.end());
      if (std::exchange(less[at].*scope, FenceScope::none) == FenceScope::agent) f(less);
    }
  }
  std::vector<HeaderFlags> flags(packets);
  for (uint32_t bits = 0; bits < 1u << 3 * packets; ++bits) {
    // both ends need a barrier bit, the first an acquire, the last a release
    if ((bits & 3) != 3 || (bits >> 3 * (packets - 1) & 5) != 5) continue;
    for (size_t i = 0; i < packets; ++i) {
      const uint32_t of = bits >> 3 * i;
      flags[i] = {(of & 1) != 0 ? Barrier::on : Barrier::off,
                  (of & 2) != 0 ? FenceScope::agent : FenceScope::none,
                  (of & 4) != 0 ? FenceScope::agent : FenceScope::none};
    }
    flags.front().acquire = FenceScope::system;
    flags.back().release = FenceScope::system;
    if (cost_of_flags(flags).barrier_bits < cost.barrier_bits) f(flags);
  }
}

struct Length {
  size_t packets;
  int programs;
};

void compare_with_all(Overwrites overwrites, uint64_t seed, std::initializer_list<Length> lengths) {
  std::mt19937_64 random(seed);
  detail::FencePlanner planner(overwrites);
  for (const auto& [packets, programs] : lengths) {
    for (int i = 0; i < programs; ++i) {
      Program program = random_program(random, packets);
      CAPTURE(overwrites, seed, packets, i, text_of(program));
      const std::vector<HeaderFlags> flags = planned(program, planner);
      if (overwrites == Overwrites::handed_over) program = with_reads(std::move(program));
      program.give(flags);
      REQUIRE(hazards_of(program.test).empty());
      size_t without_hazards = 0;
      REQUIRE(cost_of_flags(flags).system_fences == 2);
      for_each_cheaper(flags, [&](std::span<const HeaderFlags> cheaper) {
        program.give(cheaper);
        without_hazards += hazards_of(program.test).empty();
      });
      REQUIRE(without_hazards == 0);
    }
  }
}

// Returns how many of 400 random programs have hazards with the planner's flags.
size_t programs_with_hazards(Overwrites overwrites, CacheRules rules) {
  std::mt19937_64 random(1);
  detail::FencePlanner planner(overwrites);
  size_t found = 0;
  for (int i = 0; i < 400; ++i) {
    Program program = random_program(random, 1 + random() % 40);
    program.give(planned(program, planner));
    found += !hazards_of(program.test, rules).empty();
  }
  return found;
}

}  // namespace

TEST_CASE("a plan has no hazards, whatever its length", "[planned]") {
  CHECK(programs_with_hazards(Overwrites::ordered, CacheRules::gfx9) == 0);
  CHECK(programs_with_hazards(Overwrites::handed_over, CacheRules::gfx9) == 0);
  CHECK(programs_with_hazards(Overwrites::handed_over, CacheRules::gfx942) == 0);
}

TEST_CASE("the L2s of gfx942 need more than order where a dispatch overwrites another's results",
          "[planned]") {
  CHECK(programs_with_hazards(Overwrites::ordered, CacheRules::gfx942) > 0);
}

TEST_CASE("every plan cheaper than the planner's has hazards, for up to six dispatches",
          "[planned]") {
  for (const Overwrites overwrites : {Overwrites::ordered, Overwrites::handed_over})
    compare_with_all(overwrites, 1, {{1, 10}, {2, 60}, {3, 200}, {4, 100}, {5, 60}, {6, 30}});
}

TEST_CASE(
    "every plan cheaper than the planner's has hazards, for up to six dispatches: many programs",
    "[.long]") {
  for (const Overwrites overwrites : {Overwrites::ordered, Overwrites::handed_over})
    for (uint64_t seed = 2; seed < 12; ++seed)
      compare_with_all(overwrites, seed, {{3, 200}, {4, 200}, {5, 100}, {6, 40}});
}
