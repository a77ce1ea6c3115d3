#include "report.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace uptempo::sample_sort {
namespace {

constexpr size_t kExchange = static_cast<size_t>(Phase::exchange);

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

double sum(const std::vector<RankTimes>& ranks, double (*value)(const RankTimes&)) {
  double result = 0;
  for (const RankTimes& rank : ranks) result += value(rank);
  return result;
}

double total_of(const RankTimes& rank) { return rank.total; }

template <size_t phase>
double phase_of(const RankTimes& rank) {
  return rank.phases[phase];
}

struct Row {
  const char* name;
  double (*value)(const RankTimes&);
};

constexpr Row kRows[] = {
    {"sample", phase_of<0>},
    {"sort", phase_of<1>},
    {"exchange", phase_of<kExchange>},
    {"merge", phase_of<3>},
    {"total", total_of},
    {"device: sorting", [](const RankTimes& rank) { return rank.device_sorting; }},
    {"device: merging", [](const RankTimes& rank) { return rank.device_merging; }},
    {"device: busy", [](const RankTimes& rank) { return rank.device_busy; }},
};

double overlap_of(const RankTimes& rank) { return ratio(rank.overlap, rank.phases[kExchange]); }

double fullest(const Report& report) {
  const std::vector<RankTimes>& ranks = median_iteration(report);
  const Spread received = spread(ranks, [](const RankTimes& rank) { return rank.received; });
  return ratio(received.most, received.mean);
}

}  // namespace

double seconds_of(const std::vector<RankTimes>& ranks) { return spread(ranks, total_of).most; }

const std::vector<RankTimes>& median_iteration(const Report& report) {
  std::vector<const std::vector<RankTimes>*> order;
  for (const auto& each : report.iterations) order.push_back(&each);
  std::ranges::sort(order, {}, [](const auto* each) { return seconds_of(*each); });
  return *order[(order.size() - 1) / 2];
}

double keys_per_second(const Report& report) {
  return ratio(static_cast<double>(report.workload.total), seconds_of(median_iteration(report)));
}

Spread spread(const std::vector<RankTimes>& ranks, double (*value)(const RankTimes&)) {
  Spread result{.least = value(ranks.front()), .most = value(ranks.front())};
  for (const RankTimes& rank : ranks) {
    result.least = std::min(result.least, value(rank));
    result.most = std::max(result.most, value(rank));
  }
  result.mean = sum(ranks, value) / static_cast<double>(ranks.size());
  return result;
}

double overlap(const std::vector<RankTimes>& ranks) {
  return ratio(sum(ranks, [](const RankTimes& rank) { return rank.overlap; }),
               sum(ranks, phase_of<kExchange>));
}

std::string table(const Report& report) {
  const std::vector<RankTimes>& ranks = median_iteration(report);
  const Workload& work = report.workload;
  const char* const time = report.is_virtual ? "virtual GPU time" : "time";
  const auto plural = [](uint64_t count, const char* noun) {
    return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
  };
  std::string text =
      fmt::format("{}: {} on {}, one GPU each; {}\n", report.device, plural(report.ranks, "rank"),
                  plural(report.hosts, "host"), report.mpi);
  text += fmt::format("{} {} keys, {}; {} of up to {} keys per rank\n", work.total,
                      name_of(work.distribution), work.uneven ? "uneven" : "even",
                      plural(work.rounds, "round"), work.chunk);
  const Spread overlaps = spread(ranks, overlap_of);
  text += fmt::format(
      "{:.3f} million keys/s: {:.3f} ms, median of {}, {}\n"
      "Overlap: the device was busy in {:.0f} % of the exchanges' time (ranks: {:.0f} to {:.0f} "
      "%)\n"
      "Balance: the fullest rank received {:.2f} times the mean\n\n",
      keys_per_second(report) * 1e-6, seconds_of(ranks) * 1e3,
      plural(report.iterations.size(), "iteration"), time, overlap(ranks) * 100,
      overlaps.least * 100, overlaps.most * 100, fullest(report));

  text += fmt::format("{:<15} {:>10} {:>10} {:>10} {:>7}\n{:-<56}\n", "ms per rank", "least",
                      "mean", "most", "share", "");
  for (const Row& row : kRows) {
    const Spread s = spread(ranks, row.value);
    text += fmt::format("{:<15} {:>10.3f} {:>10.3f} {:>10.3f} {:>5.1f} %\n", row.name,
                        s.least * 1e3, s.mean * 1e3, s.most * 1e3,
                        100 * ratio(sum(ranks, row.value), sum(ranks, total_of)));
  }
  text += report.verified
              ? "\nVerified: the ranks' keys are in order, and are those of the input.\n"
              : "\nWRONG RESULTS: keys are out of order, or are not those of the input.\n";
  return text;
}

}  // namespace uptempo::sample_sort
