// Times configurations side by side in rounds. Each round runs every configuration once gated and
// once ungated, in random order.
//
// Warm-up rounds are checked for wrong results but not timed. Rounds then continue until every
// median is known with the requested precision, or a bound is reached. All configurations have the
// same number of rounds, so that values of one round may be divided by each other. SIGINT, and the
// end of the run's seconds, end a round between two runs. Times of such a round are dropped, unless
// it is the first: then some configurations have a time and others have none. Stopping as soon
// as intervals are narrow makes them slightly too narrow: the reported coverage is that of a number
// of rounds fixed in advance.
//
// Thread safety: pure, except the passed functions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/fence_scope/report/report.hpp"
#include "tools/fence_scope/run/bench.hpp"

namespace uptempo::fence_scope {

struct Method {
  uint64_t seed = 1;  // seed of the order within rounds
  uint32_t warm_up = 1;
  uint32_t least_rounds = 6;  // with fewer rounds no interval holds the median with 95 %
  uint32_t most_rounds = 40;  // first bound; at least one
  double seconds = 60;        // second bound: no round begins later, except the first timed one
  // Seconds of the whole run, from `begun` (a moment of the clock). They replace `seconds`.
  std::optional<double> run_seconds{};
  double begun = 0;
  double precision = 0.05;  // requested half width of a median's interval, relative to the median
};

// Seconds until this share of the run's seconds is over, at least 0; no value without such a bound.
// The run's parts have these shares: reference runs of a sweep's further sequences, evidence of
// other processes, rounds, everything.
inline constexpr double kSetUpShare = 0.25, kEvidenceShare = 0.5, kRoundsShare = 0.9,
                        kWholeShare = 1;
std::optional<double> seconds_left(const Method& method, double share, double now);

// Half width of the interval, relative to the median; infinite if there are too few values for the
// requested confidence (support::median_interval).
double uncertainty(const Times& times);

// Median, deviation and interval of values in measuring order; noisy unless they have the
// precision. Default values for no samples.
Times times_of(std::vector<double> samples_us, double precision);

struct Measured {
  Times gated, ungated;               // of the host's clock
  std::optional<Times> device{};      // gated runs; in ungated ones the device waits for the host
  uint32_t runs = 0, wrong_runs = 0;  // including the warm-up
};

// Seconds since an arbitrary moment.
using Clock = std::function<double()>;
double steady_seconds();

// `run` receives the index of the configuration. Shows the round on a terminal. Throws what `run`
// throws.
std::vector<Measured> measure(
    size_t configurations, const Method& method,
    const std::function<Bench::Run(size_t configuration, Release release)>& run,
    const Clock& now = steady_seconds);

}  // namespace uptempo::fence_scope
