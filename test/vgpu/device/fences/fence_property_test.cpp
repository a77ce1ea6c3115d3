// Thousands of small random programs, judged by the checker and by an independent oracle.
#include "fence_random_program.hpp"
#include "test/support/catch.hpp"

using namespace uptempo::test;

namespace {

using Verdict = RandomProgram::Verdict;

std::string to_text(const std::set<Verdict>& verdicts) {
  std::string text;
  for (const auto& [what, conflict, writer, reader] : verdicts)
    text += what + ' ' + conflict + ' ' + writer + "->" + reader + '\n';
  return text;
}

// Judges 10,000 programs. Returns the number of verdicts of each kind.
std::map<std::string, uint64_t> judge_programs(bool synchronising) {
  std::map<std::string, uint64_t> seen;
  for (const int steps : {6, 12, 25, 50}) {
    for (uint64_t seed = 0; seed < 2500; ++seed) {
      RandomProgram program(seed * 64 + static_cast<uint64_t>(steps),
                            {.synchronising = synchronising});
      program.run(steps);
      for (const Verdict& verdict : program.expected())
        ++seen[std::get<0>(verdict) + std::get<1>(verdict)];
      if (program.expected().empty()) ++seen["silent"];
      seen["meetings"] += program.meetings();
      std::set<Verdict> found = program.found();
      for (const Verdict& verdict : program.perhaps()) {
        ++seen["perhaps"];
        if (program.expected().count(verdict) == 0) found.erase(verdict);
      }
      if (found == program.expected()) continue;
      INFO("seed " << seed << ", " << steps << " steps\n" << program.text());
      REQUIRE(to_text(found) == to_text(program.expected()));
    }
  }
  return seen;
}

}  // namespace

TEST_CASE("the checker finds in random programs exactly what the specification forbids") {
  std::map<std::string, uint64_t> seen = judge_programs(false);
  // The programs cover all kinds of verdicts.
  for (const char* kind : {"unorderedRAW", "unorderedWAR", "unorderedWAW", "staleRAW", "staleWAW",
                           "unreleasedRAW", "silent"}) {
    CAPTURE(kind, seen[kind]);
    CHECK(seen[kind] > 100);
  }
}

TEST_CASE(
    "the same for programs that synchronise inside kernels, except for tasks that meet there") {
  std::map<std::string, uint64_t> seen = judge_programs(true);
  for (const char* kind : {"unorderedRAW", "unorderedWAR", "unorderedWAW", "staleRAW", "staleWAW",
                           "unreleasedRAW", "silent", "meetings", "perhaps"}) {
    CAPTURE(kind, seen[kind]);
    CHECK(seen[kind] > 100);
  }
}
