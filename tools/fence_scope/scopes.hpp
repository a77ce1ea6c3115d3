// The experiment of `fence_scope scopes`: the fully optimised sort, with every choice of barrier bit and fence scopes on the packets between
// the first and the last.
//
// First and last packet stay as the ladder's `fence` rung has them (system acquire first, system release last, barrier bit on both), so that what
// differs is what the packets in between promise to one another.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "aql/packet.hpp"
#include "bitonic_sort/measurement.hpp"

namespace uptempo::fence_scope {

// Both settings of the barrier bit, each with acquire and release over none, agent and system: 18.
std::vector<aql::HeaderFlags> variants();

// Whether the HSA memory model promises the right result: each pass reads what the pass before wrote, so the packet must wait for it
// (barrier bit), and the write must be released and acquired at a scope that both share (agent or wider).
bool guaranteed(const aql::HeaderFlags& interior);

struct VariantResult {
  aql::HeaderFlags interior;
  std::vector<double> iteration_us;
  Counters counts;  // of the last iteration
  uint32_t wrong_iterations = 0;

  bool correct() const { return wrong_iterations == 0; }
  // A wrong result where a right one is promised.
  bool broken_promise() const { return guaranteed(interior) && !correct(); }
};

struct ScopesReport {
  std::string device;
  bool is_virtual = false;
  uint32_t length = 0;
  uint32_t kernels = 0;
  uint32_t iterations = 0;
  uint64_t seed = 0;
  std::vector<VariantResult> variants;
};

// The variants take turns, as the ladder's rungs do.
std::vector<VariantResult> measure(uint32_t iterations,
                                   const std::function<sort::Iteration(const aql::HeaderFlags&)>& sort,
                                   const std::function<void(const std::string&)>& progress = {});

// At most 80 columns.
std::string table(const ScopesReport& report);

// {device, virtual_gpu, length, kernels, iterations, seed, variants: [{barrier, acquire, release, us_per_iteration, us_low, us_high, us_coverage, correct,
//  wrong_iterations, guaranteed, counts}]}
nlohmann::ordered_json json(const ScopesReport& report);

}  // namespace uptempo::fence_scope
