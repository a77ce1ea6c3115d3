#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "samples/bitonic_sort/sorter.hpp"
#include "tools/bench/sort_vs_pocl/comparison.hpp"
#include "tools/bench/sort_vs_pocl/curve.hpp"
#include "tools/bench/sort_vs_pocl/pocl_sort.hpp"
#include "tools/support/command_line.hpp"
#include "tools/support/device.hpp"
#include "tools/support/interrupt.hpp"
#include "tools/support/program.hpp"

namespace {

using namespace uptempo;

struct Options {
  int64_t length = 32768;
  uint32_t pairs = 40;
  double max_ratio = 0;
  bool curve = false;
  std::string device = "virtual";
  std::string json_file;
};

void require_sorted(std::span<const uint32_t> result, std::span<const uint32_t> expected,
                    const char* whose) {
  if (!std::ranges::equal(result, expected))
    throw std::runtime_error(
        fmt::format("{} did not sort: its result differs from std::sort of the input", whose));
}

sort::Network network_of(const Options& options) {
  try {
    return sort::Network(options.length);
  } catch (const std::invalid_argument& error) {
    throw support::UsageError(std::string("--length: ") + error.what());
  }
}

support::ExitCode run(const Options& options, int argc, char** argv) {
  const sort::Network network = network_of(options);
  const support::Device device = support::open_device(options.device, argc, argv);
  support::print_report(options.json_file, device.line());
  bench::PoclSort pocl(network.length());

  const std::vector<uint32_t> keys = sort::random_keys(network.length(), 1);
  std::vector<uint32_t> expected = keys;
  std::ranges::sort(expected);
  sort::Sorter sorter(device.gpu, network, false);
  sorter.set_keys(keys);

  const auto ours = [&] {
    const double us = sorter.run(sort::kFullyOptimised).us;
    require_sorted(sorter.output(), expected, "Uptempo");
    return us;
  };
  const auto peer = [&] {
    std::vector<uint32_t> copy = keys;
    const std::chrono::duration<double, std::micro> elapsed = pocl.sort(copy);
    require_sorted(copy, expected, "PoCL");
    return elapsed.count();
  };
  // Untimed: at the first launch PoCL compiles for the workgroup size and the virtual GPU decodes
  // the kernel.
  ours();
  peer();

  support::Progress progress;
  const bench::SortComparisonReport report{
      .device = device.name(),
      .is_virtual = device.is_virtual,
      .peer_device = pocl.device(),
      .peer_version = pocl.version(),
      .length = network.length(),
      .kernels = static_cast<uint32_t>(network.passes().size()),
      .cores = support::usable_cores(),
      .comparison =
          bench::compare(options.pairs, ours, peer, [&](const std::string& what, uint32_t done) {
            progress.show(what, done, options.pairs);
          })};
  progress.clear();
  support::print_report(options.json_file, bench::table(report));
  support::write_json(options.json_file, bench::json(report));
  if (options.max_ratio > 0 && report.comparison.ratio().median > options.max_ratio)
    throw std::runtime_error(fmt::format("the ratio is {:.2f}, above --max-ratio {:.2f}",
                                         report.comparison.ratio().median, options.max_ratio));
  return support::exit_ok;
}

support::ExitCode run_curve(const Options& options) {
  support::Progress progress;
  std::vector<nlohmann::ordered_json> results;
  const support::InterruptWatch watch;
  const std::vector<uint32_t> counts = bench::core_counts(support::usable_cores());
  for (const uint32_t cores : counts) {
    if (support::interrupted()) break;
    progress.show(fmt::format("on {} cores", cores), results.size(), counts.size());
    try {
      results.push_back(bench::run_on_cores(
          {std::filesystem::read_symlink("/proc/self/exe"), "--length",
           std::to_string(options.length), "--pairs", std::to_string(options.pairs), "--device",
           options.device, "--json", "-"},
          cores));
    } catch (const std::runtime_error&) {
      if (!support::interrupted()) throw;
    }
  }
  progress.clear();
  support::print_report(options.json_file, bench::curve_table(results));
  support::write_json(options.json_file, nlohmann::ordered_json{{"curve", results}});
  return support::exit_ok;
}

}  // namespace

int main(int argc, char** argv) {
  support::CommandLine app(
      "sort_vs_pocl",
      "Compares the wall time of the fully optimised bitonic sort with PoCL's, which runs the "
      "same\n"
      "kernel source on the host's cores.");
  Options options;
  app.option("--length N", options.length, "Keys: a power of two from 2 to 2^24 (32768)");
  app.option("--pairs N", options.pairs, "Pairs of runs, at least 20 (40)").range(20u, 100000u);
  app.option("--max-ratio R", options.max_ratio,
             "Exit with 1 if the ratio Uptempo / PoCL is above R")
      .positive();
  app.flag("--curve", options.curve,
           "Compare on 1, 2, 4, ... cores and on all, each in a process of its own");
  support::add_device_option(app, options.device);
  support::add_json_option(app, options.json_file);
  return support::run_program(app, argc, argv, [&] {
    return options.curve ? run_curve(options) : run(options, argc, argv);
  });
}
