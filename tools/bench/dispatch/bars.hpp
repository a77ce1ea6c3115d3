// Required results of this library: `dispatch_bench --bars`.
//
// - Ratio or difference: met if the whole 95 % interval meets the bar, so chance alone does not
//   pass.
// - Floor: missed if another row's ratio to it has its whole interval below 1, since that row is
//   then certainly cheaper.
// - Count: applies to every batch and phase that was counted.
// - A bar whose rows are missing or were left out is not judged, which counts as not met.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/bench/dispatch/experiment.hpp"

namespace uptempo::bench {

enum class Verdict : uint8_t { met, missed, not_judged };

struct Judgement {
  std::string bar;    // for example "uptempo-batch of 120: at most 1.20 times hsa-careful"
  std::string found;  // for example "1.10 (1.05 .. 1.15)", or why the bar is not judged
  Verdict verdict = Verdict::not_judged;
};

// Judges every bar. `results` holds only the best variants (Results::keep_best_variants).
// `hip_major`: the first number of HIP's version; some bars depend on it.
std::vector<Judgement> judge(const Results& results, int hip_major = 5);

std::string table(const std::vector<Judgement>& judgements);
nlohmann::ordered_json json(const std::vector<Judgement>& judgements);
// Throws std::runtime_error naming each bar that is not met.
void require_met(const std::vector<Judgement>& judgements);

}  // namespace uptempo::bench
