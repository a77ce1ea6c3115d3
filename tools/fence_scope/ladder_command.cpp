#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "samples/bitonic_sort/report.hpp"
#include "samples/bitonic_sort/sorter.hpp"
#include "tools/fence_scope/command_line.hpp"
#include "tools/fence_scope/report/report_words.hpp"
#include "tools/fence_scope/run/profile.hpp"
#include "tools/fence_scope/sequence/workloads.hpp"
#include "tools/support/command_line.hpp"
#include "tools/support/interrupt.hpp"
#include "tools/support/table.hpp"

namespace uptempo::fence_scope {
namespace {

struct LadderOptions {
  int64_t length = 32768;
  uint32_t iterations = 20;
  uint64_t seed = 1;
  std::string device = "auto";
  std::string profile = "fiji";
};

DeviceCounts counts_of(const Counters& counters) {
  return {.packets = counters.packets,
          .doorbells = counters.doorbells,
          .signal_updates = counters.completion_signals,
          .barrier_bits = counters.barrier_bits,
          .system_acquires = counters.system_acquires,
          .system_releases = counters.system_releases};
}

// Rungs differ in more than headers and include their copies. They therefore have no gated time and
// are not recommended.
std::vector<Cell> cells_of(const sort::Report& report) {
  std::vector<Cell> cells;
  for (size_t i = 0; i < report.rungs.size(); ++i) {
    const sort::RungResult& rung = report.rungs[i];
    Cell cell;
    cell.workload = "bitonic-sort";
    cell.label = sort::rung_label(report, i);
    cell.kernels = report.kernels;
    cell.bytes_per_kernel = cell.working_set_bytes = uint64_t{4} * report.length;
    for (size_t packet = 0; packet < report.kernels; ++packet)
      cell.headers.push_back(sort::packet_flags(rung.rung.switches, packet, report.kernels));
    cell.judgement = {.verdict = rung.wrong_iterations == 0 ? Verdict::correct : Verdict::unknown,
                      .wrong_runs = rung.wrong_iterations,
                      .runs = static_cast<uint32_t>(rung.iteration_us.size()),
                      .reason = "results are compared with std::sort"};
    cell.ungated = times_of(rung.iteration_us, Method{}.precision);
    cell.counts = counts_of(rung.counts);
    cell.baseline = i == 0;
    cell.relative = rung.us_per_iteration / report.rungs[0].us_per_iteration;
    cells.push_back(std::move(cell));
  }
  return cells;
}

// Adds the modelled times of the article's rungs on a device of that profile; for fiji and 32,768
// keys these are its own six figures.
void add_model(std::vector<Cell>& cells, const Profile& profile, const sort::Network& network) {
  const std::span<const PublishedRung> published = published_ladder();
  if (published.size() != cells.size())
    throw std::logic_error("the sample's ladder does not have the article's rungs");
  const uint64_t bytes = uint64_t{4} * network.length();
  const Sequence sequence = make_workload("bitonic-sort", {.bytes_per_kernel = bytes});
  for (size_t i = 0; i < cells.size(); ++i) {
    HostSide host = published[i].host;
    host.copy_bytes = 2 * bytes;
    cells[i].model =
        model_time(profile, sequence, published[i].headers(sequence.steps.size()), host);
  }
}

// Empty without a model.
std::string model_table(const std::vector<Cell>& cells) {
  if (!cells.front().model) return {};
  support::Table table({{"", support::Align::left}, {"model us per\niteration"}, {"\nspeed-up"}});
  for (const Cell& cell : cells)
    table.add_row({cell.label, fmt::format("{:.0f}", cell.model->us),
                   fmt::format("{:.2f}x", cells.front().model->us / cell.model->us)});
  return fmt::format("\n{}\n\n{}", model_text(*cells.front().model), table.text());
}

std::string conclusion_of(const sort::Report& report, const support::Device& device) {
  const auto wrong = std::ranges::count_if(
      report.rungs, [](const sort::RungResult& rung) { return rung.wrong_iterations > 0; });
  if (wrong > 0)
    return fmt::format(
        "Broken: {} of {} rungs sorted wrongly although the rules promise right results.", wrong,
        report.rungs.size());
  return fmt::format("All rungs sort correctly; the last one takes {:.2f} times the baseline's {}.",
                     report.rungs.back().us_per_iteration / report.rungs[0].us_per_iteration,
                     device.time_name());
}

sort::Network network_of(const LadderOptions& options) {
  try {
    return sort::Network(options.length);
  } catch (const std::invalid_argument& error) {
    throw support::UsageError(std::string("--length: ") + error.what());
  }
}

support::ExitCode run_ladder(const LadderOptions& options, const Invocation& call) {
  refuse_trace(
      call.files,
      "the ladder times whole sorts; to trace a run of the same kernels, use fence_scope scopes or "
      "explain");
  (void)prints_text(call.files);  // before a long experiment
  const Profile& profile = find_profile(options.profile);
  const sort::Network network = network_of(options);
  const support::Device device = support::open_device(options.device, call.argc, call.argv);
  const support::InterruptWatch watch;
  sort::Sorter sorter(device.gpu, network, false);
  std::vector<uint32_t> sorted = sort::random_keys(network.length(), options.seed);
  sorter.set_keys(sorted);
  std::ranges::sort(sorted);

  support::Progress progress;
  const sort::Report measured{.is_virtual = device.is_virtual,
                              .length = network.length(),
                              .kernels = static_cast<uint32_t>(network.passes().size()),
                              .workgroup = network.workgroup(),
                              .descending = false,
                              .rungs = sort::measure(
                                  sort::ladder(), options.iterations,
                                  [&](const sort::Switches& switches) {
                                    sort::Iteration iteration = sorter.run(switches);
                                    iteration.correct = std::ranges::equal(sorter.output(), sorted);
                                    return iteration;
                                  },
                                  [&](const std::string& what, uint64_t done, uint64_t of) {
                                    progress.show(what, done, of);
                                    return !support::interrupted();
                                  })};
  progress.clear();

  Report report = begin_report("ladder", call, device, options.seed);
  report.cells = cells_of(measured);
  if (device.is_virtual) add_model(report.cells, profile, network);
  report.conclusion = conclusion_of(measured, device);
  if (support::interrupted()) report.warnings.emplace_back(kInterruptedWarning);
  publish(
      report, call.files,
      report.conclusion + '\n' + device.line() + sort::table(measured) + model_table(report.cells));
  return sort::is_right(measured) ? support::exit_ok : support::exit_measured_failure;
}

}  // namespace

void declare_ladder(support::CommandLine& app, Commands& commands, Files& files) {
  const auto options = std::make_shared<LadderOptions>();
  support::CommandLine& command =
      app.command("ladder", "Time a bitonic sort: baseline, then one more optimisation per line");
  command
      .option("--length N", options->length,
              "Number of keys: a power of two from 2 to 2^24 (32768)")
      .repeatable();
  command.option("--iterations N", options->iterations, "Timed sorts per line (20)")
      .range(1u, 1000000u)
      .repeatable();
  command.option("--seed N", options->seed, "Seed of the random keys (1)").repeatable();
  command
      .option("--profile NAME", options->profile,
              "Device whose time is modelled on the virtual GPU: fiji, mi210, mi300x (fiji)")
      .repeatable();
  support::add_device_option(command, options->device).repeatable();
  add_output_options(command, files);
  command.declared("--trace").hidden();
  commands.emplace_back(&command,
                        [options](const Invocation& call) { return run_ladder(*options, call); });
}

}  // namespace uptempo::fence_scope
