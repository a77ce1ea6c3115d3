// The programs of the mutation matrix, their mutants, and findings expressed as steps.
#include "test/litmus/programs.hpp"

#include <set>
#include <sstream>

#include "test/litmus/findings.hpp"
#include "test/support/catch.hpp"
#include "tools/litmus/rules.hpp"

using namespace uptempo;
using namespace uptempo::litmus;

TEST_CASE("every program of the matrix is correct by the rules") {
  for (const Test& program : programs()) {
    CAPTURE(program.name);
    CHECK(hazards_of(program, CacheRules::gfx9).empty());
    CHECK(hazards_of(program, CacheRules::gfx942).empty());
    CHECK(program.loads() > 0);
  }
}

TEST_CASE("a program's mutants differ from it in one step each, and from one another") {
  for (const Test& program : programs()) {
    CAPTURE(program.name);
    std::set<std::pair<StepId, std::string>> seen;
    for (const Mutant& mutant : mutants_of(program)) {
      CHECK(seen.insert({mutant.step, mutant.mutation}).second);
      for (StepId step = 0; step < program.steps.size(); ++step) {
        const Step &before = program.steps[step], &after = mutant.test.steps[step];
        CHECK((before.flags == after.flags && before.after == after.after) ==
              (step != mutant.step));
      }
    }
  }
}

TEST_CASE("each barrier bit, scope, dependency and wait has its mutants") {
  for (const Test& program : programs()) {
    size_t expected = 0;
    for (const Step& step : program.steps) {
      expected += step.after.size();
      if (step.is_packet())
        expected += static_cast<size_t>(step.flags.barrier) +
                    static_cast<size_t>(step.flags.acquire) +
                    static_cast<size_t>(step.flags.release);
    }
    CHECK(mutants_of(program).size() == expected);
  }
}

TEST_CASE("a mutant of each program is possible on each target") {
  for (const CacheRules rules : {CacheRules::gfx9, CacheRules::gfx942}) {
    for (const Test& program : programs()) {
      size_t possible = 0;
      for (const Mutant& mutant : mutants_of(program))
        possible += verdict_of(hazards_of(mutant.test, rules)) == Verdict::possible ? 1 : 0;
      CAPTURE(rules, program.name);
      CHECK(possible > 0);
    }
  }
}

namespace {

struct Reported {
  Test test{.name = "reported", .cells = {}, .steps = {}};
  StepId write, read, copy, load;
  Run run;

  Reported() {
    const CellId x = test.cell("x", CellKind::coarse_grained),
                 r = test.cell("r", CellKind::fine_grained);
    write = test.store(0, x, 1, {});
    read = test.copy(1, x, r, {});
    copy = test.engine_copy(x, r, {});
    load = test.host_load(r);
    run.placement = {{5}, {5}, {}, {}};
  }
  std::vector<Found> read_lines(const std::string& lines) const {
    std::istringstream in(lines);
    return read_findings(in, test, {run}, {3, 4});
  }
};

const char* const kRace =
    R"({"class":"unordered","writer":{"queue":3,"index":5,"kernel":"a"},"reader":{"queue":4,"index":5,"kernel":"b"},"target":"possible"})";
const char* const kStale =
    R"({"class":"stale","writer":{"queue":3,"index":5,"kernel":"a"},"reader":{"queue":6,"offset":0,"engine":"copy_linear"},"target":"harmless"})";
const char* const kHost =
    R"({"class":"unreleased","writer":{"queue":3,"index":5,"kernel":"a"},"reader":{"engine":"host"},"target":"possible"})";

}  // namespace

TEST_CASE("packets are identified by queue and index, copies and the host by their kind") {
  const Reported reported;
  const std::vector<Found> found =
      reported.read_lines(std::string(kRace) + '\n' + kStale + '\n' + kHost + '\n' +
                          R"({"summary":{"findings":3}})" + '\n');
  REQUIRE(found.size() == 3);
  CHECK(found[0].writers == std::vector<StepId>{reported.write});
  CHECK(found[0].readers == std::vector<StepId>{reported.read});
  CHECK_FALSE(found[0].ordered);
  CHECK(found[1].readers == std::vector<StepId>{reported.copy});
  CHECK(found[1].ordered);
  CHECK_FALSE(found[1].possible_on_target);
  CHECK(found[2].readers == std::vector<StepId>{reported.load});
}

TEST_CASE("a finding agrees only with a hazard of the same pair, complaint and verdict") {
  const Reported reported;
  const Found race = reported.read_lines(kRace).front();
  const Hazard same{reported.write, reported.read, Hazard::Conflict::read_after_write, false, true};
  CHECK(agrees(race, same));
  Hazard other = same;
  other.ordered = true;
  CHECK_FALSE(agrees(race, other));
  other = same;
  other.possible_on_target = false;
  CHECK_FALSE(agrees(race, other));
  other = same;
  other.later = reported.copy;
  CHECK_FALSE(agrees(race, other));
}

TEST_CASE("a finding on something else, or an invalid line, is an error that quotes it") {
  const Reported reported;
  const auto error_of = [&](const std::string& line) -> std::string {
    try {
      reported.read_lines(line);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return {};
  };
  CHECK(
      error_of(
          R"({"class":"stale","writer":{"queue":9,"index":5,"kernel":"a"},"reader":{"engine":"host"},"target":"possible"})")
          .find("\"queue\":9") != std::string::npos);
  CHECK(error_of("torn").find("torn") != std::string::npos);
  std::istringstream nothing("");
  CHECK_THROWS_AS(queues_of_first_finding(nothing), std::runtime_error);
  std::istringstream race(kRace);
  CHECK(queues_of_first_finding(race) == QueueNumbers{3, 4});
}
