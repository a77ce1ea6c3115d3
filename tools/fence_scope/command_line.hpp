// Shared by the commands of fence_scope: declaring and calling them, writing reports, and repeating
// a report's command.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tools/fence_scope/report/report.hpp"
#include "tools/fence_scope/run/measure.hpp"
#include "tools/fence_scope/sequence/workloads.hpp"
#include "tools/support/command_line.hpp"
#include "tools/support/device.hpp"
#include "tools/support/program.hpp"

namespace uptempo::fence_scope {

// Files for a report or, with `trace`, for one run. "" is none; "-" is standard output, which then
// carries nothing else.
struct Outputs {
  std::string json, csv, html, trace;
};
// All files that a call names. A replayed report chooses none of them.
struct Files : Outputs {
  std::string program;  // sequence/program_file.hpp; replaces the workload
};

// The program's arguments. A command that chooses its device may have to execute the program again,
// under uptempo-vgpu.
struct Invocation {
  int argc;
  char** argv;
  const support::CommandLine& command;  // parsed from argv or from a replayed report
  const Files& files;
  double begun = steady_seconds();  // the run's seconds count from here
};

// Subcommands with the functions that run them after parsing.
using Commands = std::vector<
    std::pair<support::CommandLine*, std::function<support::ExitCode(const Invocation&)>>>;

std::vector<support::Option> add_output_options(support::CommandLine& command, Outputs& outputs);
// Whether text for people is printed: not if an output uses standard output. Throws
// support::UsageError if two outputs do.
bool prints_text(const Outputs& outputs);
// Prints `text` and writes the report in the requested forms. Throws std::runtime_error naming a
// file that cannot be written.
void publish(const Report& report, const Outputs& outputs, const std::string& text);

// For commands without a run to trace: throws support::UsageError with the reason if --trace was
// given.
void refuse_trace(const Outputs& outputs, const std::string& reason);

// The sequence of an experiment: a built-in workload of some size, or a program file.
struct SequenceOptions {
  std::string workload;  // a name of workloads()
  Shape shape{};
};

// Adds --workload and --program; with `sized` also --kernels and --bytes.
void add_sequence_options(support::CommandLine& command, SequenceOptions& sequence_options,
                          std::string& program_file, bool sized);

// Adds --program alone. A report's command may hold it, because without it the command is another;
// a replay reads the file that its own call names.
support::Option add_program_option(support::CommandLine& command, std::string& program_file);

// The sequence of the file, or if `program_file` is "", the workload. Throws support::UsageError if
// the workload or file does not exist or is invalid.
Sequence sequence_of(const SequenceOptions& sequence_options, const std::string& program_file);

// One line per workload.
std::string list_of_workloads();

// --seed, --rounds, --seconds, --precision.
void add_method_options(support::CommandLine& command, Method& method);

// The name of the command and its repeatable options, with the seed and device chosen at run time,
// so that the command can be repeated later.
std::vector<std::string> repeatable(const support::CommandLine& command, uint64_t seed,
                                    bool on_virtual_gpu);

// A warning of a report that SIGINT or SIGTERM has cut short.
inline constexpr const char* kInterruptedWarning =
    "interrupted: the report holds what was measured before";

// Fills `device`, `target`, `time_kind`, `versions` and `environment`. The versions are "uptempo",
// "hsa", "rocr" (its library's name holds the version), "rocr build", "kernel driver" and
// "operating system"; unknown ones are left out.
//
// Thread safety: any thread, but not concurrently with setenv().
// Lifetime: within that of the device's Runtime.
void describe_machine(Report& report, const support::Device& device);

// A report with device, versions, command and seed.
Report begin_report(const std::string& experiment, const Invocation& call,
                    const support::Device& device, uint64_t seed);

// The commands of fence_scope. Each function declares one as a subcommand of `app` and adds it to
// `commands`. Parsing stores the files that the call names in `files`, which must outlive the
// commands. A command returns the exit code: exit_measured_failure if a device broke a promise of
// the rules.
void declare_ladder(support::CommandLine& app, Commands& commands, Files& files);
void declare_scopes(support::CommandLine& app, Commands& commands, Files& files);
void declare_sweep(support::CommandLine& app, Commands& commands, Files& files);
void declare_explain(support::CommandLine& app, Commands& commands, Files& files);
void declare_litmus(support::CommandLine& app, Commands& commands);
void declare_compare(support::CommandLine& app, Commands& commands);

}  // namespace uptempo::fence_scope
