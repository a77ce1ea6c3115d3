#include "tools/bench/sort_vs_pocl/comparison.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tools/support/interrupt.hpp"
#include "tools/support/table.hpp"

namespace uptempo::bench {

support::MedianInterval Comparison::ratio() const {
  return support::median_ratio(ours_us, peer_us);
}

Comparison compare(uint32_t pairs, const std::function<double()>& ours,
                   const std::function<double()>& peer,
                   const std::function<void(const std::string&, uint32_t done)>& progress) {
  const support::InterruptWatch watch;
  Comparison comparison;
  for (uint32_t i = 0; i < pairs && !(i > 0 && support::interrupted()); ++i) {
    if (progress) progress(fmt::format("pair {}/{}", i + 1, pairs), i);
    if (i % 2 == 0) comparison.ours_us.push_back(ours());
    comparison.peer_us.push_back(peer());
    if (i % 2 == 1) comparison.ours_us.push_back(ours());
  }
  return comparison;
}

std::string table(const SortComparisonReport& report) {
  support::Table table(
      {{"", support::Align::left}, {"wall time,\nmedian us"}, {"95 % interval\nof the median"}});
  const auto add = [&](const char* name, const support::MedianInterval& us) {
    table.add_row(
        {name, fmt::format("{:.0f}", us.median), fmt::format("{:.0f} .. {:.0f}", us.low, us.high)});
  };
  add(report.is_virtual ? "Uptempo, virtual GPU" : "Uptempo, GPU", report.comparison.ours());
  add("PoCL, host cores", report.comparison.peer());
  const support::MedianInterval ratio = report.comparison.ratio();
  return fmt::format(
      "PoCL {}: {}\n"
      "{} keys, {} kernels from the same source, {} interleaved pairs, {} core{}\n\n{}\n"
      "Uptempo / PoCL: {:.2f} (95 % interval {:.2f} .. {:.2f}); below 1, Uptempo is faster.\n"
      "Verified: every result of both equals std::sort of its input.\n",
      report.peer_version, report.peer_device, report.length, report.kernels,
      report.comparison.ours_us.size(), report.cores, report.cores == 1 ? "" : "s", table.text(),
      ratio.median, ratio.low, ratio.high);
}

nlohmann::ordered_json json(const SortComparisonReport& report) {
  const auto interval = [](const support::MedianInterval& i) {
    return nlohmann::ordered_json{{"median", i.median}, {"low", i.low}, {"high", i.high}};
  };
  return {{"device", report.device},
          {"virtual_gpu", report.is_virtual},
          {"peer", "PoCL " + report.peer_version},
          {"peer_device", report.peer_device},
          {"length", report.length},
          {"kernels", report.kernels},
          {"cores", report.cores},
          {"pairs", report.comparison.ours_us.size()},
          {"uptempo_us", interval(report.comparison.ours())},
          {"pocl_us", interval(report.comparison.peer())},
          {"ratio", interval(report.comparison.ratio())},
          {"verified", true}};
}

}  // namespace uptempo::bench
