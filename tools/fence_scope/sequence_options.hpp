// What an experiment is to be made on, as the command line has it: a built-in workload of some size, or the user's own program.
#pragma once

#include <string>

#include "tools/fence_scope/sequence/sequence.hpp"
#include "tools/fence_scope/sequence/workloads.hpp"

namespace CLI {
class App;
}

namespace uptempo::fence_scope {

struct SequenceOptions {
  std::string workload;  // of workloads()
  Shape shape{};
  std::string program_file;  // takes the place of a workload
};

// --workload, --program; and with `sized` --kernels and --bytes.
void add_sequence_options(CLI::App& command, SequenceOptions& sequence_options, bool sized);

// Throws support::UsageError where there is no such thing.
Sequence sequence_of(const SequenceOptions& sequence_options);

// A line for each workload.
std::string list_of_workloads();

}  // namespace uptempo::fence_scope
