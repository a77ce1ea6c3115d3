#include "measurement.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace uptempo::sort {
namespace {

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

std::vector<RungResult> measure(const std::vector<Rung>& rungs, uint32_t iterations,
                                const std::function<Iteration(const Switches&)>& sort,
                                const Progress& progress) {
  std::vector<RungResult> results;
  for (const Rung& rung : rungs)
    results.push_back({.rung = rung, .iteration_us = {}, .counts = {}});

  uint64_t done = 0;
  bool goes_on = true;
  for (uint32_t i = 0; i < iterations && goes_on; ++i) {
    for (RungResult& result : results) {
      const Iteration iteration = sort(result.rung.switches);
      result.iteration_us.push_back(iteration.us);
      result.counts = iteration.counts;
      if (!iteration.correct) ++result.wrong_iterations;
      ++done;
      if (progress)
        goes_on &= progress(fmt::format("iteration {}/{}, {}", i + 1, iterations, result.rung.name),
                            done, uint64_t{iterations} * results.size());
    }
  }

  for (RungResult& result : results) result.us_per_iteration = median(result.iteration_us);
  for (size_t i = 1; i < results.size(); ++i) {
    results[i].delta_us = results[i].us_per_iteration - results[i - 1].us_per_iteration;
    results[i].speedup = results[0].us_per_iteration / results[i].us_per_iteration;
  }
  return results;
}

}  // namespace uptempo::sort
