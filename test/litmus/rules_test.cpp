// The litmus tests' own rules, on programs whose verdict is known from the specification.
#include <algorithm>
#include <set>

#include "test/support/catch.hpp"
#include "tools/litmus/corpus.hpp"
#include "tools/litmus/report.hpp"
#include "tools/litmus/rules.hpp"

using namespace uptempo;
using namespace uptempo::litmus;
using aql::Barrier;
using aql::FenceScope;

namespace {

Verdict verdict(const Test& test) { return verdict_of(hazards_of(test)); }

Test named(const std::string& name) {
  for (const Test& test : corpus())
    if (test.name == name) return test;
  FAIL("the corpus has no test " + name);
  return {};
}

Verdict verdict(const std::string& name) { return verdict(named(name)); }

}  // namespace

TEST_CASE("names of the corpus are unique, and every test loads something") {
  std::set<std::string> names;
  for (const Test& test : corpus()) {
    CAPTURE(test.name);
    CHECK(names.insert(test.name).second);
    CHECK(test.loads() > 0);
    CHECK(sequential_outcome(test).size() == test.loads());
  }
  CHECK(names.size() > 300);
}

TEST_CASE("declared accesses are judged like those of the kernels that make them") {
  for (const Test& test : corpus()) {
    Test declared = test;
    for (Step& step : declared.steps) {
      step.declared = accesses_of(test, step);
      step.is_declared = true;
    }
    CAPTURE(test.name);
    CHECK(hazards_of(declared) == hazards_of(test));
    CHECK_THROWS_AS(sequential_outcome(declared), std::invalid_argument);
  }
}

TEST_CASE("wider scopes never make a test worse") {
  for (const CellKind memory :
       {CellKind::device_local, CellKind::coarse_grained, CellKind::fine_grained}) {
    const std::string shape = std::string("message-in-one-queue/") + name_of(memory);
    for (const char* acquire : {"none", "agent", "system"}) {
      const auto at = [&](const char* release) {
        return verdict(shape + "/release-" + release + "/acquire-" + acquire);
      };
      CHECK(at("none") >= at("agent"));
      CHECK(at("agent") >= at("system"));
    }
  }
}

TEST_CASE("agent scope suffices between kernels, and only a stale L1 makes its absence visible") {
  CHECK(verdict("message-in-one-queue/device/release-agent/acquire-agent") == Verdict::correct);
  CHECK(verdict("message-in-one-queue/device/release-none/acquire-agent") == Verdict::harmless);
  CHECK(verdict("message-in-one-queue/fine/release-agent/acquire-none") == Verdict::possible);
  CHECK(verdict("message-without-barrier-bit/fine") == Verdict::possible);
}

TEST_CASE("an L1 that has never held the line cannot be stale") {
  Test test{.name = "cold", .cells = {}, .steps = {}};
  const CellId x = test.cell("x", CellKind::device_local),
               r = test.cell("r", CellKind::fine_grained);
  test.store(0, x, 1, {Barrier::on, FenceScope::none, FenceScope::none});
  test.host_wait(test.copy(0, x, r, {Barrier::on, FenceScope::none, FenceScope::system}));
  test.host_load(r);
  CHECK(verdict(test) == Verdict::harmless);
}

TEST_CASE("a second write that may come first does not repair a lost write") {
  for (const Barrier barrier : {Barrier::off, Barrier::on}) {
    Test test{.name = "two writers", .cells = {}, .steps = {}};
    const CellId x = test.cell("x", CellKind::device_local);
    const StepId first = test.store(0, x, 1, {Barrier::on, FenceScope::none, FenceScope::none});
    const StepId second = test.store(0, x, 2, {barrier, FenceScope::none, FenceScope::system});
    test.host_wait(first);
    test.host_wait(second);
    test.host_load(x);
    const std::vector<Hazard> hazards = hazards_of(test);
    const bool lost = std::ranges::any_of(hazards, [&](const Hazard& hazard) {
      return hazard.earlier == first && hazard.later > second;
    });
    // The second packet's release may come too early for the first packet's write.
    CHECK(lost == (barrier == Barrier::off));
  }
}

TEST_CASE(
    "host accesses require system scope, except that fine-grained memory makes its absence "
    "harmless") {
  CHECK(verdict("kernel-to-host/coarse/release-agent") == Verdict::possible);
  CHECK(verdict("kernel-to-host/fine/release-none") == Verdict::harmless);
  CHECK(verdict("kernel-to-host/coarse/release-system") == Verdict::correct);
  CHECK(verdict("engine-to-kernel/device/acquire-agent") == Verdict::possible);
  CHECK(verdict("host-to-kernel/fine/acquire-agent") == Verdict::harmless);
}

TEST_CASE("the L2s of gfx942 need a release where gfx9's one L2 needs none, and forgive others") {
  struct Row {
    const char* test;
    Verdict gfx9, gfx942;
  };
  for (const Row& row :
       {Row{"message-in-one-queue/device/release-none/acquire-agent", Verdict::harmless,
            Verdict::possible},
        Row{"message-in-one-queue/device/release-agent/acquire-agent", Verdict::correct,
            Verdict::correct},
        Row{"message-in-one-queue/fine/release-none/acquire-agent", Verdict::harmless,
            Verdict::harmless},
        Row{"release-in-another-queue/device/release-none/acquire-agent", Verdict::harmless,
            Verdict::possible},
        Row{"kernel-to-host/coarse/release-none", Verdict::possible, Verdict::harmless},
        Row{"engine-to-kernel/device/acquire-agent", Verdict::possible, Verdict::harmless}}) {
    CAPTURE(row.test);
    const Test test = named(row.test);
    CHECK(verdict_of(hazards_of(test, CacheRules::gfx9)) == row.gfx9);
    CHECK(verdict_of(hazards_of(test, CacheRules::gfx942)) == row.gfx942);
  }
}

TEST_CASE("two kernels that write one cell need a release between them on gfx942") {
  for (const FenceScope release : {FenceScope::none, FenceScope::agent}) {
    for (const CellKind kind : {CellKind::device_local, CellKind::fine_grained}) {
      Test test{.name = "overwritten", .cells = {}, .steps = {}};
      const CellId x = test.cell("x", kind), r = test.cell("r", CellKind::fine_grained);
      const StepId first = test.store(0, x, 1, {Barrier::on, FenceScope::none, release});
      const StepId second = test.store(0, x, 2, {Barrier::on, FenceScope::none, FenceScope::agent});
      test.host_wait(test.copy(0, x, r, {Barrier::on, FenceScope::agent, FenceScope::system}));
      test.host_load(r);
      CHECK(hazards_of(test, CacheRules::gfx9).empty());
      const std::vector<Hazard> hazards = hazards_of(test, CacheRules::gfx942);
      const bool lost = release == FenceScope::none && kind == CellKind::device_local;
      CHECK(hazards.empty() == !lost);
      if (lost)
        CHECK(hazards.front() ==
              Hazard{first, second, Hazard::Conflict::write_after_write, true, true});
    }
  }
}

// Workgroup n of a queue is on XCD n % 8 from the queue's first. Up to 256 apart, its pairs are 512
// adjacent keys. From 2,048 apart on, the keys of a workgroup are two runs of 256, and key block b
// is on XCD b % 8 whatever the distance.
TEST_CASE("on gfx942 two passes of the sort need a release between them if keys change their XCD") {
  struct Row {
    uint32_t first_distance_log2, second_distance_log2;
    bool changes;
  };
  for (const Row& row : {Row{3, 2, false}, Row{8, 7, false}, Row{9, 8, true}, Row{10, 9, true},
                         Row{11, 10, true}, Row{12, 11, false}, Row{14, 13, false}}) {
    Test test{.name = "passes", .cells = {}, .steps = {}, .words = 1u << 15};
    const CellId keys = test.cell("keys", CellKind::device_local);
    const aql::HeaderFlags flags{Barrier::on, FenceScope::agent, FenceScope::none};
    test.sort_pass(0, keys, 14, 14 - row.first_distance_log2, flags);
    test.sort_pass(0, keys, 14, 14 - row.second_distance_log2, flags);
    CAPTURE(row.first_distance_log2, row.second_distance_log2);
    CHECK(verdict_of(hazards_of(test, CacheRules::gfx9)) == Verdict::harmless);
    CHECK(verdict_of(hazards_of(test, CacheRules::gfx942)) ==
          (row.changes ? Verdict::possible : Verdict::harmless));
  }
}

TEST_CASE("a target without rules is named by nothing") {
  CHECK(cache_rules_of("gfx90a") == CacheRules::gfx9);
  CHECK(cache_rules_of("gfx942") == CacheRules::gfx942);
  CHECK_FALSE(cache_rules_of("gfx1100").has_value());
}

TEST_CASE("a fence acts for the whole agent, whichever queue contains it") {
  CHECK(verdict("acquire-in-another-queue/device/release-agent/acquire-agent") == Verdict::correct);
  CHECK(verdict("release-in-another-queue/device/release-agent/acquire-agent") == Verdict::correct);
  CHECK(verdict("acquire-in-another-queue/device/release-agent/acquire-none") == Verdict::possible);
}

TEST_CASE("an acquire before the release that it needs has no effect") {
  CHECK(verdict("fences-in-the-middle/device/release-system/acquire-system") == Verdict::harmless);
  CHECK(verdict("acquire-in-the-middle/device/release-agent/acquire-agent") == Verdict::correct);
}

TEST_CASE(
    "a barrier bit, a dependency or a host wait orders steps; barrier-OR orders no single one of "
    "several") {
  CHECK(verdict("message-to-another-queue/fine/release-agent/acquire-agent") == Verdict::correct);
  CHECK(verdict("message-without-dependency/fine") == Verdict::possible);
  CHECK(verdict("overwritten-after-download/fine/release-none/acquire-none") == Verdict::correct);
  CHECK(verdict("overwritten-during-download/fine") == Verdict::possible);
  CHECK(verdict("either-of-two/fine") == Verdict::possible);
  CHECK(verdict("kernarg-reuse-without-wait/fine") == Verdict::possible);
}

TEST_CASE("a block that held other arguments is stale in the scalar L1 until an acquire") {
  CHECK(verdict("kernarg-reuse/fine/acquire-none") == Verdict::possible);
  CHECK(verdict("kernarg-reuse/fine/acquire-agent") == Verdict::harmless);
  CHECK(verdict("kernarg-reuse/fine/acquire-system") == Verdict::correct);
}

TEST_CASE("outcomes are counted word by word, and a value that no step wrote is never allowed") {
  Test test{.name = "count", .cells = {}, .steps = {}};
  const CellId x = test.cell("x", CellKind::fine_grained);
  test.host_wait(test.store(0, x, 7, {}));
  test.host_load(x);
  Counter counter(test);
  std::vector<uint32_t> words(kCellWords, 7);
  words[0] = 0;
  words[1] = 8;
  counter.add({words});
  REQUIRE(counter.entries().size() == 3);
  const Counter::Entry right = counter.entries().at("x=7"), old = counter.entries().at("x=0"),
                       nowhere = counter.entries().at("x=8");
  CHECK(right.count == kCellWords - 2);
  CHECK(right.sequential);
  CHECK(counter.others() == 2);
  for (const bool known : {false, true}) {
    CHECK_FALSE(is_forbidden(right, Verdict::correct, known));
    CHECK(is_forbidden(old, Verdict::correct, known));
    CHECK(is_forbidden(old, Verdict::harmless, known) == known);
    CHECK_FALSE(is_forbidden(old, Verdict::possible, known));
    CHECK(is_forbidden(nowhere, Verdict::possible, known));
  }
}

TEST_CASE("a forbidden outcome fails the report and is named in the table") {
  Report report;
  report.target = "gfx90a";
  report.results.push_back({"shape/coarse",
                            Verdict::correct,
                            {{"r=0", {.count = 3}}, {"r=1", {.count = 5, .sequential = true}}}});
  CHECK_FALSE(report.passed());
  CHECK(table(report).find("FORBIDDEN  shape/coarse  r=0  3 times\n") != std::string::npos);
  report.results.front().verdict = Verdict::possible;
  CHECK(report.passed());
}

TEST_CASE("a test that loads nothing is refused") {
  CHECK_THROWS_AS(Counter(Test{.name = "silent", .cells = {}, .steps = {}}), std::invalid_argument);
}
