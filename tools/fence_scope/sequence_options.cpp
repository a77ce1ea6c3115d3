#include "tools/fence_scope/sequence_options.hpp"

#include <fmt/format.h>

#include "tools/fence_scope/sequence/program_file.hpp"
#include "tools/support/command_line.hpp"

namespace uptempo::fence_scope {

support::Option add_program_option(support::CommandLine& command, std::string& program_file) {
  return command
      .option("--program FILE", program_file, "A sequence from a JSON file, see PROGRAM_FILES.md")
      .repeatable();
}

void add_sequence_options(support::CommandLine& command, SequenceOptions& sequence_options,
                          std::string& program_file, bool sized) {
  support::Option workload =
      command
          .option("--workload NAME", sequence_options.workload,
                  fmt::format("A built-in sequence, see --list ({})", sequence_options.workload))
          .repeatable();
  support::Option program = add_program_option(command, program_file).excludes(workload);
  if (!sized) return;
  command
      .option("--kernels N", sequence_options.shape.kernels,
              "Kernels of the workload (the workload's default)")
      .repeatable()
      .excludes(program);
  command
      .option("--bytes BYTES", sequence_options.shape.bytes_per_kernel,
              "Bytes that a kernel writes, for example 4096, 64K, 1M")
      .sizes()
      .repeatable()
      .excludes(program);
}

Sequence sequence_of(const SequenceOptions& sequence_options, const std::string& program_file) {
  return program_file.empty() ? make_workload(sequence_options.workload, sequence_options.shape)
                              : read_program_file(program_file);
}

std::string list_of_workloads() {
  std::string text;
  for (const Workload& workload : workloads())
    text += fmt::format("{:<18}{}\n", workload.name, workload.description);
  return text;
}

}  // namespace uptempo::fence_scope
