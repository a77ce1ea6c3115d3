#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "samples/bitonic_sort/measurement.hpp"
#include "samples/bitonic_sort/sorter.hpp"
#include "tools/hardware/probe.hpp"

namespace uptempo::hardware {
namespace {

constexpr uint32_t kLength = 32768, kIterations = 3;

}  // namespace

Answer probe_ladder(const support::Device& device) {
  const sort::Network network(kLength);
  const std::vector<uint32_t> keys = sort::random_keys(kLength, 1);
  std::vector<uint32_t> expected = keys;
  std::ranges::sort(expected);
  sort::Sorter sorter(device.gpu, network, false);
  sorter.set_keys(keys);
  const std::vector<sort::RungResult> rungs =
      sort::measure(sort::ladder(), kIterations, [&](const sort::Switches& switches) {
        sort::Iteration iteration = sorter.run(switches);
        iteration.correct = std::ranges::equal(sorter.output(), expected);
        return iteration;
      });

  nlohmann::ordered_json measured = nlohmann::ordered_json::array();
  std::string wrong;
  for (const sort::RungResult& rung : rungs) {
    measured.push_back({{"rung", rung.rung.name},
                        {"us_per_sort", rung.us_per_iteration},
                        {"speedup", rung.speedup},
                        {"wrong", rung.wrong_iterations}});
    if (rung.wrong_iterations != 0)
      wrong += fmt::format("{}{} ({} of {})", wrong.empty() ? "" : ", ", rung.rung.name,
                           rung.wrong_iterations, kIterations);
  }
  if (!wrong.empty()) return {Verdict::differs, "unsorted results: " + wrong, measured};
  return {Verdict::as_assumed,
          fmt::format("{} keys, {} kernels: {:.0f} us without a switch, {:.0f} us with all: {:.2f} "
                      "times as fast",
                      kLength, network.passes().size(), rungs.front().us_per_iteration,
                      rungs.back().us_per_iteration, rungs.back().speedup),
          measured};
}

}  // namespace uptempo::hardware
