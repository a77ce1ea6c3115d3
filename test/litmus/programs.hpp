// Correct programs of several steps, and all their mutants with one mistake in fences or order.
#pragma once

#include <string>
#include <vector>

#include "tools/litmus/litmus.hpp"
#include "tools/litmus/rules.hpp"

namespace uptempo::litmus {

// The programs. Each is correct by the rules and warm: caches hold old values of the memory that
// its later steps read.
std::vector<Test> programs();

// A program without one of its fences or orderings.
struct Mutant {
  Test test;
  StepId step;  // index of the changed step
  std::string
      // "barrier bit off", "acquire system -> agent", "dependency on 3 dropped", "wait dropped"
      mutation;
};
// Mutants without each barrier bit, dependency and host wait, and with each acquire and release
// narrowed by one scope and by two.
std::vector<Mutant> mutants_of(const Test& program);

// For a mutant without hazards: the rule by which the removed fence or ordering was not needed.
std::string why_harmless(const Test& program, const Mutant& mutant, CacheRules rules);

}  // namespace uptempo::litmus
