#include <fmt/format.h>

#include <chrono>
#include <string>
#include <vector>

#include "tools/hardware/probe.hpp"
#include "tools/litmus/corpus.hpp"
#include "tools/litmus/report.hpp"
#include "tools/litmus/runner.hpp"

namespace uptempo::hardware {
namespace {

// Rounds over the corpus: at least one, then as many as this time allows.
constexpr std::chrono::seconds kEnough{6};
constexpr uint32_t kMostRounds = 20;

}  // namespace

Answer probe_litmus(const support::Device& device) {
  const auto known = litmus::cache_rules_of(device.gpu.name());
  const std::vector<litmus::Test> tests = litmus::corpus();
  std::vector<litmus::Counter> counters(tests.begin(), tests.end());
  litmus::Runner runner(device.gpu);
  const auto begin = std::chrono::steady_clock::now();
  std::chrono::steady_clock::duration longest{};
  uint32_t rounds = 0;
  while (rounds < kMostRounds &&
         (rounds == 0 || std::chrono::steady_clock::now() - begin + longest < kEnough)) {
    const auto round_began = std::chrono::steady_clock::now();
    for (size_t i = 0; i < tests.size(); ++i) counters[i].add(runner.run(tests[i], rounds).outcome);
    longest = std::max(longest, std::chrono::steady_clock::now() - round_began);
    ++rounds;
  }

  uint64_t forbidden = 0, others = 0;
  std::string first;
  nlohmann::ordered_json wrong = nlohmann::ordered_json::array();
  for (size_t i = 0; i < tests.size(); ++i) {
    const litmus::Verdict verdict =
        verdict_of(hazards_of(tests[i], known.value_or(litmus::CacheRules::gfx9)));
    others += counters[i].others();
    bool bad = false;
    for (const auto& [outcome, entry] : counters[i].entries())
      if (is_forbidden(entry, verdict, known.has_value())) {
        bad = true;
        wrong.push_back({{"test", tests[i].name}, {"outcome", outcome}, {"count", entry.count}});
      }
    if (!bad) continue;
    ++forbidden;
    if (first.empty()) first = tests[i].name;
  }
  const nlohmann::ordered_json measured{{"tests", tests.size()},
                                        {"rounds", rounds},
                                        {"words_not_sequential", others},
                                        {"target_rules", known.has_value()},
                                        {"forbidden", wrong}};
  if (forbidden != 0)
    return {Verdict::differs,
            fmt::format("{} of {} tests have a forbidden outcome, first {}", forbidden,
                        tests.size(), first),
            measured};
  return {
      Verdict::as_assumed,
      fmt::format(
          "{} tests, {} rounds{}", tests.size(), rounds,
          known ? "" : "; the specification decides, because the rules do not know this target"),
      measured};
}

}  // namespace uptempo::hardware
