// Measures rungs side by side.
//
// Iteration i of every rung precedes iteration i + 1 of any rung, so that a drift of the machine's
// speed affects all rungs alike. There is no warm-up run: --iterations N means N sorts, and the
// median ignores a slow first one.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <uptempo/runtime/counters.hpp>
#include "samples/bitonic_sort/switches.hpp"

namespace uptempo::sort {

// A count that explains the time of an iteration.
struct CountInfo {
  const char* name;   // JSON key
  const char* title;  // table title; '\n' breaks it
  uint64_t Counters::*member;
};

inline constexpr std::array<CountInfo, 7> kDispatchCounts{{
    {"signals_created", "signals\ncreated", &Counters::signals_created},
    {"kernarg_allocations", "kernarg\nallocs", &Counters::kernarg_allocations},
    {"host_waits", "host\nwaits", &Counters::host_waits},
    {"doorbells", "door-\nbells", &Counters::doorbells},
    {"system_acquires", "system\nacq.", &Counters::system_acquires},
    {"system_releases", "system\nrel.", &Counters::system_releases},
    {"completion_signals", "completion\nsignals", &Counters::completion_signals},
}};

inline constexpr std::array<CountInfo, 3> kCopyCounts{{
    {"bytes_staged", "bytes\nstaged", &Counters::bytes_staged},
    {"pins", "pins", &Counters::pins},
    {"unpins", "unpins", &Counters::unpins},
}};

// Copies by their path; in JSON under "copies_by_path".
inline constexpr std::array<CountInfo, 4> kCopyPaths{{
    {"pinned", "pinned\ncopies", &Counters::copies_pinned},
    {"pinned_for_once", "pin-once\ncopies", &Counters::copies_pinned_for_once},
    {"staged", "staged\ncopies", &Counters::copies_staged},
    {"on_device", "device\ncopies", &Counters::copies_on_device},
}};

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

// Receives the next sort, for example "iteration 3/20, fence", and how many of all are done.
using Progress = std::function<void(const std::string& what, uint64_t done, uint64_t of)>;

// `sort` runs one iteration with the given switches. SIGINT ends the measurement after an iteration
// of all rungs.
std::vector<RungResult> measure(const std::vector<Rung>& rungs, uint32_t iterations,
                                const std::function<Iteration(const Switches&)>& sort,
                                const Progress& progress = {});

}  // namespace uptempo::sort
