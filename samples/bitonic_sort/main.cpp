// Sorts keys on the GPU, one kernel dispatch per pass of a bitonic sort, and shows the effect of
// five switches that make dispatches cheaper.
#include <dlfcn.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "report.hpp"
#include "sorter.hpp"

using namespace uptempo;

int main(int argc, char** argv) try {
  CLI::App app(
      "Sorts keys on the GPU, one kernel dispatch per pass of a bitonic sort. Without a switch it\n"
      "runs the ladder: the baseline, then one more switch per rung.",
      "bitonic_sort");
  sort::Switches switches;
  bool baseline = false, descending = false;
  int64_t length = 32768;
  uint32_t iterations = 25;
  for (const sort::SwitchInfo& info : sort::kSwitches)
    app.add_flag("--" + std::string(info.name), switches.*info.member, info.help);
  app.add_flag("--baseline", baseline, "Measure without any switch");
  app.add_option("--length", length, "Number of keys: a power of two from 2 to 2^24 (32768)");
  app.add_option("--iterations", iterations, "Timed sorts per rung (25)")
      ->check(CLI::Range(1u, 1000000u));
  app.add_flag("--descending", descending, "Sort the largest key first");
  CLI11_PARSE(app, argc, argv);
  const bool is_ladder = !baseline && switches == sort::Switches{};
  if (baseline && !(switches == sort::Switches{}))
    throw std::invalid_argument("--baseline means no switch at all, but " +
                                sort::name_of(switches) + " was given too");
  const sort::Network network(length);

  const Runtime runtime;
  const Agent gpu = runtime.gpu();
  const bool is_virtual = dlsym(RTLD_DEFAULT, "uptempo_vgpu_device") != nullptr;
  std::printf("%s%s: ", gpu.name().c_str(), is_virtual ? ", a virtual GPU" : "");
  const std::vector<uint32_t> keys = sort::random_keys(network.length(), 1);
  std::vector<uint32_t> expected = keys;
  if (descending) {
    std::ranges::sort(expected, std::greater{});
  } else {
    std::ranges::sort(expected);
  }
  sort::Sorter sorter(gpu, network, descending);
  sorter.set_keys(keys);

  std::vector<sort::Rung> rungs = sort::ladder();
  if (!is_ladder) rungs.assign(1, {.name = sort::name_of(switches), .switches = switches});
  const sort::Report report{
      .is_virtual = is_virtual,
      .length = network.length(),
      .kernels = static_cast<uint32_t>(network.passes().size()),
      .workgroup = network.workgroup(),
      .descending = descending,
      .rungs = sort::measure(rungs, iterations, [&](const sort::Switches& each) {
        sort::Iteration iteration = sorter.run(each);
        iteration.correct = std::ranges::equal(sorter.output(), expected);
        return iteration;
      })};
  std::printf("%s", sort::table(report).c_str());
  return sort::is_right(report) ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "bitonic_sort: %s\n", error.what());
  return 1;
}
