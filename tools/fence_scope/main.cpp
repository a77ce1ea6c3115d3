#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "bitonic_sort/options.hpp"
#include "bitonic_sort/report.hpp"
#include "bitonic_sort/sorter.hpp"
#include "fence_scope/scopes.hpp"
#include "litmus/corpus.hpp"
#include "litmus/report.hpp"
#include "litmus/runner.hpp"
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

struct LitmusOptions {
  uint32_t iterations = 10;
  std::string filter;
  std::string report_file;
  std::string device = "auto";
  std::string json_file;
  bool list = false;
};

void declare(CLI::App& command, LitmusOptions& options) {
  command.add_option("--iterations", options.iterations, "Runs of each test, of 1024 words each (10)")
      ->check(CLI::Range(1u, 1000000u).description(""))
      ->type_name("N");
  command.add_option("--filter", options.filter, "Only tests whose name contains this")->type_name("NAME");
  command.add_flag("--list", options.list, "Name the tests and what is allowed of each; run none");
  command.add_option("--report", options.report_file, "Also write the JSON to FILE, to be sent")
      ->type_name("FILE");
  support::add_device_option(command, options.device);
  support::add_json_option(command, options.json_file);
}

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

std::vector<litmus::Test> chosen_tests(const LitmusOptions& options) {
  std::vector<litmus::Test> tests = litmus::corpus();
  std::erase_if(
      tests, [&](const litmus::Test& test) { return test.name.find(options.filter) == std::string::npos; });
  if (tests.empty())
    throw support::UsageError("--filter: no litmus test has '" + options.filter +
                              "' in its name (see --list)");
  return tests;
}

support::ExitCode run_litmus(const LitmusOptions& options, int argc, char** argv) {
  const std::vector<litmus::Test> tests = chosen_tests(options);
  if (options.list) {
    for (const litmus::Test& test : tests)
      std::cout << test.name << "  " << name_of(verdict_of(hazards_of(test))) << '\n';
    return support::exit_ok;
  }
  const support::Device device = support::open_device(options.device, argc, argv);
  support::print_report(options.json_file, device.line());
  litmus::Report report{.machine = litmus::describe_machine(device.gpu, device.name(), device.is_virtual),
                        .iterations = options.iterations,
                        .results = {}};
  litmus::Runner runner(device.gpu);
  support::Progress progress;
  for (const litmus::Test& test : tests) {
    progress.show(test.name);
    litmus::Counter counter(test);
    for (uint32_t i = 0; i < options.iterations; ++i) counter.add(runner.run(test, i).outcome);
    report.results.push_back({test.name, verdict_of(hazards_of(test)), counter.entries()});
  }
  progress.clear();

  support::print_report(options.json_file, litmus::table(report));
  const std::string text = litmus::json(report).dump(2) + '\n';
  if (!options.json_file.empty()) support::write_output(options.json_file, text);
  if (!options.report_file.empty()) support::write_output(options.report_file, text);
  return report.passed() ? support::exit_ok : support::exit_measured_failure;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Experiments with barrier bits and fence scopes.", "fence_scope");
  app.require_subcommand(1);
  Options options;
  CLI::App* ladder =
      app.add_subcommand("ladder", "A bitonic sort: baseline, then one optimisation more on each line");
  declare(*ladder, options);
  CLI::App* scopes = app.add_subcommand(
      "scopes", "The same sort: barrier bit x acquire x release, for all packets in between");
  declare(*scopes, options);
  LitmusOptions litmus_options;
  CLI::App* litmus =
      app.add_subcommand("litmus", "Small tests of what fences promise, each with its allowed outcomes");
  declare(*litmus, litmus_options);
  return support::run_program(app, argc, argv, [&] {
    if (litmus->parsed()) return run_litmus(litmus_options, argc, argv);
    return ladder->parsed() ? run_ladder(options, argc, argv) : run_scopes(options, argc, argv);
  });
}
