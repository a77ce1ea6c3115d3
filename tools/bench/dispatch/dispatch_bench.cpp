#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "tools/bench/dispatch/bars.hpp"
#include "tools/bench/dispatch/chart.hpp"
#include "tools/bench/dispatch/counts.hpp"
#include "tools/bench/dispatch/earlier.hpp"
#include "tools/bench/dispatch/raw_queue.hpp"
#include "tools/bench/dispatch/report.hpp"
#include "tools/support/command_line.hpp"
#include "tools/support/device.hpp"
#include "tools/support/interrupt.hpp"
#include "tools/support/program.hpp"

namespace {

using namespace uptempo;

struct Options {
  support::Rounds rounds;
  std::set<uint32_t> batches{std::begin(bench::kBatches), std::end(bench::kBatches)};
  std::string kernels = "auto";
  std::string device = "auto";
  std::string json_file;
  bool variants = false;
  bool no_counts = false;
  bool bars = false;
  std::string peer = "hip";
  std::string compare_file;
  std::string svg_file, svg_rest_file;
  std::string only;
  std::string count_file;  // set in the counting run

  std::vector<uint32_t> batch_list() const { return {batches.begin(), batches.end()}; }
};

// Needed by both the timed and the counting run.
struct Bench {
  explicit Bench(const Options& options, const support::Device& device);

  bench::Workload workload;
  std::shared_ptr<bench::RawQueue> raw;
  bool executed;  // whether the device executes kernels
  bench::Rows rows;
  std::vector<bench::Peer> peers;
  std::unique_ptr<bench::Check> check;
};

Bench::Bench(const Options& options, const support::Device& device)
    : workload(device.gpu),
      raw(std::make_shared<bench::RawQueue>(workload)),
      executed(bench::executes_kernels(raw)) {
  if (options.kernels != "auto" && executed != (options.kernels == "real"))
    throw support::UsageError(fmt::format(
        "--kernels {}, but this device {} kernels: {}", options.kernels,
        executed ? "executes" : "does not execute",
        device.is_virtual ? "start the program without uptempo-vgpu; it starts uptempo-vgpu itself"
                          : "hardware always executes them; use auto or real"));
  const auto add = [&](bench::Rows more) { std::ranges::move(more, std::back_inserter(rows)); };
  add(bench::floor_rows(raw));
  add(bench::hsa_rows(raw));
  add(bench::uptempo_rows(workload));
  add(bench::stream_rows(workload));
  add(bench::c_rows(workload));
  if (options.peer == "hip") peers.push_back(bench::add_hip_rows(rows, workload));
  if (options.peer == "pocl") peers.push_back(bench::add_pocl_rows(rows, workload));

  if (!options.only.empty())
    std::erase_if(rows, [&](const auto& row) {
      return row->name().find(options.only) == std::string_view::npos;
    });
  if (rows.empty())
    throw support::UsageError("--only " + options.only + ": no row has that in its name");
  check = executed ? bench::check_tallies(workload) : bench::check_device_counts(workload);
}

bench::CountReport count(const Options& options, const support::Device& device) {
  if (options.no_counts) return bench::CountReport::none("--no-counts");
  std::vector<std::string> arguments{"--kernels", options.kernels,
                                     "--peer",    options.peer,
                                     "--device",  device.is_virtual ? "virtual" : "hardware",
                                     "--batch"};
  for (const uint32_t batch : options.batches) arguments.push_back(std::to_string(batch));
  if (!options.only.empty()) arguments.insert(arguments.end(), {"--only", options.only});
  return bench::count_in_a_run_of_its_own(arguments, device.is_virtual);
}

// The major version of the HIP peer ("HIP 5.2"); 5 without one.
int hip_major(const std::vector<bench::Peer>& peers) {
  int major = 5;
  for (const bench::Peer& peer : peers)
    if (peer.version.starts_with("HIP ")) major = std::atoi(peer.version.c_str() + 4);
  return major;
}

support::ExitCode run(const Options& options, int argc, char** argv) {
  const std::vector<std::string> launcher_options =
      options.kernels == "real" ? std::vector<std::string>{}
                                : std::vector<std::string>{"--null-kernels"};
  const support::Device device = support::open_device(options.device, argc, argv, launcher_options);
  Bench bench(options, device);
  if (!options.count_file.empty()) {
    const auto probe = [&] { bench::executes_kernels(bench.raw); };
    support::write_output(
        options.count_file,
        bench::count(bench.rows, *bench.check, options.batch_list(), probe).dump());
    return support::exit_ok;
  }
  bench::Report report{.device = device.name(),
                       .is_virtual = device.is_virtual,
                       .kernels_executed = bench.executed,
                       .rounds = options.rounds.count,
                       .seed = options.rounds.seed,
                       .cores = support::usable_cores(),
                       .peers = bench.peers,
                       .batches = options.batch_list(),
                       .results = {}};
  std::optional<bench::EarlierReport> earlier;
  if (!options.compare_file.empty()) {
    earlier = bench::read_earlier(options.compare_file);
    bench::require_comparable(*earlier, report);
  }
  support::print_report(options.json_file, device.line());
  support::Progress progress;
  progress.show("counting");
  const bench::CountReport counts = [&] {
    // An interrupt also ends the counting run. One round is then measured.
    const support::InterruptWatch watch;
    return count(options, device);
  }();
  report.not_counted = counts.missing;
  progress.clear();
  report.results = bench::run(bench.rows, *bench.check, options.batch_list(), options.rounds,
                              bench.executed ? 1 : bench::kRing);
  // Fewer than requested after an interrupt.
  if (!report.results.all.empty())
    report.rounds = static_cast<uint32_t>(report.results.all.front().ns_per_dispatch.size());
  for (bench::Series& series : report.results.all)
    if (const bench::Counts* counted =
            counts.find(bench::row_name(series.name), series.batch, series.phase))
      series.counts = *counted;
  bench::Results best = report.results;
  best.keep_best_variants();
  if (!options.variants) report.results = best;
  support::print_report(options.json_file, bench::table(report));
  nlohmann::ordered_json out = bench::json(report);
  if (earlier) {
    out["compared_with"] = options.compare_file;
    out["comparison"] = bench::comparison_json(*earlier, report);
    support::print_report(options.json_file, '\n' + bench::comparison_table(*earlier, report));
  }
  std::vector<bench::Judgement> judgements;
  if (options.bars && !support::interrupted()) {
    judgements = bench::judge(best, hip_major(bench.peers));
    out["bars"] = bench::json(judgements);
    support::print_report(options.json_file, '\n' + bench::table(judgements));
  }
  support::write_json(options.json_file, out);
  if (!options.svg_file.empty()) support::write_output(options.svg_file, bench::svg(report));
  if (!options.svg_rest_file.empty())
    support::write_output(options.svg_rest_file, bench::svg_of_rest(report));
  bench::require_met(judgements);
  return support::exit_ok;
}

}  // namespace

int main(int argc, char** argv) {
  support::CommandLine app(
      "dispatch_bench", "Host time per dispatch: Uptempo compared with the HSA API, HIP and PoCL.");
  Options options;
  support::add_rounds_options(app, options.rounds, 20);
  app.option("--batch N...", options.batches, "Dispatches per batch (1 8 120 1024 8192)")
      .range(1u, bench::kMaxDispatches);
  app.option(
         "--kernels K", options.kernels,
         "null: do not execute kernels, time only the dispatch (the virtual GPU's default); real")
      .one_of({"auto", "null", "real"});
  app.option("--only TEXT", options.only, "Only rows whose names contain TEXT");
  app.option("--peer P", options.peer,
             "hip, pocl or none (hip); HIP and PoCL cannot share a process")
      .one_of({"hip", "pocl", "none"});
  app.flag("--variants", options.variants,
           "Show every variant of the floors, not only the best per batch");
  app.flag("--no-counts", options.no_counts,
           "Skip the run that counts allocations, calls and doorbells");
  app.flag("--bars", options.bars, "Exit with 1 if a bar is missed or cannot be judged");
  app.option("--svg FILE", options.svg_file, "Write a chart of five rows").output_file();
  app.option("--svg-rest FILE", options.svg_rest_file, "Write a chart of all other rows")
      .output_file();
  app.option("--compare OLD.json", options.compare_file,
             "Compare with an earlier report written by --json");
  // internal: makes this the counting run
  app.option("--count-into", options.count_file, "").hidden();
  support::add_device_option(app, options.device);
  support::add_json_option(app, options.json_file);
  return support::run_program(app, argc, argv, [&] { return run(options, argc, argv); });
}
