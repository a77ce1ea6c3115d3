#include <algorithm>
#include <nlohmann/json.hpp>

#include "bitonic_sort/options.hpp"
#include "bitonic_sort/report.hpp"
#include "bitonic_sort/sorter.hpp"
#include "fence_scope/scopes.hpp"
#include "support/device.hpp"
#include "support/program.hpp"

namespace {

using namespace uptempo;

struct Options {
  int64_t length = 32768;
  uint32_t iterations = 20;
  uint64_t seed = 1;
  std::string device = "auto";
  std::string json_file;
};

void declare(CLI::App& command, Options& options) {
  command.add_option("--length", options.length, "Keys: a power of two from 2 to 2^24 (32768)")
      ->type_name("N");
  command.add_option("--iterations", options.iterations, "Timed sorts for each line (20)")
      ->check(CLI::Range(1u, 1000000u).description(""))
      ->type_name("N");
  command.add_option("--seed", options.seed, "Seed of the random keys (1)")->type_name("N");
  support::add_device_option(command, options.device);
  support::add_json_option(command, options.json_file);
}

// The sort that both experiments are made on, and its verdict.
class Experiment {
 public:
  Experiment(const Options& options, int argc, char** argv)
      : network_(sort::network_for_option(options.length)),
        device_(support::open_device(options.device, argc, argv)),
        sorter_(device_.gpu, network_, false),
        sorted_(sort::random_keys(network_.length(), options.seed)) {
    sorter_.set_keys(sorted_);
    std::ranges::sort(sorted_);
  }

  const sort::Network& network() const { return network_; }
  const support::Device& device() const { return device_; }
  sort::Sorter& sorter() { return sorter_; }
  sort::Iteration judged(sort::Iteration iteration) const {
    iteration.correct = std::ranges::equal(sorter_.output(), sorted_);
    return iteration;
  }

 private:
  sort::Network network_;
  support::Device device_;
  sort::Sorter sorter_;
  std::vector<uint32_t> sorted_;
};

support::ExitCode run_ladder(const Options& options, int argc, char** argv) {
  Experiment experiment(options, argc, argv);
  support::print_report(options.json_file, experiment.device().line());
  support::Progress progress;
  const auto results = sort::measure(
      sort::ladder(), options.iterations,
      [&](const sort::Switches& switches) { return experiment.judged(experiment.sorter().run(switches)); },
      [&](const std::string& what) { progress.show(what); });
  progress.clear();

  const bool correct =
      std::ranges::all_of(results, [](const auto& result) { return result.wrong_iterations == 0; });
  const sort::Report report{.device = experiment.device().name(),
                            .is_virtual = experiment.device().is_virtual,
                            .length = experiment.network().length(),
                            .kernels = static_cast<uint32_t>(experiment.network().passes().size()),
                            .workgroup = experiment.network().workgroup(),
                            .iterations = options.iterations,
                            .seed = options.seed,
                            .descending = false,
                            .verified = correct,
                            .rungs = results};
  support::print_report(options.json_file, sort::table(report));
  if (!options.json_file.empty()) support::write_output(options.json_file, sort::json(report).dump(2) + '\n');
  return correct ? support::exit_ok : support::exit_measured_failure;
}

support::ExitCode run_scopes(const Options& options, int argc, char** argv) {
  Experiment experiment(options, argc, argv);
  support::print_report(options.json_file, experiment.device().line());
  support::Progress progress;
  const auto results = fence_scope::measure(
      options.iterations,
      [&](const aql::HeaderFlags& interior) {
        return experiment.judged(experiment.sorter().run_with_interior(interior));
      },
      [&](const std::string& what) { progress.show(what); });
  progress.clear();

  const fence_scope::ScopesReport report{
      .device = experiment.device().name(),
      .is_virtual = experiment.device().is_virtual,
      .length = experiment.network().length(),
      .kernels = static_cast<uint32_t>(experiment.network().passes().size()),
      .iterations = options.iterations,
      .seed = options.seed,
      .variants = results};
  support::print_report(options.json_file, fence_scope::table(report));
  if (!options.json_file.empty())
    support::write_output(options.json_file, fence_scope::json(report).dump(2) + '\n');
  const bool broken =
      std::ranges::any_of(results, [](const auto& result) { return result.broken_promise(); });
  return broken ? support::exit_measured_failure : support::exit_ok;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Experiments with barrier bits and fence scopes, on a bitonic sort.", "fence_scope");
  app.require_subcommand(1);
  Options options;
  CLI::App* ladder = app.add_subcommand("ladder", "Baseline, then one optimisation more on each line");
  declare(*ladder, options);
  CLI::App* scopes =
      app.add_subcommand("scopes", "Barrier bit x acquire x release, for all packets in between");
  declare(*scopes, options);
  return support::run_program(app, argc, argv, [&] {
    return ladder->parsed() ? run_ladder(options, argc, argv) : run_scopes(options, argc, argv);
  });
}
