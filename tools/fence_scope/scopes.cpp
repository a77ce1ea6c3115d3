#include "fence_scope/scopes.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "aql/text.hpp"
#include "support/statistics.hpp"
#include "support/table.hpp"

namespace uptempo::fence_scope {
namespace {

constexpr aql::FenceScope kScopes[] = {aql::FenceScope::none, aql::FenceScope::agent,
                                       aql::FenceScope::system};

const char* verdict(const VariantResult& result) {
  if (result.correct()) return guaranteed(result.interior) ? "right" : "right, by luck";
  return guaranteed(result.interior) ? "WRONG" : "wrong, as it may";
}

}  // namespace

std::vector<aql::HeaderFlags> variants() {
  std::vector<aql::HeaderFlags> all;
  for (const aql::Barrier barrier : {aql::Barrier::on, aql::Barrier::off})
    for (const aql::FenceScope acquire : kScopes)
      for (const aql::FenceScope release : kScopes) all.push_back({barrier, acquire, release});
  return all;
}

bool guaranteed(const aql::HeaderFlags& interior) {
  return interior.barrier == aql::Barrier::on && interior.acquire != aql::FenceScope::none &&
         interior.release != aql::FenceScope::none;
}

std::vector<VariantResult> measure(uint32_t iterations,
                                   const std::function<sort::Iteration(const aql::HeaderFlags&)>& sort,
                                   const std::function<void(const std::string&)>& progress) {
  std::vector<VariantResult> results;
  for (const aql::HeaderFlags& interior : variants())
    results.push_back({.interior = interior, .iteration_us = {}, .counts = {}});
  for (uint32_t i = 0; i < iterations; ++i) {
    for (VariantResult& result : results) {
      if (progress)
        progress(fmt::format("iteration {}/{}, {}/{}, barrier bit {}", i + 1, iterations,
                             aql::scope_name(result.interior.acquire),
                             aql::scope_name(result.interior.release),
                             result.interior.barrier == aql::Barrier::on ? "on" : "off"));
      const sort::Iteration iteration = sort(result.interior);
      result.iteration_us.push_back(iteration.us);
      result.counts = iteration.counts;
      if (!iteration.correct) ++result.wrong_iterations;
    }
  }
  return results;
}

std::string table(const ScopesReport& report) {
  using support::Align;
  support::Table table({{"barrier\nbit", Align::left},
                        {"\nacquire", Align::left},
                        {"\nrelease", Align::left},
                        {"us per\niteration"},
                        {"barrier\nbits"},
                        {"system\nacq."},
                        {"system\nrel."},
                        {"\nresult", Align::left}});
  for (const VariantResult& result : report.variants)
    table.add_row({result.interior.barrier == aql::Barrier::on ? "on" : "off",
                   std::string(aql::scope_name(result.interior.acquire)),
                   std::string(aql::scope_name(result.interior.release)),
                   fmt::format("{:.1f}", support::median(result.iteration_us)),
                   std::to_string(result.counts.barrier_bits), std::to_string(result.counts.system_acquires),
                   std::to_string(result.counts.system_releases), verdict(result)});
  return fmt::format(
      "{} keys, {} kernels; median of {} iteration{}{}\n"
      "Varied: all packets but the first (acquires system) and last (releases system)\n\n{}\n"
      "\"by luck\": the memory model does not promise it; this device gave it.\n",
      report.length, report.kernels, report.iterations, report.iterations == 1 ? "" : "s",
      report.is_virtual ? ", virtual GPU time" : "", table.text());
}

nlohmann::ordered_json json(const ScopesReport& report) {
  nlohmann::ordered_json out{{"device", report.device},         {"virtual_gpu", report.is_virtual},
                             {"length", report.length},         {"kernels", report.kernels},
                             {"iterations", report.iterations}, {"seed", report.seed}};
  out["variants"] = nlohmann::ordered_json::array();
  for (const VariantResult& result : report.variants) {
    const support::MedianInterval us = support::median_interval(result.iteration_us);
    nlohmann::ordered_json counts{{"barrier_bits", result.counts.barrier_bits}};
    for (const sort::CountInfo& info : sort::kDispatchCounts) counts[info.name] = result.counts.*info.member;
    out["variants"].push_back({{"barrier", result.interior.barrier == aql::Barrier::on},
                               {"acquire", aql::scope_name(result.interior.acquire)},
                               {"release", aql::scope_name(result.interior.release)},
                               {"us_per_iteration", us.median},
                               {"us_low", us.low},
                               {"us_high", us.high},
                               {"us_coverage", us.coverage},
                               {"correct", result.correct()},
                               {"wrong_iterations", result.wrong_iterations},
                               {"guaranteed", guaranteed(result.interior)},
                               {"counts", counts}});
  }
  return out;
}

}  // namespace uptempo::fence_scope
