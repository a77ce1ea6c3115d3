#include "tools/bench/dispatch/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tools/support/table.hpp"

namespace uptempo::bench {
namespace {

constexpr const char* kPeer = "hsa-careful";

// Published results of another machine: for orientation, not for ratios.
struct Published {
  const char* name;
  uint32_t batch;
  double total_us;
  const char* source;
};
constexpr const char* kRocm7 =
    "averages of github.com/ROCm/rocm-systems pull request 4831, 'clr: hipGraph fast dispatch via "
    "flat "
    "packet "
    "buffer', another machine's";
constexpr Published kPublished[] = {{"ROCm 7 hipGraphLaunch, CPU time", 1024, 6.9, kRocm7},
                                    {"ROCm 7 hipGraphLaunch, CPU time", 8192, 31.9, kRocm7}};

std::string published_text(const Published& published) {
  return support::wrapped(
      fmt::format("{}: {} us for {} nodes, {:.1f} ns each ({})", published.name, published.total_us,
                  published.batch, published.total_us * 1000 / published.batch, published.source));
}

std::string nanoseconds(double ns) {
  return ns < 99.95 ? fmt::format("{:.1f}", ns) : fmt::format("{:.0f}", ns);
}

template <class Cell>
std::string grid(const Report& report, Phase phase, const std::string& title, Cell cell) {
  std::vector<support::Column> columns{{title, support::Align::left}};
  for (const uint32_t batch : report.batches)
    columns.push_back({fmt::format("batch of\n{}", batch)});
  support::Table table(columns);
  for (const std::string& name : report.results.names()) {
    std::vector<std::string> cells{name};
    bool any = false;
    for (const uint32_t batch : report.batches) {
      const Series* const series = report.results.find(name, batch, phase);
      any = any || series != nullptr;
      cells.push_back(series == nullptr ? "-" : cell(*series));
    }
    if (any) table.add_row(std::move(cells));
  }
  return table.text();
}

std::string median_cell(const Series& series) {
  const support::MedianInterval ns = series.interval();
  return fmt::format(
      "{} +-{}%", nanoseconds(ns.median),
      static_cast<int>(std::max(ns.high - ns.median, ns.median - ns.low) / ns.median * 100 + 0.5));
}

std::string count_text(std::optional<double> count) {
  if (!count) return "?";
  return *count == std::floor(*count) || *count >= 9.5 ? fmt::format("{:.0f}", *count)
                                                       : fmt::format("{:.2g}", *count);
}

std::string count_cell(const Series& series) {
  std::string cell;
  for (const CountKind& kind : kCountKinds)
    cell += (cell.empty() ? "" : "/") + count_text(series.counts.*kind.value);
  return cell;
}

std::string count_kinds() {
  std::string names;
  for (const CountKind& kind : kCountKinds)
    names += (names.empty() ? "" : " / ") + std::string(kind.name);
  return names;
}

}  // namespace

std::string table(const Report& report) {
  std::string text = support::wrapped(fmt::format(
      "{} rounds in random order (seed {}), {} core{}; {}", report.rounds, report.seed,
      report.cores, report.cores == 1 ? "" : "s",
      report.kernels_executed ? "kernels are executed"
                              : "kernels are not executed, only the dispatch is timed"));
  for (const Peer& peer : report.peers)
    text +=
        support::wrapped(peer.missing.empty() ? fmt::format("{}: {}", peer.version, peer.note)
                                              : fmt::format("no {}: {}", peer.name, peer.missing));
  for (const Phase phase : {Phase::submit, Phase::complete}) {
    text += '\n' + grid(report, phase,
                        fmt::format("{}, host ns per\ndispatch, median", phase_name(phase)),
                        median_cell);
    text +=
        '\n' +
        grid(report, phase, fmt::format("{},\ntimes {}", phase_name(phase), kPeer),
             [&](const Series& series) {
               const Series* const peer = report.results.find(kPeer, series.batch, phase);
               if (peer == nullptr) return std::string("-");
               const support::MedianInterval times = ratio(series, *peer);
               return fmt::format("{:.2f} ({:.2f} .. {:.2f})", times.median, times.low, times.high);
             });
  }
  text += "\nPublished, not measured here:\n";
  for (const Published& published : kPublished) text += published_text(published);
  text +=
      '\n' + support::wrapped("Counted per batch for the submitting thread, in a separate run: " +
                              count_kinds());
  for (const auto& [kind, reason] : report.not_counted)
    text += support::wrapped(fmt::format("? {}: not counted: {}", kind, reason));
  if (report.not_counted.size() < std::size(kCountKinds))
    for (const Phase phase : {Phase::submit, Phase::complete})
      text += '\n' + grid(report, phase, fmt::format("{},\ncounted per batch", phase_name(phase)),
                          count_cell);
  return text + "\nVerified after every run: each dispatch completed exactly once.\n";
}

nlohmann::ordered_json json(const Report& report) {
  nlohmann::ordered_json peers = nlohmann::ordered_json::object();
  for (const Peer& peer : report.peers)
    peers[peer.name] = peer.missing.empty() ? nlohmann::ordered_json(peer.version)
                                            : nlohmann::ordered_json(nullptr);
  nlohmann::ordered_json results = nlohmann::ordered_json::array(),
                         ratios = nlohmann::ordered_json::array();
  for (const Series& series : report.results.all) {
    const support::MedianInterval ns = series.interval();
    nlohmann::ordered_json entry{{"name", series.name},
                                 {"batch", series.batch},
                                 {"phase", phase_name(series.phase)},
                                 {"ns_per_dispatch", ns.median},
                                 {"low", ns.low},
                                 {"high", ns.high}};
    for (const CountKind& kind : kCountKinds) {
      const std::optional<double> count = series.counts.*kind.value;
      entry[kind.key] = count ? nlohmann::ordered_json(*count) : nlohmann::ordered_json(nullptr);
    }
    results.push_back(std::move(entry));
    const Series* const peer = report.results.find(kPeer, series.batch, series.phase);
    if (peer == nullptr || peer == &series) continue;
    const support::MedianInterval times = ratio(series, *peer);
    ratios.push_back({{"name", series.name},
                      {"to", kPeer},
                      {"batch", series.batch},
                      {"phase", phase_name(series.phase)},
                      {"ratio", times.median},
                      {"low", times.low},
                      {"high", times.high}});
  }
  nlohmann::ordered_json published = nlohmann::ordered_json::array();
  for (const Published& each : kPublished)
    published.push_back({{"name", each.name},
                         {"batch", each.batch},
                         {"ns_per_dispatch", each.total_us * 1000 / each.batch},
                         {"source", each.source}});
  return {{"format", kReportFormat},
          {"device", report.device},
          {"virtual_gpu", report.is_virtual},
          {"kernels", report.kernels_executed ? "real" : "null"},
          {"rounds", report.rounds},
          {"seed", report.seed},
          {"cores", report.cores},
          {"peers", std::move(peers)},
          {"verified", true},
          {"not_counted", report.not_counted},
          {"results", std::move(results)},
          {"published", std::move(published)},
          {"ratios", std::move(ratios)}};
}

}  // namespace uptempo::bench
