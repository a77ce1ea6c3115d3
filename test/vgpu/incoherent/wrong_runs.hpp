// Runs a program that prints verdicts (verdict.hpp) with stale caches, seed by seed.
//
// Thread safety: none.
#pragma once

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "programs/run.hpp"
#include "test/support/catch.hpp"

namespace uptempo::vgpu {

// Returns the number of wrong runs for each way to pass a message, for the seeds 1 to `seeds`.
inline std::map<std::string, unsigned> wrong_runs(const std::vector<std::string>& machine,
                                                  const std::string& program, unsigned seeds) {
  std::map<std::string, unsigned> wrong;
  for (unsigned seed = 1; seed <= seeds; ++seed) {
    std::vector<std::string> arguments = machine;
    arguments.insert(arguments.end(), {"--incoherent", std::to_string(seed), "--", program});
    const CommandResult finished = launch(arguments);
    CAPTURE(seed, finished.err);
    REQUIRE(finished.exit_code == 0);
    std::istringstream lines(finished.out);
    for (std::string name, verdict; lines >> name >> verdict;) wrong[name] += verdict == "wrong";
  }
  return wrong;
}

}  // namespace uptempo::vgpu
