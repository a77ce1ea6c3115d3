// A simulator's loop with dozens of small kernels per step, launched in four ways: the simplest
// way, with asynchronous copies, with memory that is reused, and with arguments that are written
// only if they change. Prints the time of each way and its HSA calls.
//
//   launch_loop [--steps N] [--kernels N] [--device D] [--json FILE]
//
// Exit code: 0 all results are the host's bits, 1 they are not or the device failed, 2 wrong
// command line, 77 no such device.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "samples/launch_loop/loop.hpp"
#include "tools/support/command_line.hpp"
#include "tools/support/device.hpp"
#include "tools/support/program.hpp"
#include "tools/support/statistics.hpp"
#include "tools/support/table.hpp"

namespace {

using namespace uptempo;
using namespace uptempo::launch_loop;

struct Options {
  Loop loop;
  std::string device = "auto";
  std::string json_file;
};

const char* name_of(const Row& row) { return kWays[static_cast<size_t>(row.way)].name; }

std::string count(uint64_t all, const Row& row) {
  return fmt::format("{:.4g}", static_cast<double>(all) / row.counted_steps);
}

double us_of(const Row& row) { return support::median(row.us_per_step); }
double speed_up_of(const Row& row, const Row& naive) {
  return support::median_ratio(naive.us_per_step, row.us_per_step).median;
}

std::string text_of(const std::vector<Row>& rows, const Options& options, const char* time_name) {
  const Row &first = rows.front(), &last = rows.back();
  std::string text = fmt::format(
      "A step of {} kernels takes {:.0f} us in the naive way, and {:.0f} us with\n"
      "launchers: {:.1f} times as fast. In the steady state launchers make {}\n"
      "allocations, {} frees, {} blocking copies and {} signals per step.\n\n",
      options.loop.kernels, us_of(first), us_of(last), speed_up_of(last, first),
      count(last.calls.allocations, last), count(last.calls.frees, last),
      count(last.calls.blocking_copies, last), count(last.calls.signals_created, last));

  support::Table times(
      {{"", support::Align::left}, {"us per\nstep"}, {"until\nhanded over"}, {"speed-up"}});
  support::Table counts({{"each step", support::Align::left},
                         {"allo-\ncations"},
                         {"\nfrees"},
                         {"blocking\ncopies"},
                         {"signals\ncreated"},
                         {"arguments\nwritten"},
                         {"\nskipped"}});
  for (const Row& row : rows) {
    times.add_row({name_of(row), fmt::format("{:.1f}", us_of(row)),
                   fmt::format("{:.1f}", support::median(row.host_us_per_step)),
                   fmt::format("{:.2f}x", speed_up_of(row, first))});
    const bool skips = row.way == Way::skipped_arguments;
    counts.add_row(
        {name_of(row), count(row.calls.allocations, row), count(row.calls.frees, row),
         count(row.calls.blocking_copies, row), count(row.calls.signals_created, row),
         skips ? count(row.counters.argument_misses, row) : std::to_string(options.loop.kernels),
         count(row.counters.argument_hits, row)});
  }
  text += fmt::format("Median of {} turns, {}\n\n{}\n{}\n", first.us_per_step.size(), time_name,
                      times.text(), counts.text());

  std::string wrong;
  for (const Row& row : rows)
    if (!row.is_right())
      wrong += fmt::format("WRONG RESULTS: {} ({} of {} observations, {} state).\n", name_of(row),
                           row.wrong_observations, row.steps, row.right_state ? "right" : "wrong");
  if (!wrong.empty()) return text + wrong;
  return text + fmt::format(
                    "Verified: the host's bits in every observation, and in the state after\n"
                    "{} steps with arguments written and skipped, and after {} of the slow ways.\n",
                    last.steps, first.steps);
}

nlohmann::ordered_json json_of(const Row& row, const Row& naive) {
  const support::MedianInterval us = support::median_interval(row.us_per_step);
  const auto each = [&](uint64_t all) { return static_cast<double>(all) / row.counted_steps; };
  return {{"way", name_of(row)},
          {"steps", row.steps},
          {"us_per_step", us.median},
          {"us_low", us.low},
          {"us_high", us.high},
          {"host_us_per_step", support::median(row.host_us_per_step)},
          {"speed_up", speed_up_of(row, naive)},
          {"allocations", each(row.calls.allocations)},
          {"frees", each(row.calls.frees)},
          {"pins", each(row.calls.pins)},
          {"signals_created", each(row.calls.signals_created)},
          {"blocking_copies", each(row.calls.blocking_copies)},
          {"started_copies", each(row.calls.started_copies)},
          {"host_waits", each(row.counters.host_waits)},
          {"argument_hits", each(row.counters.argument_hits)},
          {"argument_misses", each(row.counters.argument_misses)},
          {"argument_bytes_saved", each(row.counters.argument_bytes_saved)},
          {"wrong_observations", row.wrong_observations},
          {"verified", row.is_right()}};
}

support::ExitCode run(const Options& options, int argc, char** argv) {
  const support::Device device = support::open_device(options.device, argc, argv);
  support::print_report(options.json_file, device.line());
  const std::vector<Row> rows = launch_loop::run(device.gpu, options.loop);
  const bool right = std::ranges::all_of(rows, &Row::is_right);
  support::print_report(options.json_file, text_of(rows, options, device.time_name()));
  if (!options.json_file.empty()) {
    nlohmann::ordered_json json{{"device", device.name()},
                                {"virtual_gpu", device.is_virtual},
                                {"kernels", options.loop.kernels},
                                {"steps", options.loop.steps},
                                {"turns", rows.front().us_per_step.size()},
                                {"points", kPoints},
                                {"verified", right},
                                {"rows", nlohmann::ordered_json::array()}};
    for (const Row& row : rows) json["rows"].push_back(json_of(row, rows.front()));
    support::write_json(options.json_file, json);
  }
  return right ? support::exit_ok : support::exit_measured_failure;
}

}  // namespace

int main(int argc, char** argv) {
  support::CommandLine app(
      "launch_loop",
      "A simulator's loop of small kernels, launched in four ways. Prints the time of each\n"
      "way and its HSA calls.");
  Options options;
  app.option("--steps N", options.loop.steps, "Steps of the simulation (2000)")
      .range(kFirstSteps + 1, 1000000u);
  app.option("--kernels N", options.loop.kernels, "Kernels per step (60)")
      .range(kLeastKernels, 1000u);
  support::add_device_option(app, options.device);
  support::add_json_option(app, options.json_file);
  return support::run_program(app, argc, argv, [&] { return run(options, argc, argv); });
}
