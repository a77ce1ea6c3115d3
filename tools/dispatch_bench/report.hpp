// What dispatch_bench prints and writes.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "dispatch_bench/experiment.hpp"

namespace uptempo::bench {

struct Report {
  std::string device;
  bool is_virtual = true;
  bool kernels_executed = false;
  uint32_t rounds = 0;
  uint64_t seed = 0;
  uint32_t cores = 0;
  std::string hip;     // version of the peer
  std::string no_hip;  // or why there is none
  std::vector<uint32_t> batches;
  Results results;
};

// Rows down, lengths of batch across, one table for each phase; then the ratios to hsa-careful.
std::string table(const Report& report);

// {"device":..,"virtual_gpu":true,"kernels":"null",..,"results":[{"name":"uptempo-batch","batch":120,"phase":"submit","ns_per_dispatch":9.1,
//  "low":9.0,"high":9.3}],"ratios":[{"name":..,"to":"hsa-careful","batch":..,"phase":..,"ratio":..,"low":..,"high":..}]}
nlohmann::ordered_json json(const Report& report);

}  // namespace uptempo::bench
