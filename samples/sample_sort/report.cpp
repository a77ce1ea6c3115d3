#include "samples/sample_sort/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/support/table.hpp"

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
  const char* name;  // in the table
  const char* key;   // in JSON
  double (*value)(const RankTimes&);
};

constexpr Row kPhaseRows[] = {
    {"sample", "sample", phase_of<0>},
    {"sort", "sort", phase_of<1>},
    {"exchange", "exchange", phase_of<2>},
    {"merge", "merge", phase_of<3>},
};
static_assert(std::size(kPhaseRows) == kPhaseNames.size());

constexpr Row kDeviceRows[] = {
    {"device: sorting", "sorting", [](const RankTimes& rank) { return rank.device_sorting; }},
    {"device: merging", "merging", [](const RankTimes& rank) { return rank.device_merging; }},
    {"device: busy", "busy", [](const RankTimes& rank) { return rank.device_busy; }},
};

double overlap_of(const RankTimes& rank) { return ratio(rank.overlap, rank.phases[kExchange]); }

double fullest(const Report& report) {
  const std::vector<RankTimes>& ranks = median_iteration(report);
  const Spread received = spread(ranks, [](const RankTimes& rank) { return rank.received; });
  return ratio(received.most, received.mean);
}

nlohmann::ordered_json json_of(const Row& row, const std::vector<RankTimes>& ranks) {
  const Spread s = spread(ranks, row.value);
  return {{"name", row.key},
          {"seconds_least", s.least},
          {"seconds_mean", s.mean},
          {"seconds_most", s.most},
          {"share", ratio(sum(ranks, row.value), sum(ranks, total_of))}};
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
  std::string text = fmt::format(
      "{} on {}, one GPU each{}; {}\n", plural(report.ranks, "rank"), plural(report.hosts, "host"),
      report.workers == 0 ? "" : fmt::format(" with {}", plural(report.workers, "worker")),
      report.mpi);
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

  support::Table rows(
      {{"ms per rank", support::Align::left}, {"least"}, {"mean"}, {"most"}, {"share"}});
  const auto add = [&](const Row& row) {
    const Spread s = spread(ranks, row.value);
    rows.add_row(
        {row.name, fmt::format("{:.3f}", s.least * 1e3), fmt::format("{:.3f}", s.mean * 1e3),
         fmt::format("{:.3f}", s.most * 1e3),
         fmt::format("{:.1f} %", 100 * ratio(sum(ranks, row.value), sum(ranks, total_of)))});
  };
  for (const Row& row : kPhaseRows) add(row);
  add({"total", "total", total_of});
  for (const Row& row : kDeviceRows) add(row);
  text += rows.text();
  text += report.verified
              ? "\nVerified: the ranks' keys are in order, and are those of the input.\n"
              : "\nWRONG RESULTS: keys are out of order, or are not those of the input.\n";
  return text;
}

std::string json_text(const Report& report) {
  const std::vector<RankTimes>& ranks = median_iteration(report);
  const Workload& work = report.workload;
  nlohmann::ordered_json json{{"device", report.device},
                              {"virtual_gpu", report.is_virtual},
                              {"mpi", report.mpi},
                              {"ranks", report.ranks},
                              {"hosts", report.hosts},
                              {"workers_per_rank", report.workers},
                              {"keys", work.total},
                              {"distribution", name_of(work.distribution)},
                              {"uneven", work.uneven},
                              {"rounds", work.rounds},
                              {"chunk", work.chunk},
                              {"seed", work.seed},
                              {"iterations", report.iterations.size()},
                              {"verified", report.verified},
                              {"seconds", seconds_of(ranks)},
                              {"keys_per_second", keys_per_second(report)},
                              {"overlap", overlap(ranks)},
                              {"fullest_rank", fullest(report)},
                              {"seconds_of_iterations", nlohmann::ordered_json::array()},
                              {"phases", nlohmann::ordered_json::array()},
                              {"device_times", nlohmann::ordered_json::array()},
                              {"received", nlohmann::ordered_json::array()},
                              {"overlaps", nlohmann::ordered_json::array()}};
  for (const auto& each : report.iterations)
    json["seconds_of_iterations"].push_back(seconds_of(each));
  for (const Row& row : kPhaseRows) json["phases"].push_back(json_of(row, ranks));
  for (const Row& row : kDeviceRows) json["device_times"].push_back(json_of(row, ranks));
  for (const RankTimes& rank : ranks) {
    json["received"].push_back(static_cast<uint64_t>(rank.received));
    json["overlaps"].push_back(overlap_of(rank));
  }
  return json.dump(2) + '\n';
}

}  // namespace uptempo::sample_sort
