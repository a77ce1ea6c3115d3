#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "tools/fence_scope/commands.hpp"
#include "tools/fence_scope/report/report_json.hpp"
#include "tools/fence_scope/sequence_options.hpp"
#include "tools/fence_scope/trace/run_trace.hpp"
#include "tools/fence_scope/verdict/checker_advice.hpp"
#include "tools/fence_scope/verdict/judge.hpp"

namespace {

using namespace uptempo;
using namespace uptempo::fence_scope;

Commands declare_all(CLI::App& app) {
  Commands commands;
  for (const auto declare : {declare_ladder, declare_scopes, declare_sweep, declare_explain,
                             declare_litmus, declare_compare})
    declare(app, commands);
  return commands;
}

support::ExitCode run_parsed(const Commands& commands, const Invocation& call) {
  const auto chosen =
      std::ranges::find_if(commands, [](const auto& each) { return each.first->parsed(); });
  if (chosen == commands.end())
    throw support::UsageError("give a command, --list or --replay (see --help)");
  return chosen->second(call);
}

// Runs the command of a report, with its seed, on the same kind of device. Writes the outputs of
// this call, not those of the report's call.
support::ExitCode replay(const std::string& file, const Outputs& outputs, int argc, char** argv) {
  const std::vector<std::string> arguments = with_outputs(read_report(file).command, outputs);
  CLI::App app("A report's command", "fence_scope");
  const Commands commands = declare_all(app);
  try {
    app.parse(
        // CLI11 takes them in reverse order
        std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    throw support::UsageError(file +
                              ": this version cannot run the report's command: " + error.what());
  }
  return run_parsed(commands, {.argc = argc, .argv = argv, .arguments = arguments});
}

support::ExitCode list(const Commands& commands) {
  std::cout << "Commands:\n";
  for (const auto& [command, run] : commands)
    fmt::print("{:<18}{}\n", command->get_name(), command->get_description());
  std::cout << "\nWorkloads:\n" << list_of_workloads() << std::flush;
  return support::exit_ok;
}

}  // namespace

int main(int argc, char** argv) {
  if (const auto status = run_judge_process(argc, argv)) return *status;
  if (const auto status = run_trace_process(argc, argv)) return *status;
  if (const auto status = run_advice_process(argc, argv)) return *status;
  CLI::App app(
      "Finds the barrier bits and fence scopes that a sequence of dispatches needs, and their "
      "cost.",
      "fence_scope");
  app.require_subcommand(0, 1);
  const Commands commands = declare_all(app);
  bool listed = false;
  std::string replayed;
  Outputs outputs;
  app.add_flag("--list", listed, "List the commands and the built-in workloads");
  CLI::Option* replay_option =
      app.add_option("--replay", replayed, "Run the command of a report again, with its seed")
          ->type_name("REPORT.json");
  for (CLI::Option* output : add_output_options(app, outputs)) output->needs(replay_option);
  return support::run_program(app, argc, argv, [&] {
    if (listed) return list(commands);
    if (!replayed.empty()) return replay(replayed, outputs, argc, argv);
    return run_parsed(commands, {.argc = argc, .argv = argv, .arguments = {argv + 1, argv + argc}});
  });
}
