#include "tools/fence_scope/run/measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "tools/support/interrupt.hpp"
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

std::optional<double> seconds_left(const Method& method, double share, double now) {
  if (!method.run_seconds) return std::nullopt;
  return std::max(0.0, method.begun + share * *method.run_seconds - now);
}

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
  const std::optional<double> left = seconds_left(method, kRoundsShare, start);
  const double end = start + left.value_or(method.seconds);
  const double warm_end = left ? start + *left / 4 : end;
  bool timed = false, cut = false;
  const support::InterruptWatch watch;
  support::Progress progress;

  const auto take = [&](size_t turn) {
    if (support::interrupted() || (left && now() >= (timed ? end : warm_end))) cut = true;
    if (cut) return;
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
  uint32_t complete = 0;  // timed rounds
  const auto enough = [&](uint32_t rounds) {
    if (timed && !cut) ++complete;
    if (support::interrupted() || (timed && cut)) return true;
    cut = false;  // the warm-up's
    timed = rounds >= method.warm_up || (left && now() >= warm_end);
    if (complete > 0) {
      const auto is_certain = [&](const Samples& of) { return certain(of, method.precision); };
      if (complete >= method.most_rounds || now() >= end ||
          (complete >= method.least_rounds && std::ranges::all_of(samples, is_certain)))
        return true;
    }
    if (timed)
      progress.show(fmt::format("round {} of at most {}", complete + 1, method.most_rounds),
                    complete, method.most_rounds, end - now());
    else
      progress.show(fmt::format("warm-up {} of {}", rounds + 1, method.warm_up));
    return false;
  };
  support::take_turns(method.seed, 2 * configurations, take, enough);
  if (complete > 0)
    for (Samples& of : samples)
      for (std::vector<double>* values : {&of.gated, &of.ungated, &of.device})
        if (values->size() > complete) values->resize(complete);

  for (size_t i = 0; i < configurations; ++i) {
    measured[i].gated = times_of(std::move(samples[i].gated), method.precision);
    measured[i].ungated = times_of(std::move(samples[i].ungated), method.precision);
    if (!samples[i].device.empty())
      measured[i].device = times_of(std::move(samples[i].device), method.precision);
  }
  return measured;
}

}  // namespace uptempo::fence_scope
