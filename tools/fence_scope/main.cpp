#include <fmt/format.h>

#include <algorithm>

#include "tools/fence_scope/commands.hpp"
#include "tools/fence_scope/report/report_json.hpp"
#include "tools/fence_scope/sequence_options.hpp"
#include "tools/fence_scope/trace/run_trace.hpp"
#include "tools/fence_scope/verdict/checker_advice.hpp"
#include "tools/fence_scope/verdict/judge.hpp"
#include "tools/support/command_line.hpp"

namespace {

using namespace uptempo;
using namespace uptempo::fence_scope;

Commands declare_all(support::CommandLine& app) {
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
  support::CommandLine app("fence_scope", "A report's command");
  const Commands commands = declare_all(app);
  try {
    if (app.parse(arguments)) throw support::UsageError("it asks for help");
  } catch (const support::UsageError& error) {
    throw support::UsageError(file +
                              ": this version cannot run the report's command: " + error.what());
  }
  return run_parsed(commands, {.argc = argc, .argv = argv, .arguments = arguments});
}

support::ExitCode list(const Commands& commands) {
  std::string text = "Commands:\n";
  for (const auto& [command, run] : commands)
    text += fmt::format("{:<18}{}\n", command->name(), command->description());
  support::print(text + "\nWorkloads:\n" + list_of_workloads());
  return support::exit_ok;
}

}  // namespace

int main(int argc, char** argv) {
  if (const auto status = run_judge_process(argc, argv)) return *status;
  if (const auto status = run_trace_process(argc, argv)) return *status;
  if (const auto status = run_advice_process(argc, argv)) return *status;
  support::CommandLine app(
      "fence_scope",
      "Finds the barrier bits and fence scopes that a sequence of dispatches needs, and their "
      "cost.");
  app.require_commands(0, 1);
  const Commands commands = declare_all(app);
  bool listed = false;
  std::string replayed;
  Outputs outputs;
  app.flag("--list", listed, "List the commands and the built-in workloads");
  support::Option replay_option =
      app.option("--replay", replayed, "Run the command of a report again, with its seed")
          .placeholder("REPORT.json");
  for (support::Option output : add_output_options(app, outputs)) output.needs(replay_option);
  return support::run_program(app, argc, argv, [&] {
    if (listed) return list(commands);
    if (!replayed.empty()) return replay(replayed, outputs, argc, argv);
    return run_parsed(commands, {.argc = argc, .argv = argv, .arguments = {argv + 1, argv + argc}});
  });
}
