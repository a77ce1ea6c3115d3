#include "tools/fence_scope/subject.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "tools/fence_scope/sequence/program_file.hpp"

namespace uptempo::fence_scope {

void add_subject_options(CLI::App& command, Subject& subject, bool sized) {
  CLI::Option* workload =
      command
          .add_option("--workload", subject.workload,
                      fmt::format("A built-in sequence, see --list ({})", subject.workload))
          ->type_name("NAME");
  CLI::Option* program =
      command.add_option("--program", subject.program_file, "A sequence of your own, see README.md")
          ->type_name("FILE")
          ->excludes(workload);
  if (!sized) return;
  command.add_option("--kernels", subject.shape.kernels, "Kernels of the workload (its own choice)")
      ->type_name("N")
      ->excludes(program);
  command.add_option("--bytes", subject.shape.bytes_per_kernel, "Bytes that a kernel writes: 4096, 64K, 1M")
      ->transform(CLI::AsSizeValue(false).description(""))
      ->type_name("BYTES")
      ->excludes(program);
}

Sequence sequence_of(const Subject& subject) {
  return subject.program_file.empty() ? make_workload(subject.workload, subject.shape)
                                      : read_program_file(subject.program_file);
}

std::string list_of_workloads() {
  std::string text;
  for (const Workload& workload : workloads())
    text += fmt::format("{:<18}{}\n", workload.name, workload.description);
  return text;
}

}  // namespace uptempo::fence_scope
