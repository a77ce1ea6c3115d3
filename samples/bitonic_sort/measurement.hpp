// Measures rungs side by side.
//
// The rungs take turns: iteration i of every rung comes before iteration i + 1 of any, so that a machine that grows slower or busier during the
// run does so for all of them. There is no warm-up run: --iterations N means N sorts, and the median ignores a slow first one.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "samples/bitonic_sort/switches.hpp"
#include "engine/runtime/counters.hpp"

namespace uptempo::sort {

// What explains the time of one iteration.
struct CountInfo {
  const char* name;   // in JSON
  const char* title;  // in the table; '\n' breaks it
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

// Copies, by the way that they took; in JSON under "copies_by_path".
inline constexpr std::array<CountInfo, 4> kCopyPaths{{
    {"pinned", "pinned\ncopies", &Counters::copies_pinned},
    {"pinned_for_once", "pin-once\ncopies", &Counters::copies_pinned_for_once},
    {"staged", "staged\ncopies", &Counters::copies_staged},
    {"on_device", "device\ncopies", &Counters::copies_on_device},
}};

struct Iteration {
  double us = 0;        // copy to the device, all kernels, copy back
  Counters counts;      // of the same interval
  bool correct = true;  // as far as it was asked for
};

struct RungResult {
  Rung rung;
  std::vector<double> iteration_us;
  double us_per_iteration = 0;  // median
  double delta_us = 0;          // against the rung before; 0 for the first
  double speedup = 1;           // against the first rung
  Counters counts;              // of the last iteration: in steady state they are all alike
  uint32_t wrong_iterations = 0;
};

// `sort` runs one iteration with the given switches; `progress` is told what comes next, for example "iteration 3/20, fence".
std::vector<RungResult> measure(const std::vector<Rung>& rungs, uint32_t iterations,
                                const std::function<Iteration(const Switches&)>& sort,
                                const std::function<void(const std::string&)>& progress = {});

}  // namespace uptempo::sort
