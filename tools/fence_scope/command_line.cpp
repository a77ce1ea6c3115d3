#include "tools/fence_scope/command_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>

#include "tools/fence_scope/report/report_csv.hpp"
#include "tools/fence_scope/report/report_html.hpp"
#include "tools/fence_scope/report/report_json.hpp"
#include "tools/fence_scope/sequence/program_file.hpp"
#include "tools/support/command_line.hpp"
#include "tools/support/software.hpp"

namespace uptempo::fence_scope {
namespace {

struct OutputInfo {
  const char* option;
  const char* help;
  std::string Outputs::*file;
};
constexpr std::array<OutputInfo, 4> kOutputs{
    {{"--json FILE|-", "Write JSON; '-' writes only JSON to standard output", &Outputs::json},
     {"--csv FILE|-", "Write the cells as comma-separated values", &Outputs::csv},
     {"--html FILE|-", "Write a web page: conclusion, matrix, charts", &Outputs::html},
     {"--trace FILE|-", "Write a trace of one run for ui.perfetto.dev and chrome://tracing",
      &Outputs::trace}}};

std::string date_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  char text[32] = "";
  if (gmtime_r(&now, &utc) != nullptr) std::strftime(text, sizeof text, "%F %H:%M UTC", &utc);
  return text;
}

}  // namespace

std::vector<support::Option> add_output_options(support::CommandLine& command, Outputs& outputs) {
  std::vector<support::Option> options;
  for (const OutputInfo& output : kOutputs)
    options.push_back(
        command.option(output.option, outputs.*output.file, output.help).output_file());
  return options;
}

bool prints_text(const Outputs& outputs) {
  const auto taken = std::ranges::count_if(
      kOutputs, [&](const OutputInfo& output) { return outputs.*output.file == "-"; });
  if (taken > 1)
    throw support::UsageError("only one output can use standard output, but two are '-'");
  return taken == 0;
}

void publish(const Report& report, const Outputs& outputs, const std::string& text) {
  if (!outputs.json.empty()) support::write_output(outputs.json, json_text(report));
  if (!outputs.csv.empty()) support::write_output(outputs.csv, csv(report));
  if (!outputs.html.empty()) support::write_output(outputs.html, html(report));
  // Last, because a reader that closes early, such as `head`, ends the program.
  if (prints_text(outputs)) support::print(text);
}

void refuse_trace(const Outputs& outputs, const std::string& reason) {
  if (!outputs.trace.empty()) throw support::UsageError("--trace: " + reason);
}

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

void add_method_options(support::CommandLine& command, Method& method) {
  command
      .option("--seed N", method.seed,
              fmt::format("Seed of the order in which cells take turns ({})", method.seed))
      .repeatable();
  command
      .option(
          "--rounds N", method.most_rounds,
          fmt::format("Most timed runs of each cell, gated and ungated ({})", method.most_rounds))
      .range(1u, 100000u)
      .repeatable();
  command
      .option(
          "--seconds S", [&method](double seconds) { method.run_seconds = seconds; },
          fmt::format("Seconds of the whole run ({} for the rounds alone)", method.seconds))
      .range(0.0, 1e6)
      .repeatable();
  command
      .option(
          "--precision PERCENT", [&method](double percent) { method.precision = percent / 100; },
          fmt::format("Stop when medians are known to +- PERCENT ({:g})", 100 * method.precision))
      .range(0.01, 100.0)
      .repeatable();
}

std::vector<std::string> repeatable(const support::CommandLine& command, uint64_t seed,
                                    bool on_virtual_gpu) {
  std::vector<std::string> words{command.name()};
  for (const std::vector<std::string>& option : command.repeatable_arguments())
    if (option.front() != "--seed" && option.front() != "--device")
      words.insert(words.end(), option.begin(), option.end());
  words.insert(words.end(), {"--seed", std::to_string(seed), "--device",
                             on_virtual_gpu ? "virtual" : "hardware"});
  return words;
}

void describe_machine(Report& report, const support::Device& device) {
  report.date = date_now();
  report.device = device.name();
  report.target = device.gpu.name();
  report.time_kind = device.is_virtual ? TimeKind::virtual_gpu : TimeKind::hardware;
  const support::Software software = support::describe_software();
  report.versions = {{"uptempo", support::version()},
                     {"hsa", software.hsa_version},
                     {"rocr", software.rocr_library},
                     {"rocr build", software.rocr_build},
                     {"operating system", support::operating_system()}};
  // The virtual GPU's driver is part of uptempo. A kernel module of the same name was not measured.
  if (device.is_virtual)
    report.versions["kernel driver"] = "uptempo-vgpu";
  else
    report.versions["kernel driver"] = software.driver.empty()
                                           ? "amdgpu of Linux " + software.kernel
                                           : "amdgpu " + software.driver;
  std::erase_if(report.versions, [](const auto& version) { return version.second.empty(); });
  report.environment = support::environment_of({"HSA_", "ROCR_"});
}

Report begin_report(const std::string& experiment, const Invocation& call,
                    const support::Device& device, uint64_t seed) {
  Report report;
  report.experiment = experiment;
  report.seed = seed;
  report.command = repeatable(call.command, seed, device.is_virtual);
  describe_machine(report, device);
  return report;
}

}  // namespace uptempo::fence_scope
