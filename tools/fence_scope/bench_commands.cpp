#include <fmt/format.h>
#include <hsa/hsa.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>

#include <uptempo/runtime/error.hpp>
#include "tools/fence_scope/command_line.hpp"
#include "tools/fence_scope/experiment.hpp"
#include "tools/fence_scope/report/report_packets.hpp"
#include "tools/fence_scope/report/report_table.hpp"
#include "tools/fence_scope/report/report_words.hpp"
#include "tools/fence_scope/run/run_packets.hpp"
#include "tools/fence_scope/run/vgpu_process.hpp"
#include "tools/fence_scope/session.hpp"
#include "tools/fence_scope/trace/run_trace.hpp"
#include "tools/fence_scope/verdict/checker_advice.hpp"
#include "tools/support/command_line.hpp"
#include "tools/support/interrupt.hpp"

namespace uptempo::fence_scope {
namespace {

// Options that the commands on benches share.
struct BenchOptions {
  SequenceOptions sequence_options;
  Method method{};
  TimingMode timing = TimingMode::none;
  std::string device = "auto";
  std::string profile;
  std::string filter;
  std::string cell;  // the cell to trace
  bool list = false, dry_run = false;
};

struct ScopesOptions : BenchOptions {
  std::vector<Position> positions{Position::interior};
};

struct SweepOptions : BenchOptions {
  std::vector<uint32_t> kernels{1, 2, 8, 32, 128};
  std::vector<uint64_t> bytes{4096, 32768, 262144};
  std::vector<double> working_sets{0.25, 0.5, 1, 2};
};

void add_options(support::CommandLine& command, BenchOptions& options, Files& files, bool sized) {
  add_sequence_options(command, options.sequence_options, files.program, sized);
  command
      .option("--filter TEXT", options.filter,
              "Only cells whose label contains TEXT, and the baseline")
      .repeatable();
  command.flag("--list", options.list,
               "List the cells and the built-in workloads; needs no device");
  command.flag("--dry-run", options.dry_run,
               "Print the packets of each cell; needs no device, so addresses are 0");
  command
      .option("--timing MODE", options.timing, kByName<TimingMode>,
              "Timestamps of packets: none, batch or each (none)")
      .repeatable();
  command
      .option("--profile NAME", options.profile,
              "Device whose time is modelled on the virtual GPU: fiji, mi210, mi300x (its own)")
      .repeatable();
  add_method_options(command, options.method);
  support::add_device_option(command, options.device).repeatable();
  add_output_options(command, files);
}

void add_cell_option(support::CommandLine& command, BenchOptions& options) {
  command.option("--cell TEXT", options.cell,
                 "Cell that --trace traces: TEXT is part of its label (the recommended cell)");
}

void require_traceable(const BenchOptions& options, const Outputs& outputs) {
  if (outputs.trace.empty() && !options.cell.empty())
    throw support::UsageError(
        "--cell chooses the cell that --trace traces; give --trace FILE as well");
  if (options.dry_run) refuse_trace(outputs, "nothing runs with --dry-run");
  if (options.list) refuse_trace(outputs, "nothing runs with --list");
}

nlohmann::ordered_json trace_of(const support::Device& device, const Sequence& sequence,
                                const Cell& cell, std::optional<double> seconds) {
  nlohmann::ordered_json document =
      trace_of_case(device, {.sequence = &sequence, .headers = cell.headers}, seconds);
  nlohmann::ordered_json& about = document["otherData"];
  about["workload"] = cell.workload;
  about["cell"] = cell.label;
  about["verdict"] = name_of(cell.judgement.verdict);
  return document;
}

support::ExitCode list(std::vector<Cell> cells, const BenchOptions& options) {
  keep_matching(cells, options.filter);
  support::print("Workloads:\n" + list_of_workloads() + "\nCells of this command:\n");
  for (const Cell& cell : cells)
    fmt::print("{}{}: {}\n", cell.workload,
               cell.position == Position::all ? "" : fmt::format(", {}", name_of(cell.position)),
               cell.label);
  return support::exit_ok;
}

void print_packets(const Sequence& sequence, std::vector<Cell> cells, const std::string& filter) {
  keep_matching(cells, filter);
  for (const Cell& cell : cells)
    support::print(fmt::format("# {}\n{}\n", cell.label, dry_run(sequence, cell.headers)));
}

void describe(Report& report, const Sequence& sequence) {
  report.description = sequence.description;
  for (const Step& step : sequence.steps) report.steps.push_back(step.name);
}

support::ExitCode finish(Report& report, const BenchOptions& options, const Outputs& outputs,
                         const Session& session) {
  report.timing = options.timing;
  if (support::interrupted()) report.warnings.emplace_back(kInterruptedWarning);
  for (const std::vector<std::string>& warnings :
       {session.warnings(), warnings_of(report.cells, options.method, report.time_kind)})
    report.warnings.insert(report.warnings.end(), warnings.begin(), warnings.end());
  publish(report, outputs, table(report, terminal_columns()));
  return std::ranges::any_of(report.cells, contradicts_rules) ? support::exit_measured_failure
                                                              : support::exit_ok;
}

Method method_of(const BenchOptions& options, const Invocation& call) {
  Method method = options.method;
  method.begun = call.begun;
  return method;
}

// Returns the seconds of the run that are left; no value: any number.
using SecondsLeft = std::function<std::optional<double>()>;

// Runs the cells of one sequence. `cells_of(sequence, planned)` creates them; `add(report, bench,
// device, left)` adds further results to the report.
template <class CellsOf, class Add>
support::ExitCode run_cells(const char* command, const BenchOptions& options,
                            const Invocation& call, CellsOf&& cells_of, Add&& add) {
  require_traceable(options, call.files);
  const Sequence sequence = sequence_of(options.sequence_options, call.files.program);
  if (options.list) return list(cells_of(sequence, plan(sequence).headers), options);
  if (options.dry_run) {
    print_packets(sequence, cells_of(sequence, plan(sequence).headers), options.filter);
    return support::exit_ok;
  }

  const support::Device device = support::open_device(options.device, call.argc, call.argv);
  const support::InterruptWatch watch;
  const Method method = method_of(options, call);
  Session session(device, options.timing, options.profile, method);
  const Bench& bench = session.add(sequence, kWholeShare);
  std::vector<Cell> cells = cells_of(sequence, bench.plan().headers);
  keep_matching(cells, options.filter);

  if (!options.cell.empty()) (void)cell_to_trace(cells, options.cell);
  (void)prints_text(call.files);  // before a long experiment
  session.add_cells(std::move(cells));
  Report report = begin_report(command, call, device, options.method.seed);
  describe(report, sequence);
  report.cells = session.carry_out();
  report.conclusion = conclusion_of(report.cells, report.time_kind);
  const auto left = [&] { return seconds_left(method, kWholeShare, steady_seconds()); };
  add(report, bench, device, left);
  std::optional<nlohmann::ordered_json> trace;
  std::exception_ptr failed;  // the report is written first
  try {
    if (!call.files.trace.empty() && !support::interrupted())
      trace = trace_of(device, sequence, cell_to_trace(report.cells, options.cell), left());
  } catch (const OutOfTime&) {
    report.warnings.push_back("--seconds left no time for --trace");
  } catch (const support::Interrupted&) {
    // finish() warns of it.
  } catch (...) {
    failed = std::current_exception();
  }
  const support::ExitCode code = finish(report, options, call.files, session);
  if (failed) std::rethrow_exception(failed);
  if (trace) support::write_output(call.files.trace, support::trace_text(*trace));
  return code;
}

support::ExitCode run_scopes(const ScopesOptions& options, const Invocation& call) {
  return run_cells(
      "scopes", options, call,
      [&](const Sequence& sequence, const Headers& planned) {
        return scopes_cells(sequence, planned, options.positions);
      },
      [](Report&, const Bench&, const support::Device&, const SecondsLeft&) {});
}

void add_packets(Report& report, const Bench& bench, const support::Device& device,
                 const SecondsLeft& left) {
  std::optional<Headers> checker;
  if (device.is_virtual) {
    support::Progress progress;
    progress.show("fence checker's advice");
    try {
      checker = advised_by_checker(bench.sequence(), bench.plan().headers, left());
      if (!checker)
        report.warnings.push_back(
            "the fence checker gave no advice, because the sequence is too long for it");
    } catch (const OutOfTime&) {
      report.warnings.push_back("--seconds left no time for the fence checker's advice");
    } catch (const support::Interrupted&) {
      // finish() warns of it.
    }
  }
  report.packets = planned_packets(bench.sequence(), bench.plan(), checker ? &*checker : nullptr);
  const std::string opinion = checker_advice(report.packets);
  if (opinion.empty()) return;
  report.conclusion.back() = ';';  // keeps the conclusion one sentence
  report.conclusion += ' ' + opinion + '.';
}

support::ExitCode run_explain(const BenchOptions& options, const Invocation& call) {
  return run_cells("explain", options, call, comparison_cells, add_packets);
}

uint64_t l2_bytes(const Agent& gpu) {
  uint32_t bytes[4] = {};
  check(hsa_agent_get_info(gpu.handle(), HSA_AGENT_INFO_CACHE_SIZE, bytes), "hsa_agent_get_info",
        "HSA_AGENT_INFO_CACHE_SIZE");
  if (bytes[1] == 0)
    throw support::Unavailable(
        "the runtime does not report the size of this GPU's L2, which --working-set needs");
  return bytes[1];
}

// Varies one size at a time; the others are the workload's own. Sizes that the workload does not
// support are returned in `left_out`.
std::vector<Sequence> sweep_points(const SweepOptions& options, uint64_t l2,
                                   std::vector<std::string>& left_out) {
  std::vector<Shape> shapes;
  for (const uint32_t kernels : options.kernels) shapes.push_back({.kernels = kernels});
  for (const uint64_t bytes : options.bytes) shapes.push_back({.bytes_per_kernel = bytes});
  for (const double times : options.working_sets)
    shapes.push_back({.working_set_bytes =
                          static_cast<uint64_t>(times * static_cast<double>(l2 / 4096)) * 4096});
  std::vector<Shape> seen;
  std::vector<Sequence> sequences;
  for (const Shape& wanted : shapes) {
    try {
      const Shape shape = resolve(options.sequence_options.workload, wanted);
      if (std::ranges::find(seen, shape) != seen.end()) continue;
      seen.push_back(shape);
      sequences.push_back(make_workload(options.sequence_options.workload, shape));
    } catch (const support::UsageError& error) {
      left_out.push_back(error.what());
    }
  }
  if (sequences.empty())
    throw support::UsageError(
        left_out.empty() ? "there is no size to sweep; give --kernels, --bytes or --working-set"
                         : left_out[0]);
  return sequences;
}

support::ExitCode run_sweep(const SweepOptions& options, const Invocation& call) {
  refuse_trace(
      call.files,
      "a sweep runs several sequences; trace one of them with fence_scope explain --kernels N "
      "--bytes B");
  if (!call.files.program.empty())
    throw support::UsageError(
        "--program: a program file has fixed sizes, so a sweep has none to vary; use scopes or "
        "explain");
  (void)prints_text(call.files);  // before a long experiment
  (void)resolve(options.sequence_options.workload);
  std::vector<std::string> left_out;
  if (options.list || options.dry_run) {  // working sets as on a gfx90a, whose L2 has 8 MiB
    std::vector<Cell> all;
    for (const Sequence& sequence : sweep_points(options, uint64_t{8} << 20, left_out)) {
      std::vector<Cell> cells = comparison_cells(sequence, plan(sequence).headers);
      if (options.list)
        std::ranges::move(cells, std::back_inserter(all));
      else
        print_packets(sequence, std::move(cells), options.filter);
    }
    return options.list ? list(std::move(all), options) : support::exit_ok;
  }
  const support::Device device = support::open_device(options.device, call.argc, call.argv);
  const support::InterruptWatch watch;
  Session session(device, options.timing, options.profile, method_of(options, call));
  std::string description;
  size_t added = 0;
  const std::vector<Sequence> points = sweep_points(options, l2_bytes(device.gpu), left_out);
  for (const Sequence& sequence : points) {
    try {
      description = sequence.description;
      const Bench& bench = session.add(sequence, added == 0 ? kWholeShare : kSetUpShare);
      std::vector<Cell> cells = comparison_cells(sequence, bench.plan().headers);
      keep_matching(cells, options.filter);
      session.add_cells(std::move(cells));
      ++added;
    } catch (const OutOfTime&) {
      if (added == 0) throw;
      left_out.push_back(
          fmt::format("--seconds left no time for {} of {} sizes, from {} kernels on",
                      points.size() - added, points.size(), sequence.steps.size()));
      break;
    } catch (const support::Interrupted&) {
      break;
    }
  }
  Report report = begin_report("sweep", call, device, options.method.seed);
  report.description = description;
  report.cells = session.carry_out();
  report.conclusion = conclusion_of_sweep(report.cells, report.time_kind);
  report.warnings = left_out;
  return finish(report, options, call.files, session);
}

// Adds a subcommand whose options outlive the parsing.
template <class OptionsOfIt>
std::shared_ptr<OptionsOfIt> declare(support::CommandLine& app, Commands& commands,
                                     const char* name, const char* help, const char* workload,
                                     support::ExitCode (*run)(const OptionsOfIt&,
                                                              const Invocation&)) {
  const auto options = std::make_shared<OptionsOfIt>();
  options->sequence_options.workload = workload;
  support::CommandLine& command = app.command(name, help);
  commands.emplace_back(&command,
                        [options, run](const Invocation& call) { return run(*options, call); });
  return options;
}

}  // namespace

void declare_scopes(support::CommandLine& app, Commands& commands, Files& files) {
  const auto options = declare(
      app, commands, "scopes",
      "Time barrier bit x acquire x release on the first, last or other packets of a sequence",
      "bitonic-sort", run_scopes);
  support::CommandLine& command = *commands.back().first;
  add_options(command, *options, files, true);
  add_cell_option(command, *options);
  command
      .option("--position P,...", options->positions, kByName<Position>,
              "Packets to vary: first, interior, last, all (interior)")
      .repeatable()
      .separator(',');
}

void declare_sweep(support::CommandLine& app, Commands& commands, Files& files) {
  const auto options = declare(
      app, commands, "sweep",
      "Cost of fences by kernels per batch, bytes per kernel and working set", "chain", run_sweep);
  support::CommandLine& command = *commands.back().first;
  add_options(command, *options, files, false);
  // These options exist only to be refused with a reason.
  for (const char* option : {"--program", "--trace"}) command.declared(option).hidden();
  command.option("--kernels N,...", options->kernels, "Kernels per batch (1,2,8,32,128)")
      .repeatable()
      .separator(',')
      .positive();
  command.option("--bytes B,...", options->bytes, "Bytes that a kernel writes (4K,32K,256K)")
      .repeatable()
      .separator(',')
      .sizes()
      .positive();
  command
      .option("--working-set X,...", options->working_sets,
              "Working sets, in multiples of the L2's size (0.25,0.5,1,2)")
      .repeatable()
      .separator(',')
      .range(0.001, 1000.0);
}

void declare_explain(support::CommandLine& app, Commands& commands, Files& files) {
  const auto options =
      declare(app, commands, "explain",
              "Show the minimal header of each packet of a sequence, and the reasons",
              "bitonic-sort", run_explain);
  add_options(*commands.back().first, *options, files, true);
  add_cell_option(*commands.back().first, *options);
}

}  // namespace uptempo::fence_scope
