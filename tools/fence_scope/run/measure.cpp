#include "tools/fence_scope/run/measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "tools/support/program.hpp"
#include "tools/support/rounds.hpp"
#include "tools/support/statistics.hpp"

namespace uptempo::fence_scope {
namespace {

constexpr double kConfidence = 0.95;

struct Samples {
  std::vector<double> gated, ungated, device;
};

bool certain(const std::vector<double>& samples, double precision) {
  return uncertainty(times_of(samples, precision)) <= precision;
}

bool certain(const Samples& samples, double precision) {
  return certain(samples.gated, precision) && certain(samples.ungated, precision) &&
         (samples.device.empty() || certain(samples.device, precision));
}

}  // namespace

double uncertainty(const Times& times) {
  if (times.coverage < kConfidence || times.median_us <= 0)
    return std::numeric_limits<double>::infinity();
  return (times.high_us - times.low_us) / 2 / times.median_us;
}

Times times_of(std::vector<double> samples_us, double precision) {
  Times times;
  if (samples_us.empty()) return times;
  const support::MedianInterval interval = support::median_interval(samples_us, kConfidence);
  times.median_us = interval.median;
  times.mad_us = support::median_absolute_deviation(samples_us);
  times.low_us = interval.low;
  times.high_us = interval.high;
  times.coverage = interval.coverage;
  times.noisy = uncertainty(times) > precision;
  times.samples_us = std::move(samples_us);
  return times;
}

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<Measured> measure(size_t configurations, const Method& method,
                              const std::function<Bench::Run(size_t, Release)>& run,
                              const Clock& now) {
  std::vector<Samples> samples(configurations);
  std::vector<Measured> measured(configurations);
  const double start = now();
  bool timed = false;
  support::Progress progress;

  const auto take = [&](size_t turn) {
    const size_t which = turn / 2;
    const Release release = turn % 2 == 0 ? Release::gated : Release::ungated;
    const Bench::Run result = run(which, release);
    ++measured[which].runs;
    if (!result.correct) ++measured[which].wrong_runs;
    if (!timed) return;
    (release == Release::gated ? samples[which].gated : samples[which].ungated)
        .push_back(result.us);
    if (release == Release::gated && result.device_us)
      samples[which].device.push_back(*result.device_us);
  };
  const auto enough = [&](uint32_t rounds) {
    const uint32_t taken = rounds < method.warm_up ? 0 : rounds - method.warm_up;
    timed = rounds >= method.warm_up;
    if (taken > 0) {
      const auto is_certain = [&](const Samples& of) { return certain(of, method.precision); };
      if (taken >= method.most_rounds || now() - start >= method.seconds ||
          (taken >= method.least_rounds && std::ranges::all_of(samples, is_certain)))
        return true;
    }
    progress.show(timed ? fmt::format("round {} of at most {}", taken + 1, method.most_rounds)
                        : fmt::format("warm-up {} of {}", rounds + 1, method.warm_up));
    return false;
  };
  support::take_turns(method.seed, 2 * configurations, take, enough);

  for (size_t i = 0; i < configurations; ++i) {
    measured[i].gated = times_of(std::move(samples[i].gated), method.precision);
    measured[i].ungated = times_of(std::move(samples[i].ungated), method.precision);
    if (!samples[i].device.empty())
      measured[i].device = times_of(std::move(samples[i].device), method.precision);
  }
  return measured;
}

}  // namespace uptempo::fence_scope
