// Command-line options for the sequence of an experiment: a built-in workload of some size, or a
// program file.
#pragma once

#include <string>

#include "tools/fence_scope/sequence/sequence.hpp"
#include "tools/fence_scope/sequence/workloads.hpp"

namespace uptempo::support {
class CommandLine;
}

namespace uptempo::fence_scope {

struct SequenceOptions {
  std::string workload;  // a name of workloads()
  Shape shape{};
  std::string program_file;  // replaces the workload
};

// Adds --workload and --program; with `sized` also --kernels and --bytes.
void add_sequence_options(support::CommandLine& command, SequenceOptions& sequence_options,
                          bool sized);

// Throws support::UsageError if the workload or file does not exist or is invalid.
Sequence sequence_of(const SequenceOptions& sequence_options);

// One line per workload.
std::string list_of_workloads();

}  // namespace uptempo::fence_scope
