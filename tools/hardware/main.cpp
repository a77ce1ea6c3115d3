// Asks a GPU what the engine assumes about it, one question a row.
//
//   hardware_check [--device D] [--only PROBE...] [--limit SECONDS] [--json FILE]
//
// Exit code: 0 every probe found what the engine assumes or was not asked, 1 one differs, 2 wrong
// command line, 77 no such device, 130 Ctrl-C.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "tools/hardware/child.hpp"
#include "tools/hardware/probe.hpp"
#include "tools/hardware/report.hpp"
#include "tools/support/command_line.hpp"
#include "tools/support/device.hpp"
#include "tools/support/interrupt.hpp"
#include "tools/support/program.hpp"

namespace {

using namespace uptempo;
using namespace uptempo::hardware;
using Clock = std::chrono::steady_clock;

// Of the whole report. Probes that begin later are not asked.
constexpr double kWholeSeconds = 180;
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

// Runs a probe of this name in a process of its own.
Row row_of(const std::string& name, const Options& options, double limit_s) {
  const auto begin = Clock::now();
  const Probe* const probe = find_probe(name);
  Row row{name, probe == nullptr ? "" : std::string(probe->rule), {}, 0};
  const std::vector<std::string> command = command_for(name, options.device);
  if (command.empty()) {
    row.answer.text = "this build has no HIP";
    return row;
  }
  row.answer = answer_of(test::run_command(command, {.seconds = limit_s}), limit_s);
  row.seconds = seconds_since(begin);
  return row;
}

support::ExitCode run(const Options& options) {
  const auto begin = Clock::now();
  const Row machine = row_of(kMachine, options, options.limit_s);
  if (machine.answer.verdict != Verdict::as_assumed)
    throw support::Unavailable(machine.answer.text);
  const auto& facts = machine.answer.measured;
  support::print_report(options.json_file, facts.at("line").get<std::string>() + '\n');

  const support::InterruptWatch watch;
  support::Progress progress;
  std::vector<Row> rows;
  for (const Probe& probe : probes()) {
    if (!options.only.empty() && std::ranges::find(options.only, probe.name) == options.only.end())
      continue;
    if (support::interrupted()) break;
    progress.show(probe.name);
    const double left = kWholeSeconds - seconds_since(begin);
    Row row{std::string(probe.name), std::string(probe.rule), {}, 0};
    if (left <= 0) {
      row.answer.text = fmt::format("the {} s of the whole report are over", kWholeSeconds);
    } else {
      row = row_of(row.probe, options, std::min(options.limit_s, left));
    }
    if (support::interrupted()) break;  // Ctrl-C ended the child, too
    progress.clear();
    support::print_report(options.json_file, text_of(row));
    rows.push_back(std::move(row));
  }
  progress.clear();
  support::print_report(options.json_file, '\n' + summary_of(rows));
  if (!options.json_file.empty()) support::write_json(options.json_file, json_of(facts, rows));
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
  app.option("--only", options.only, "Run only these probes (see --list)")
      .one_of(probe_names())
      .placeholder("PROBE");
  app.option("--limit", options.limit_s, "Seconds after which a probe counts as hanging (40)")
      .range(0.1, kWholeSeconds)
      .placeholder("S");
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
