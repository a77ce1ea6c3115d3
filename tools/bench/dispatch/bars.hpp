// Where this library has to be: `dispatch_bench --bars`.
//
// A bar on a ratio is met when the whole 95 % interval of the rounds' ratios meets it: chance alone passes nothing. A floor is the other way round: it
// is missed when the whole interval of another row's ratio to it is below 1, since then that row is cheaper for certain. A bar on a count holds for every
// batch and phase that was counted. What cannot be judged, because a row is missing or was left out, is not met.
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
  std::string bar;    // "uptempo-batch of 120: at most 1.20 times hsa-careful"
  std::string found;  // "1.10 (1.05 .. 1.15)", or why it is not judged
  Verdict verdict = Verdict::not_judged;
};

// Every bar, of results whose variants have been dropped (Results::keep_best_variants).
std::vector<Judgement> judge(const Results& results);

std::string table(const std::vector<Judgement>& judgements);
nlohmann::ordered_json json(const std::vector<Judgement>& judgements);
// Throws std::runtime_error naming each bar that is not met, unless all are.
void require_met(const std::vector<Judgement>& judgements);

}  // namespace uptempo::bench
