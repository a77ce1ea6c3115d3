#include <memory>
#include <nlohmann/json.hpp>

#include "tools/fence_scope/command_line.hpp"
#include "tools/litmus/corpus.hpp"
#include "tools/litmus/report.hpp"
#include "tools/litmus/runner.hpp"
#include "tools/support/command_line.hpp"
#include "tools/support/interrupt.hpp"
#include "tools/support/software.hpp"

namespace uptempo::fence_scope {
namespace {

struct LitmusOptions {
  uint32_t iterations = 10;
  std::string filter;
  std::string device = "auto";
  std::string json_file;
  bool list = false;
};

void add_options(support::CommandLine& command, LitmusOptions& options) {
  command.option("--iterations N", options.iterations, "Runs of each test, of 1024 words each (10)")
      .range(1u, 1000000u);
  command.option("--filter NAME", options.filter, "Only tests whose name contains NAME");
  command.flag("--list", options.list, "List the tests and their verdicts; run none");
  support::add_device_option(command, options.device);
  support::add_json_option(command, options.json_file);
}

std::vector<litmus::Test> chosen_tests(const LitmusOptions& options) {
  std::vector<litmus::Test> tests = litmus::corpus();
  std::erase_if(tests, [&](const litmus::Test& test) {
    return test.name.find(options.filter) == std::string::npos;
  });
  if (tests.empty())
    throw support::UsageError("--filter: no litmus test has '" + options.filter +
                              "' in its name (see --list)");
  return tests;
}

support::ExitCode run_litmus(const LitmusOptions& options, const Invocation& call) {
  const std::vector<litmus::Test> tests = chosen_tests(options);
  if (options.list) {
    std::string text;
    for (const litmus::Test& test : tests)
      text += test.name + "  " + std::string(name_of(verdict_of(hazards_of(test)))) + '\n';
    support::print(text);
    return support::exit_ok;
  }
  const support::Device device = support::open_device(options.device, call.argc, call.argv);
  support::print_report(options.json_file, device.line());
  litmus::Report report{.device = device.name(),
                        .target = device.gpu.name(),
                        .is_virtual = device.is_virtual,
                        .software = support::describe_software(),
                        .iterations = options.iterations,
                        .results = {}};
  const litmus::CacheRules rules =
      litmus::cache_rules_of(report.target).value_or(litmus::CacheRules::gfx9);
  const support::InterruptWatch watch;
  litmus::Runner runner(device.gpu);
  support::Progress progress;
  for (const litmus::Test& test : tests) {
    if (support::interrupted()) break;
    progress.show(test.name, report.results.size(), tests.size());
    litmus::Counter counter(test);
    for (uint32_t i = 0; i < options.iterations && !support::interrupted(); ++i)
      counter.add(runner.run(test, i).outcome);
    const litmus::Verdict verdict = verdict_of(hazards_of(test, rules));
    report.results.push_back({test.name, verdict, counter.entries()});
  }
  progress.clear();
  report.interrupted = support::interrupted();

  support::print_report(options.json_file, litmus::table(report));
  support::write_json(options.json_file, litmus::json(report));
  return report.passed() ? support::exit_ok : support::exit_measured_failure;
}

}  // namespace

void declare_litmus(support::CommandLine& app, Commands& commands) {
  const auto options = std::make_shared<LitmusOptions>();
  support::CommandLine& command =
      app.command("litmus", "Run small tests of order and fences and count their outcomes");
  add_options(command, *options);
  commands.emplace_back(&command,
                        [options](const Invocation& call) { return run_litmus(*options, call); });
}

}  // namespace uptempo::fence_scope
