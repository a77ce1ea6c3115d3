#include "tools/fence_scope/sequence_options.hpp"

#include <fmt/format.h>

#include "tools/fence_scope/sequence/program_file.hpp"
#include "tools/support/command_line.hpp"

namespace uptempo::fence_scope {

void add_sequence_options(support::CommandLine& command, SequenceOptions& sequence_options,
                          bool sized) {
  support::Option workload =
      command
          .option("--workload", sequence_options.workload,
                  fmt::format("A built-in sequence, see --list ({})", sequence_options.workload))
          .placeholder("NAME");
  support::Option program = command
                                .option("--program", sequence_options.program_file,
                                        "A sequence from a JSON file, see PROGRAM_FILES.md")
                                .placeholder("FILE")
                                .excludes(workload);
  if (!sized) return;
  command
      .option("--kernels", sequence_options.shape.kernels,
              "Kernels of the workload (the workload's default)")
      .placeholder("N")
      .excludes(program);
  command
      .option("--bytes", sequence_options.shape.bytes_per_kernel,
              "Bytes that a kernel writes, for example 4096, 64K, 1M")
      .sizes()
      .placeholder("BYTES")
      .excludes(program);
}

Sequence sequence_of(const SequenceOptions& sequence_options) {
  return sequence_options.program_file.empty()
             ? make_workload(sequence_options.workload, sequence_options.shape)
             : read_program_file(sequence_options.program_file);
}

std::string list_of_workloads() {
  std::string text;
  for (const Workload& workload : workloads())
    text += fmt::format("{:<18}{}\n", workload.name, workload.description);
  return text;
}

}  // namespace uptempo::fence_scope
