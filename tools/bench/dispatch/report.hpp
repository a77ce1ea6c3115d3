// Text and JSON output of dispatch_bench.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tools/bench/dispatch/experiment.hpp"

namespace uptempo::bench {

// Format of the JSON. The number increases with every incompatible change.
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
  std::map<std::string, std::string> not_counted{};  // by kind of count: the reason
};

// Rows down, batch lengths across, one table per phase; then the ratios to hsa-careful, and the
// counts.
std::string table(const Report& report);

// Counts are per batch, and null where they could not be taken; `not_counted` holds the reason.
//   {"device":..,"virtual_gpu":true,"kernels":"null",..,
//    "results":[{"name":"uptempo-batch","batch":120,"phase":"submit","ns_per_dispatch":9.1,
//      "low":9.0,"high":9.3,"allocations":0,"system_calls":0,"hsa_calls":0,"doorbells":1,
//      "hdp_flushes":0,"read_backs":0}],
//    "not_counted":{},
//    "ratios":[{"name":..,"to":"hsa-careful","batch":..,"phase":..,"ratio":..,"low":..,"high":..}]}
nlohmann::ordered_json json(const Report& report);

}  // namespace uptempo::bench
