// Sorts keys on the GPUs of several ranks of MPI: one rank per GPU, on one host or many.
//
//   mpirun -n 4 sample_sort [--keys N | --total N] [--distribution D] [--uneven] [--json FILE]
//
// Exit code, agreed by all ranks: 0 the result is right, 1 it is not or a rank failed, 2 wrong
// command line, 77 a rank lacks its device.
#include <fmt/format.h>
#include <unistd.h>

#include <exception>
#include <optional>

#include "samples/sample_sort/report.hpp"
#include "samples/sample_sort/sample_sort.hpp"
#include "tools/support/command_line.hpp"
#include "tools/support/device.hpp"
#include "tools/support/program.hpp"

namespace {

using namespace uptempo;
using namespace uptempo::sample_sort;

constexpr const char* kProgram = "sample_sort";

// The device of this rank, or why there is none.
struct Opened {
  std::optional<support::Device> device;
  uint32_t workers = 0;
  std::string problem;
};

// Precedes MPI_Init, since it may execute the program again.
Opened open_device(const Options& options, int argc, char** argv) {
  Opened opened;
  opened.workers = options.workers;
  if (opened.workers == 0)
    opened.workers = workers_per_rank(support::usable_cores(),
                                      static_cast<uint32_t>(sysconf(_SC_NPROCESSORS_ONLN)),
                                      ranks_on_host_from_environment());
  try {
    opened.device = support::open_device(options.device, argc, argv,
                                         {"--workers", std::to_string(opened.workers)});
    if (!opened.device->is_virtual) opened.workers = 0;
  } catch (const support::Unavailable& error) {
    opened.problem = error.what();
  }
  return opened;
}

// Throws on every rank if one rank has no device, or if the ranks' options differ. Where a device
// is missing, the text is empty on all ranks but the first that lacks one.
void agree(Communicator& ranks, const Options& options, const Opened& opened) {
  const bool is_missing = !opened.device.has_value();
  const uint64_t missing = ranks.sums({is_missing ? 1u : 0u}).front();
  const uint64_t first = ranks.least(is_missing ? ranks.rank() : ranks.size());
  if (missing != 0)
    throw support::Unavailable(
        first != ranks.rank()
            ? std::string{}
            : fmt::format("rank {} on {}{} has no device: {}", first, ranks.host(),
                          missing == 1 ? "" : fmt::format(" (and {} more)", missing - 1),
                          opened.problem));
  const uint64_t own = fingerprint(options);
  if (ranks.least(own) != ranks.most(own))
    throw support::UsageError("the ranks were given different options");
  if (options.fail_rank >= static_cast<int64_t>(ranks.size()))
    throw support::UsageError(fmt::format("--fail-rank: there is no rank {} among {} ranks",
                                          options.fail_rank, ranks.size()));
}

support::ExitCode sort(Communicator& ranks, const Options& options, const Opened& opened) {
  const support::Device& device = *opened.device;
  const Workload workload = workload_of(options, ranks.size());
  const bool has_named_gpu =
      options.device != "auto" && options.device != "hardware" && options.device != "virtual";
  const size_t gpus = device.runtime.gpus().size();
  const Agent gpu = has_named_gpu ? device.gpu : device.runtime.gpu(ranks.rank_on_host() % gpus);
  const bool prints = ranks.rank() == 0;
  if (prints) support::print_report(options.json_file, device.line());

  Report report{.device = device.name(),
                .is_virtual = device.is_virtual,
                .mpi = ranks.library(),
                .ranks = ranks.size(),
                .hosts = ranks.hosts(),
                .workers = opened.workers,
                .workload = workload,
                .verified = true,
                .iterations = {}};
  SampleSort sample_sort(ranks, gpu, workload);
  try {
    for (uint32_t i = 0; i < options.iterations; ++i) {
      const RankTimes times =
          sample_sort.run(options.fail_rank == static_cast<int64_t>(ranks.rank()));
      report.verified = sample_sort.is_right() && report.verified;
      report.iterations.push_back(ranks.gather_all(std::span<const RankTimes>(&times, 1)));
    }
  } catch (const std::exception& error) {
    // Here, because MPI may use the buffers of an outstanding exchange.
    ranks.fail(kProgram, error.what());
  }
  if (prints) {
    support::print_report(options.json_file, table(report));
    if (!options.json_file.empty()) support::write_output(options.json_file, json_text(report));
  }
  return report.verified ? support::exit_ok : support::exit_measured_failure;
}

support::ExitCode run(const Options& options, int argc, char** argv) {
  const Opened opened = open_device(options, argc, argv);
  Communicator ranks(opened.device && !opened.device->is_virtual ? Idle::poll : Idle::sleep);
  try {
    agree(ranks, options, opened);
    return sort(ranks, options, opened);
  } catch (const support::Unavailable& error) {
    if (*error.what() != '\0') support::print_error(kProgram, error.what());
    return support::exit_unavailable;
  } catch (const support::UsageError& error) {  // on every rank
    if (ranks.rank() == 0) support::print_error(kProgram, error.what());
    return support::exit_usage;
  } catch (const std::exception& error) {
    ranks.fail(kProgram, error.what());  // other ranks wait for this one
  }
}

}  // namespace

int main(int argc, char** argv) {
  support::CommandLine app(
      kProgram,
      "Sorts keys on the GPUs of all ranks of MPI: each rank sorts chunks on its GPU, sends\n"
      "each other rank its part, and merges what it receives, all at once. Prints keys per\n"
      "second, how much of the exchange overlaps with work of the device, and the time of\n"
      "each phase. Start it with mpirun, one rank per GPU.");
  Options options;
  declare(app, options);
  return support::run_program(app, argc, argv, [&] { return run(options, argc, argv); });
}
