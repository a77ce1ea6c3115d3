// The commands of fence_scope. Each function declares one as a subcommand of `app` and adds it to
// `commands`. Parsing stores the files that the call names in `files`, which must outlive the
// commands. A command returns the exit code: exit_measured_failure if a device broke a promise of
// the rules.
#pragma once

#include "tools/fence_scope/command_line.hpp"

namespace uptempo::fence_scope {

void declare_ladder(support::CommandLine& app, Commands& commands, Files& files);
void declare_scopes(support::CommandLine& app, Commands& commands, Files& files);
void declare_sweep(support::CommandLine& app, Commands& commands, Files& files);
void declare_explain(support::CommandLine& app, Commands& commands, Files& files);
void declare_litmus(support::CommandLine& app, Commands& commands);
void declare_compare(support::CommandLine& app, Commands& commands);

}  // namespace uptempo::fence_scope
