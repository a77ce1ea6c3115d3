// What dispatch_bench prints and writes.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tools/bench/dispatch/experiment.hpp"

namespace uptempo::bench {

// Of the JSON. Its number grows when what stands there is understood no longer.
inline constexpr const char* kReportFormat = "uptempo-dispatch-bench-1";

struct Report {
  std::string device{};
  bool is_virtual = true;
  bool kernels_executed = false;
  uint32_t rounds = 0;
  uint64_t seed = 0;
  uint32_t cores = 0;
  std::vector<Peer> peers{};
  std::vector<uint32_t> batches{};
  Results results{};
  std::map<std::string, std::string> not_counted{};  // by kind of count: why
};

// Rows down, lengths of batch across, one table for each phase; then the ratios to hsa-careful, and what was counted.
std::string table(const Report& report);

// Counts are per batch, and null where they could not be taken: `not_counted` says why.
// {"device":..,"virtual_gpu":true,"kernels":"null",..,"results":[{"name":"uptempo-batch","batch":120,"phase":"submit","ns_per_dispatch":9.1,
//  "low":9.0,"high":9.3,"allocations":0,"system_calls":0,"hsa_calls":0,"doorbells":1}],"not_counted":{},"ratios":[{"name":..,"to":"hsa-careful","batch":..,"phase":..,"ratio":..,"low":..,"high":..}]}
nlohmann::ordered_json json(const Report& report);

}  // namespace uptempo::bench
