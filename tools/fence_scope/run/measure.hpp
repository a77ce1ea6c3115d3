// The method by which configurations are timed side by side, whatever they are: in rounds, in each of which every configuration is run once gated and once ungated, in random order.
//
// Rounds of the warm-up are run, looked at for wrong results, and not timed. After that rounds go on until every median is known as well as was asked for, or a bound is reached. All configurations have
// the same number of rounds, so that values of one round may be divided by each other. To stop as soon as intervals are narrow makes them a little too narrow: the coverage that is given is that of a number of
// rounds fixed beforehand.
//
// Thread safety: pure, but for what it is given to call.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/fence_scope/run/bench.hpp"
#include "tools/fence_scope/report/report.hpp"

namespace uptempo::fence_scope {

struct Method {
  uint64_t seed = 1;  // of the order within rounds
  uint32_t warm_up = 1;
  uint32_t least_rounds = 6;  // with fewer no interval holds the median with 95 %
  uint32_t most_rounds = 40;  // the first bound; at least one
  double seconds = 60;        // the second one: no round begins later, but for the first that is timed
  double precision = 0.05;    // half of the interval of a median, relative to it
};

// Half of the interval, relative to the median; infinite where there are too few values for the confidence that is asked for (support::median_interval).
double uncertainty(const Times& times);

// Median, deviation and interval of values in the order in which they were taken; noisy unless they are as certain as asked for. Nothing of none.
Times times_of(std::vector<double> samples_us, double precision);

struct Measured {
  Times gated, ungated;               // of the host's clock
  std::optional<Times> device{};      // of gated runs: in others the device waits for the host
  uint32_t runs = 0, wrong_runs = 0;  // with those of the warm-up
};

// Seconds since whenever.
using Clock = std::function<double()>;
double steady_seconds();

// `run` is told which of `configurations`. A terminal sees which round it is. Throws what `run` throws.
std::vector<Measured> measure(size_t configurations, const Method& method,
                              const std::function<Bench::Run(size_t configuration, Release release)>& run,
                              const Clock& now = steady_seconds);

}  // namespace uptempo::fence_scope
