#include <algorithm>
#include <functional>

#include "samples/bitonic_sort/options.hpp"
#include "samples/bitonic_sort/report.hpp"
#include "samples/bitonic_sort/sorter.hpp"
#include "tools/support/command_line.hpp"
#include "tools/support/device.hpp"
#include "tools/support/program.hpp"

namespace {

using namespace uptempo;

std::vector<uint32_t> expected_from(std::vector<uint32_t> keys, bool descending) {
  if (descending) {
    std::ranges::sort(keys, std::greater{});
  } else {
    std::ranges::sort(keys);
  }
  return keys;
}

support::ExitCode run(const sort::Options& options, int argc, char** argv) {
  const std::vector<sort::Rung> rungs = sort::rungs(options);
  const sort::Network network = sort::network_for_option(options.length);
  const support::Device device = support::open_device(options.device, argc, argv);
  support::print_report(options.json_file, device.line());

  const std::vector<uint32_t> keys = sort::random_keys(network.length(), options.seed);
  const std::vector<uint32_t> expected =
      options.verify ? expected_from(keys, options.descending) : std::vector<uint32_t>{};
  sort::Sorter sorter(device.gpu, network, options.descending);
  sorter.set_keys(keys);

  support::Progress progress;
  const auto results = sort::measure(
      rungs, options.iterations,
      [&](const sort::Switches& switches) {
        sort::Iteration iteration = sorter.run(switches);
        if (options.verify) iteration.correct = std::ranges::equal(sorter.output(), expected);
        return iteration;
      },
      [&](const std::string& what, uint64_t done, uint64_t of) { progress.show(what, done, of); });
  progress.clear();

  sort::Report report{.device = device.name(),
                      .is_virtual = device.is_virtual,
                      .length = network.length(),
                      .kernels = static_cast<uint32_t>(network.passes().size()),
                      .workgroup = network.workgroup(),
                      .iterations = static_cast<uint32_t>(results.front().iteration_us.size()),
                      .seed = options.seed,
                      .descending = options.descending,
                      .verified = std::nullopt,
                      .rungs = results,
                      .choices = device.runtime.describe() + sorter.queue().describe()};
  if (options.verify)
    report.verified = std::ranges::all_of(
        results, [](const auto& result) { return result.wrong_iterations == 0; });

  support::print_report(options.json_file, sort::table(report));
  if (!options.json_file.empty()) support::write_output(options.json_file, sort::json_text(report));
  if (!options.svg_file.empty()) support::write_output(options.svg_file, sort::svg(report));
  return report.verified.value_or(true) ? support::exit_ok : support::exit_measured_failure;
}

}  // namespace

int main(int argc, char** argv) {
  support::CommandLine app(
      "bitonic_sort",
      "Sorts keys on the GPU, one kernel dispatch per pass of a bitonic sort, and\n"
      "shows the effect of five switches that make dispatches cheaper. Without a switch\n"
      "it runs the ladder: the baseline, then one more switch per rung.");
  sort::Options options;
  sort::declare(app, options);
  return support::run_program(app, argc, argv, [&] { return run(options, argc, argv); });
}
