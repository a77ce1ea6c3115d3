// Asks a GPU what the engine assumes about it, one question a row.
//
//   hardware_check [--device D] [--only PROBE...] [--limit SECONDS] [--json FILE]
//
// Exit code: 0 every probe found what the engine assumes or was not asked, 1 one differs, 2 wrong
// command line, 77 no such device, 130 Ctrl-C, 143 SIGTERM.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "tools/hardware/child.hpp"
#include "tools/hardware/probe.hpp"
#include "tools/hardware/report.hpp"
#include "tools/support/command_line.hpp"
#include "tools/support/device.hpp"
#include "tools/support/interrupt.hpp"
#include "tools/support/program.hpp"
#include "tools/vgpu/launch.hpp"

namespace {

using namespace uptempo;
using namespace uptempo::hardware;
using Clock = std::chrono::steady_clock;

// The whole report takes so long at most. Probes that would begin later are not asked.
constexpr double kWholeSeconds = 180;
constexpr size_t kStderrBytes = 4096;  // of each row, in the JSON
// The probe that describes the machine; not a row.
constexpr const char* kMachine = "machine";

struct Options {
  std::string device = "auto";
  std::vector<std::string> only;
  double limit_s = 40;
  std::string json_file;
  bool list = false;
  std::string probe;  // a child's
};

std::vector<std::string> probe_names() {
  std::vector<std::string> names;
  for (const Probe& probe : probes()) names.emplace_back(probe.name);
  return names;
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

support::ExitCode run_child(const Options& options, int argc, char** argv) {
  const support::Device device = support::open_device(options.device, argc, argv);
  if (options.probe == kMachine) {
    support::write_output("-", line_of({Verdict::as_assumed, {}, describe_machine(device)}));
  } else {
    support::write_output("-", line_of(find_probe(options.probe)->run(device)));
  }
  return support::exit_ok;
}

// Runs a probe of this name in a process of its own. Throws support::Interrupted.
Row row_of(const std::string& name, const std::string& device, double limit_s) {
  const auto begin = Clock::now();
  const Probe* const probe = find_probe(name);
  Row row{name, probe == nullptr ? "" : std::string(probe->rule), {}, 0};
  const std::vector<std::string> command = command_for(name, device);
  if (command.empty()) {
    row.answer.text = "this build has no HIP";
    return row;
  }
  const test::CommandResult result =
      test::run_command(command, {.seconds = limit_s, .stop = support::interrupted});
  if (result.stopped) throw support::Interrupted("interrupted during the probe '" + name + '\'');
  row.answer = answer_of(result, limit_s);
  row.seconds = seconds_since(begin);
  row.stderr_end = result.err.substr(result.err.size() - std::min(result.err.size(), kStderrBytes));
  return row;
}

// The row of a probe that begins `spent` seconds after the report.
Row row_in_time(const Probe& probe, const std::string& device, double limit_s, double spent) {
  const double left = kWholeSeconds - spent;
  Row row{std::string(probe.name), std::string(probe.rule), {}, 0};
  if (left > 0) row = row_of(row.probe, device, std::min(limit_s, left));
  if (left <= 0 || (left < limit_s && row.answer.text.starts_with(kHangs)))
    row.answer = {Verdict::not_asked,
                  fmt::format("the {} s of the whole report are over", kWholeSeconds)};
  return row;
}

// The machine's row: JSON of describe_machine(). Throws Unavailable if there is no device.
nlohmann::ordered_json ask_machine(const Options& options) {
  const Row machine = row_of(kMachine, options.device, options.limit_s);
  if (machine.answer.verdict == Verdict::not_asked) throw support::Unavailable(machine.answer.text);
  if (machine.answer.measured.contains("line")) return machine.answer.measured;
  // The probes may still answer.
  return {{"device", ""},
          {"line", "Device: it cannot be described: " + machine.answer.text + '\n'},
          {"virtual_gpu", nullptr},
          {"no_kernels", ""}};
}

// The --device of the probes: they ask the same kind of device as the machine's row, also if a
// driver that is being reset does not answer for a moment.
std::string device_of(const Options& options, const nlohmann::ordered_json& machine) {
  if (options.device != "auto" || machine["virtual_gpu"].is_null()) return options.device;
  return machine["virtual_gpu"].get<bool>() ? "virtual" : "hardware";
}

// Why "auto" is the virtual GPU although there is a driver; "" otherwise.
std::string passed_over(const Options& options, const nlohmann::ordered_json& machine) {
  if (options.device != "auto" || machine["virtual_gpu"] != true || vgpu::on_virtual_gpu() ||
      access("/dev/kfd", F_OK) != 0)
    return {};
  const int opened = open("/dev/kfd", O_RDWR | O_CLOEXEC);
  if (opened >= 0) {
    close(opened);
    return {};
  }
  return fmt::format(
      "/dev/kfd is there, but cannot be opened ({}): are you in the groups render and "
      "video?\n",
      std::strerror(errno));
}

void write_report(const Options& options, const nlohmann::ordered_json& machine,
                  const std::vector<Row>& rows) {
  support::write_json(options.json_file, json_of(machine, rows, support::interrupted()));
}

support::ExitCode run(const Options& options) {
  const auto begin = Clock::now();
  const support::InterruptWatch watch;
  const nlohmann::ordered_json machine = ask_machine(options);
  const std::string device = device_of(options, machine);
  const std::string no_kernels = machine["no_kernels"].get<std::string>();
  support::print_report(options.json_file,
                        machine["line"].get<std::string>() + passed_over(options, machine) + '\n');

  support::Progress progress;
  std::vector<Row> rows;
  const bool to_file = !options.json_file.empty() && options.json_file != "-";
  for (const Probe& probe : probes()) {
    if (!options.only.empty() && std::ranges::find(options.only, probe.name) == options.only.end())
      continue;
    if (support::interrupted()) break;
    progress.show(probe.name);
    Row row{std::string(probe.name), std::string(probe.rule), {}, 0};
    if (probe.has_kernels && !no_kernels.empty()) {
      row.answer.text = no_kernels;
    } else {
      try {
        row = row_in_time(probe, device, options.limit_s, seconds_since(begin));
      } catch (const support::Interrupted&) {
        break;
      }
    }
    progress.clear();
    support::print_report(options.json_file, text_of(row));
    rows.push_back(std::move(row));
    // After each row: a probe may end the session or the machine.
    if (to_file) write_report(options, machine, rows);
  }
  progress.clear();
  support::print_report(options.json_file, '\n' + summary_of(rows));
  if (!options.json_file.empty()) write_report(options, machine, rows);
  if (to_file)
    support::print(
        fmt::format("The report is in '{}'. Please send it to us.\n", options.json_file));
  const bool differs = std::ranges::any_of(
      rows, [](const Row& row) { return row.answer.verdict == Verdict::differs; });
  return differs ? support::exit_measured_failure : support::exit_ok;
}

support::ExitCode list() {
  std::string text;
  for (const Probe& probe : probes()) text += fmt::format("{:<17}{}\n", probe.name, probe.rule);
  support::print(text);
  return support::exit_ok;
}

}  // namespace

int main(int argc, char** argv) {
  support::CommandLine app(
      "hardware_check",
      "Asks a GPU what the engine assumes about it: queues, memory, copies, costs. Each\n"
      "probe runs in a process of its own, and all take at most three minutes. Please\n"
      "send us the JSON.");
  Options options;
  support::add_device_option(app, options.device);
  app.option("--only PROBE", options.only, "Run only these probes (see --list)")
      .one_of(probe_names());
  app.option("--limit S", options.limit_s, "Seconds after which a probe counts as hanging (40)")
      .range(0.1, kWholeSeconds);
  app.flag("--list", options.list, "List the probes and what the engine assumes; run none");
  std::vector<std::string> children{kMachine};
  for (const Probe& probe : probes())
    if (probe.run != nullptr) children.emplace_back(probe.name);
  app.option("--probe", options.probe, "Run this probe in this process and print its answer")
      .one_of(children)
      .hidden();
  support::add_json_option(app, options.json_file);
  return support::run_program(app, argc, argv, [&] {
    if (options.list) return list();
    return options.probe.empty() ? run(options) : run_child(options, argc, argv);
  });
}
