#include "test/litmus/programs.hpp"

#include <algorithm>

#include <uptempo/aql/text.hpp>
#include <uptempo/fences/fence_plan.hpp>
#include "tools/litmus/rules.hpp"

namespace uptempo::litmus {
namespace {

using aql::Barrier;
using aql::FenceScope;
using aql::HeaderFlags;

constexpr HeaderFlags kFirst{Barrier::on, FenceScope::system, FenceScope::agent};
constexpr HeaderFlags kInner{Barrier::on, FenceScope::agent, FenceScope::agent};
constexpr HeaderFlags kLast{Barrier::on, FenceScope::agent, FenceScope::system};
constexpr HeaderFlags kOnly{Barrier::on, FenceScope::system, FenceScope::system};
constexpr HeaderFlags kWait{Barrier::off, FenceScope::none, FenceScope::none};

// The engine's fence plan for a batch of `count` dispatches that all read and write one buffer.
std::vector<HeaderFlags> planned_flags(size_t count) {
  FencePlan plan;
  char buffer = 0;
  for (size_t i = 0; i < count; ++i) plan.dispatch().reads(&buffer, 1).writes(&buffer, 1);
  std::vector<HeaderFlags> flags;
  for (const PacketPlan& one : plan.packets()) flags.push_back(one.flags);
  return flags;
}

// The sample's sort of 32,768 keys between upload and download: 120 dispatches of its kernel with
// the engine's fences. An earlier dispatch has read the keys' buffer, so L2 holds it, as in a
// program that sorts repeatedly.
Test sort() {
  constexpr uint32_t stages = 15;
  Test test{.name = "sort", .cells = {}, .steps = {}, .words = 1u << stages};
  const CellId keys = test.cell("keys", CellKind::device_local, 7);
  const CellId before = test.cell("before", CellKind::fine_grained);
  const CellId input = test.cell("input", CellKind::fine_grained);
  test.cells[input].unsorted = true;
  const CellId output = test.cell("output", CellKind::fine_grained);
  test.host_wait(test.copy(0, keys, before, kOnly));
  test.host_load(before);
  test.host_wait(test.engine_copy(input, keys, {}));
  const std::vector<HeaderFlags> flags = planned_flags(stages * (stages + 1) / 2);
  auto next = flags.begin();
  StepId last = 0;
  for (uint32_t stage = 0; stage < stages; ++stage)
    for (uint32_t pass = 0; pass <= stage; ++pass)
      last = test.sort_pass(0, keys, stage, pass, *next++);
  test.host_wait(test.engine_copy(keys, output, {last}));
  test.host_load(output);
  return test;
}

// Values pass from cell to cell in one queue, through memory of every kind; the second pass
// overwrites data that the caches hold from the first.
Test chain() {
  Test test{.name = "chain", .cells = {}, .steps = {}};
  const CellId a = test.cell("a", CellKind::coarse_grained),
               b = test.cell("b", CellKind::fine_grained),
               c = test.cell("c", CellKind::device_local),
               d = test.cell("d", CellKind::coarse_grained);
  test.cells[a].initial = 10;
  for (const uint32_t value : {10u, 20u}) {
    if (value == 20) test.host_store(a, value);
    test.copy(0, a, b, kFirst);
    test.add(0, b, 1, kInner);
    test.copy(0, b, c, kInner);
    test.add(0, c, 1, kInner);
    test.host_wait(test.copy(0, c, d, kLast));
    test.host_load(d);
  }
  return test;
}

// One queue stores, the other reads, each waiting for the other, two rounds.
Test producer_consumer() {
  Test test{.name = "producer-consumer", .cells = {}, .steps = {}};
  const CellId x = test.cell("x", CellKind::device_local);
  const CellId r[] = {test.cell("r0", CellKind::fine_grained),
                      test.cell("r1", CellKind::fine_grained)};
  StepId produced = test.store(0, x, 1, kFirst);
  test.barrier(1, {produced}, kWait);
  const StepId consumed = test.copy(1, x, r[0], kOnly);
  test.barrier(0, {consumed}, kWait);
  produced = test.store(0, x, 2, kInner);
  test.barrier(1, {produced}, kWait);
  test.host_wait(test.copy(1, x, r[1], kLast));
  test.host_load(r[0]);
  test.host_load(r[1]);
  return test;
}

// Upload, kernel, download, two rounds over the same device memory.
Test copy_kernel_copy() {
  Test test{.name = "copy-kernel-copy", .cells = {}, .steps = {}};
  const CellId input = test.cell("input", CellKind::coarse_grained);
  const CellId x = test.cell("x", CellKind::device_local);
  const CellId output = test.cell("output", CellKind::coarse_grained);
  test.cells[input].initial = 10;
  for (const uint32_t value : {10u, 20u}) {
    if (value == 20) test.host_store(input, value);
    const StepId upload = test.engine_copy(input, x, {});
    test.barrier(0, {upload}, kWait);
    const StepId kernel = test.add(0, x, 1, kOnly);
    test.host_wait(test.engine_copy(x, output, {kernel}));
    test.host_load(output);
  }
  return test;
}

// One kernarg block for three dispatches.
Test kernarg_reuse() {
  Test test{.name = "kernarg-reuse", .cells = {}, .steps = {}};
  const CellId x = test.cell("x", CellKind::fine_grained),
               y = test.cell("y", CellKind::fine_grained),
               z = test.cell("z", CellKind::fine_grained);
  test.host_wait(test.store_with_first_use(0, 0, x, 1, kOnly));
  test.host_wait(test.store_with_shared_block(0, 0, y, 2, kOnly));
  test.host_wait(test.store_with_shared_block(0, 0, z, 3, kOnly));
  // the last one first, since its wait may be missing
  for (const CellId cell : {z, y, x}) test.host_load(cell);
  return test;
}

// The host asks and the device answers, by completion signals, in coarse-grained memory.
Test host_polling() {
  Test test{.name = "host-polling", .cells = {}, .steps = {}};
  const CellId question = test.cell("question", CellKind::coarse_grained),
               answer = test.cell("answer", CellKind::coarse_grained);
  test.cells[question].initial = 10;
  for (const uint32_t value : {10u, 20u}) {
    if (value == 20) test.host_store(question, value);
    test.copy(0, question, answer, kFirst);
    test.host_wait(test.add(0, answer, 1, kLast));
    test.host_load(answer);
  }
  return test;
}

std::string narrowing(const char* fence, FenceScope from, FenceScope to) {
  return std::string(fence)
      .append(" ")
      .append(aql::scope_name(from))
      .append(" -> ")
      .append(aql::scope_name(to));
}

}  // namespace

std::vector<Test> programs() {
  return {sort(),          chain(),       producer_consumer(), copy_kernel_copy(),
          kernarg_reuse(), host_polling()};
}

std::vector<Mutant> mutants_of(const Test& program) {
  std::vector<Mutant> mutants;
  const auto with = [&](StepId number, std::string mutation, const auto& change) {
    Mutant& mutant = mutants.emplace_back(Mutant{program, number, std::move(mutation)});
    change(mutant.test.steps[number]);
  };
  for (StepId number = 0; number < program.steps.size(); ++number) {
    const Step& step = program.steps[number];
    if (step.is_packet()) {
      if (step.flags.barrier == Barrier::on)
        with(number, "barrier bit off",
             [](Step& changed) { changed.flags.barrier = Barrier::off; });
      for (int to = static_cast<int>(step.flags.acquire) - 1; to >= 0; --to)
        with(number, narrowing("acquire", step.flags.acquire, static_cast<FenceScope>(to)),
             [&](Step& changed) { changed.flags.acquire = static_cast<FenceScope>(to); });
      for (int to = static_cast<int>(step.flags.release) - 1; to >= 0; --to)
        with(number, narrowing("release", step.flags.release, static_cast<FenceScope>(to)),
             [&](Step& changed) { changed.flags.release = static_cast<FenceScope>(to); });
    }
    for (size_t dependency = 0; dependency < step.after.size(); ++dependency)
      with(number,
           step.kind == Step::Kind::host_wait
               ? std::string("wait dropped")
               : "dependency on " + std::to_string(step.after[dependency]) + " dropped",
           [&](Step& changed) {
             changed.after.erase(changed.after.begin() + static_cast<ptrdiff_t>(dependency));
           });
  }
  return mutants;
}

std::string why_harmless(const Test& program, const Mutant& mutant, CacheRules rules) {
  const Step& before = program.steps[mutant.step];
  const Step& after = mutant.test.steps[mutant.step];
  // Narrows the fence in every packet. If there are still no hazards, no step needs it; otherwise
  // other packets provide it.
  const auto without = [&](const auto& change) {
    Test bare = program;
    for (Step& step : bare.steps)
      if (step.is_packet()) change(step);
    return hazards_of(bare, rules).empty();
  };
  if (before.flags.acquire != after.flags.acquire) {
    const FenceScope scope = after.flags.acquire;
    return without([&](Step& step) { step.flags.acquire = std::min(step.flags.acquire, scope); })
               ? "no reader needs a wider acquire"
               : "other acquires follow the earlier writes before they are read";
  }
  if (before.flags.release != after.flags.release) {
    const FenceScope scope = after.flags.release;
    return without([&](Step& step) { step.flags.release = std::min(step.flags.release, scope); })
               ? "no reader needs a wider release"
               : "later releases cover the earlier writes before they are read";
  }
  return "other barrier bits, dependencies or waits keep every conflicting pair in order";
}

}  // namespace uptempo::litmus
