// What the commands of fence_scope have in common: how they are declared and called, where reports go, and how a report's command is repeated.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tools/fence_scope/run/measure.hpp"
#include "tools/fence_scope/report/report.hpp"
#include "tools/support/device.hpp"
#include "tools/support/program.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace uptempo::fence_scope {

// What the program was called with. A command that chooses its device may have to start the program again, under uptempo-vgpu.
struct Invocation {
  int argc;
  char** argv;
  std::vector<std::string>
      arguments;  // of the command, its name first: those of argv, or of a report that is replayed
};

// Subcommands with what carries them out once their arguments have been parsed.
using Commands = std::vector<std::pair<CLI::App*, std::function<support::ExitCode(const Invocation&)>>>;

// Files that a report, or with `trace` one run, is written to; "" for none, "-" for standard output, which then carries nothing else.
struct Outputs {
  std::string json, csv, html, trace;
};
std::vector<CLI::Option*> add_output_options(CLI::App& command, Outputs& outputs);
// Ahead of an experiment that takes long. Throws support::UsageError for files that cannot be written, and where two outputs go to standard output.
void require_writable(const Outputs& outputs);
// Text for people goes to standard output unless one of the outputs does. At most one may: throws support::UsageError.
bool prints_text(const Outputs& outputs);
// Writes the report in the forms that were asked for, after `text`. Throws std::runtime_error naming a file that cannot be written.
void publish(const Report& report, const Outputs& outputs, const std::string& text);

// For commands that have no run to trace: throws support::UsageError with the reason if --trace was given.
void refuse_trace(const Outputs& outputs, const std::string& reason);

// --seed, --rounds, --seconds, --precision.
void add_method_options(CLI::App& command, Method& method);

// `arguments` without outputs, and with what was settled at run time: the same again on another day.
std::vector<std::string> repeatable(const std::vector<std::string>& arguments, uint64_t seed,
                                    bool on_virtual_gpu);
// Those with `outputs`.
std::vector<std::string> with_outputs(std::vector<std::string> arguments, const Outputs& outputs);

// A report with device, versions, command and seed filled in.
Report begin_report(const std::string& experiment, const Invocation& call, const support::Device& device,
                    uint64_t seed);

}  // namespace uptempo::fence_scope
