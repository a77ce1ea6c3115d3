// Measures rungs side by side.
//
// Iteration i of every rung precedes iteration i + 1 of any rung, so that a drift of the machine's
// speed affects all rungs alike. There is no warm-up run: --iterations N means N sorts, and the
// median ignores a slow first one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <uptempo/runtime/counters.hpp>
#include "switches.hpp"

namespace uptempo::sort {

struct Iteration {
  double us = 0;        // copy to the device, all kernels, copy back
  Counters counts;      // of the same interval
  bool correct = true;  // stays true if results are not compared
};

struct RungResult {
  Rung rung;
  std::vector<double> iteration_us;
  double us_per_iteration = 0;  // median
  double delta_us = 0;          // change from the previous rung; 0 for the first
  double speedup = 1;           // relative to the first rung
  Counters counts;              // of the last iteration: in the steady state all are equal
  uint32_t wrong_iterations = 0;
};

// Receives a sort that has ended, for example "iteration 3/20, fence", and how many of all are
// done. Returns whether to go on: if not, the measurement ends as soon as every rung has had this
// iteration.
using Progress = std::function<bool(const std::string& what, uint64_t done, uint64_t of)>;

// `sort` runs one iteration with the given switches.
std::vector<RungResult> measure(const std::vector<Rung>& rungs, uint32_t iterations,
                                const std::function<Iteration(const Switches&)>& sort,
                                const Progress& progress = {});

}  // namespace uptempo::sort
