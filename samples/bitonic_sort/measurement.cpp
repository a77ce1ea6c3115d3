#include "samples/bitonic_sort/measurement.hpp"

#include <fmt/format.h>

#include "tools/support/interrupt.hpp"
#include "tools/support/statistics.hpp"

namespace uptempo::sort {

std::vector<RungResult> measure(const std::vector<Rung>& rungs, uint32_t iterations,
                                const std::function<Iteration(const Switches&)>& sort,
                                const Progress& progress) {
  const support::InterruptWatch watch;
  std::vector<RungResult> results;
  for (const Rung& rung : rungs)
    results.push_back({.rung = rung, .iteration_us = {}, .counts = {}});

  uint64_t done = 0;
  for (uint32_t i = 0; i < iterations && !(i > 0 && support::interrupted()); ++i) {
    for (RungResult& result : results) {
      if (progress)
        progress(fmt::format("iteration {}/{}, {}", i + 1, iterations, result.rung.name), done,
                 uint64_t{iterations} * results.size());
      ++done;
      const Iteration iteration = sort(result.rung.switches);
      result.iteration_us.push_back(iteration.us);
      result.counts = iteration.counts;
      if (!iteration.correct) ++result.wrong_iterations;
    }
  }

  for (RungResult& result : results) result.us_per_iteration = support::median(result.iteration_us);
  for (size_t i = 1; i < results.size(); ++i) {
    results[i].delta_us = results[i].us_per_iteration - results[i - 1].us_per_iteration;
    results[i].speedup = results[0].us_per_iteration / results[i].us_per_iteration;
  }
  return results;
}

}  // namespace uptempo::sort
