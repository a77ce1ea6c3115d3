// Command-line options for the sequence of an experiment: a built-in workload of some size, or a
// program file.
#pragma once

#include <string>

#include "tools/fence_scope/sequence/sequence.hpp"
#include "tools/fence_scope/sequence/workloads.hpp"

namespace uptempo::support {
class CommandLine;
class Option;
}  // namespace uptempo::support

namespace uptempo::fence_scope {

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

}  // namespace uptempo::fence_scope
