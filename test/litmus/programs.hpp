// Correct programs of several steps, and everything that one mistake in their fences or their order makes of them.
#pragma once

#include <string>
#include <vector>

#include "tools/litmus/litmus.hpp"

namespace uptempo::litmus {

// Each is correct by the rules, and warm: its caches hold old values of what its later steps read.
std::vector<Test> programs();

// One thing taken away from a program.
struct Mutant {
  Test test;
  StepId step;  // of the program that was changed
  std::string
      mutation;  // "barrier bit off", "acquire system -> agent", "dependency on 3 dropped", "wait dropped"
};
// Every barrier bit, every acquire and release narrowed by one scope and by two, every dependency, every wait of the host.
std::vector<Mutant> mutants_of(const Test& program);

// Why a mutant without hazards has none: the rule by which what was taken away was not needed.
std::string why_harmless(const Test& program, const Mutant& mutant);

}  // namespace uptempo::litmus
