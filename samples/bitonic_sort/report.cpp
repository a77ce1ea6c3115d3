#include "samples/bitonic_sort/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tools/support/statistics.hpp"
#include "tools/support/table.hpp"

namespace uptempo::sort {
namespace {

std::string switches_line(const Report& report) {
  if (report.rungs.size() != 1) return {};
  std::string line = "Switches:";
  size_t width = line.size();
  bool any = false;
  for (const SwitchInfo& info : kSwitches) {
    if (!(report.rungs[0].rung.switches.*info.member)) continue;
    const std::string word = std::string(any ? ", " : " ") + info.name;
    width += word.size();
    if (width > 78) {  // 80 with the comma
      line += ",\n          " + std::string(info.name);
      width = 10 + std::string(info.name).size();
    } else {
      line += word;
    }
    any = true;
  }
  return line + (any ? "\n" : " none\n");
}

std::string times_table(const Report& report) {
  support::Table table({{"", support::Align::left},
                        {"us per\niteration"},
                        {"95 % interval\nof the median"},
                        {"delta\nus"},
                        {"speed-up"}});
  for (size_t i = 0; i < report.rungs.size(); ++i) {
    const RungResult& result = report.rungs[i];
    const support::MedianInterval interval = support::median_interval(result.iteration_us);
    table.add_row({rung_label(report, i), fmt::format("{:.1f}", result.us_per_iteration),
                   interval.coverage < 0.95
                       ? "-"
                       : fmt::format("{:.1f} .. {:.1f}", interval.low, interval.high),
                   i == 0 ? "" : fmt::format("{:+.1f}", result.delta_us),
                   fmt::format("{:.2f}x", result.speedup)});
  }
  return table.text();
}

std::string counts_table(const Report& report, const char* subject,
                         const std::vector<CountInfo>& counts) {
  std::vector<support::Column> columns{{subject, support::Align::left}};
  for (const CountInfo& info : counts) columns.push_back({info.title});
  support::Table table(columns);
  for (size_t i = 0; i < report.rungs.size(); ++i) {
    std::vector<std::string> cells{rung_label(report, i)};
    for (const CountInfo& info : counts)
      cells.push_back(std::to_string(report.rungs[i].counts.*info.member));
    table.add_row(cells);
  }
  return table.text();
}

// Columns only for copy paths that some rung used.
std::vector<CountInfo> copy_columns(const Report& report) {
  std::vector<CountInfo> columns(kCopyCounts.begin(), kCopyCounts.end());
  for (const CountInfo& path : kCopyPaths) {
    const bool taken =
        std::any_of(report.rungs.begin(), report.rungs.end(),
                    [&](const RungResult& result) { return result.counts.*path.member > 0; });
    if (taken) columns.push_back(path);
  }
  return columns;
}

std::string verdict(const Report& report) {
  if (!report.verified.has_value()) return "Results were not verified (--no-verify).\n";
  if (*report.verified) return "Verified: every result equals std::sort of its input.\n";
  std::string text = "WRONG RESULTS:";
  for (const RungResult& result : report.rungs)
    if (result.wrong_iterations > 0)
      text += fmt::format(" {} ({} of {} iterations)", result.rung.name, result.wrong_iterations,
                          result.iteration_us.size());
  return text + ".\n";
}

}  // namespace

std::string rung_label(const Report& report, size_t i) {
  if (report.rungs.size() == 1) return "these switches";
  return i == 0 ? report.rungs[i].rung.name : "+ " + report.rungs[i].rung.name;
}

std::string table(const Report& report) {
  return fmt::format(
      "{} keys {}, {} kernels, workgroups of {}\n{}Median of {} iteration{}{}\n\n{}\n{}\n{}\n{}",
      report.length, report.descending ? "descending" : "ascending", report.kernels,
      report.workgroup, switches_line(report), report.iterations, report.iterations == 1 ? "" : "s",
      report.is_virtual ? ", virtual GPU time" : "", times_table(report),

      counts_table(report, "dispatching,\nper iteration",
                   {kDispatchCounts.begin(), kDispatchCounts.end()}),
      counts_table(report, "copying,\nper iteration", copy_columns(report)), verdict(report));
}

nlohmann::ordered_json json(const Report& report) {
  nlohmann::ordered_json out{{"device", report.device},
                             {"virtual_gpu", report.is_virtual},
                             {"length", report.length},
                             {"kernels", report.kernels},
                             {"workgroup", report.workgroup},
                             {"iterations", report.iterations},
                             {"seed", report.seed},
                             {"order", report.descending ? "descending" : "ascending"},
                             {"verified", nullptr}};
  if (report.verified.has_value()) out["verified"] = *report.verified;
  out["choices"] = nlohmann::ordered_json::array();
  std::istringstream choices(report.choices);
  for (std::string line; std::getline(choices, line);) out["choices"].push_back(line);
  out["rungs"] = nlohmann::ordered_json::array();
  for (const RungResult& result : report.rungs) {
    const support::MedianInterval interval = support::median_interval(result.iteration_us);
    nlohmann::ordered_json switches, counts;
    for (const SwitchInfo& info : kSwitches)
      switches[info.name] = result.rung.switches.*info.member;
    for (const CountInfo& info : kDispatchCounts) counts[info.name] = result.counts.*info.member;
    for (const CountInfo& info : kCopyCounts) counts[info.name] = result.counts.*info.member;
    for (const CountInfo& info : kCopyPaths)
      counts["copies_by_path"][info.name] = result.counts.*info.member;
    out["rungs"].push_back({{"name", result.rung.name},
                            {"switches", switches},
                            {"us_per_iteration", result.us_per_iteration},
                            {"us_low", interval.low},
                            {"us_high", interval.high},
                            {"us_coverage", interval.coverage},
                            {"delta_us", result.delta_us},
                            {"speedup", result.speedup},
                            {"wrong_iterations", result.wrong_iterations},
                            {"counts", counts}});
  }
  return out;
}

std::string json_text(const Report& report) { return json(report).dump(2) + '\n'; }

}  // namespace uptempo::sort
