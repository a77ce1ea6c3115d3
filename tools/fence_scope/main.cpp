#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/fence_scope/command_line.hpp"
#include "tools/fence_scope/report/report_json.hpp"
#include "tools/fence_scope/run/vgpu_process.hpp"
#include "tools/fence_scope/trace/run_trace.hpp"
#include "tools/fence_scope/verdict/checker_advice.hpp"
#include "tools/fence_scope/verdict/judge.hpp"
#include "tools/support/command_line.hpp"

namespace {

using namespace uptempo;
using namespace uptempo::fence_scope;

// The commands that make reports. A replay knows only these.
Commands declare_repeatable(support::CommandLine& app, Files& files) {
  Commands commands;
  for (const auto declare : {declare_ladder, declare_scopes, declare_sweep, declare_explain})
    declare(app, commands, files);
  return commands;
}

Commands declare_all(support::CommandLine& app, Files& files) {
  Commands commands = declare_repeatable(app, files);
  for (const auto declare : {declare_litmus, declare_compare}) declare(app, commands);
  return commands;
}

support::ExitCode run_parsed(const Commands& commands, int argc, char** argv, const Files& files) {
  const auto chosen =
      std::ranges::find_if(commands, [](const auto& each) { return each.first->parsed(); });
  if (chosen == commands.end())
    throw support::UsageError("give a command, --list or --replay (see --help)");
  return chosen->second({.argc = argc, .argv = argv, .command = *chosen->first, .files = files});
}

// Runs the command of a report, with its seed, on the same kind of device. The report may come from
// a stranger: the files are those of this call, and the command can name no others.
support::ExitCode replay(const std::string& file, const Files& given, int argc, char** argv) {
  const Report report = read_report(file);
  Files files = given;
  files.program.clear();
  support::CommandLine app("fence_scope", "A report's command");
  const Commands commands = declare_repeatable(app, files);
  try {
    app.repeat(report.command);
  } catch (const support::UsageError& error) {
    throw support::UsageError(file + ": a replay cannot run the report's command: " + error.what());
  }
  if (!files.program.empty() && given.program.empty())
    throw support::UsageError(
        fmt::format("{}: the report's command reads '{}'; name the file to read with --program",
                    file, files.program));
  if (files.program.empty() && !given.program.empty())
    throw support::UsageError("--program: the report's command reads no program file");
  files.program = given.program;
  return run_parsed(commands, argc, argv, files);
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
  if (const auto status = run_task(
          argc, argv, {{kJudgeTask, run_cases}, {kTraceTask, trace_case}, {kAdviceTask, advise}}))
    return *status;
  support::CommandLine app(
      "fence_scope",
      "Finds the barrier bits and fence scopes that a sequence of dispatches needs, and their "
      "cost.");
  app.require_commands(0, 1);
  Files files;
  const Commands commands = declare_all(app, files);
  bool listed = false;
  std::string replayed;
  app.flag("--list", listed, "List the commands and the built-in workloads");
  support::Option replay_option = app.option("--replay REPORT.json", replayed,
                                             "Run the command of a report again, with its seed");
  add_program_option(app, files.program).needs(replay_option);
  for (support::Option output : add_output_options(app, files)) output.needs(replay_option);
  return support::run_program(app, argc, argv, [&] {
    if (listed) return list(commands);
    if (!replayed.empty()) return replay(replayed, files, argc, argv);
    return run_parsed(commands, argc, argv, files);
  });
}
