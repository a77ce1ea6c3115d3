// Sorts keys on the GPUs of several ranks of MPI: one rank per GPU, on one host or many.
//
//   mpirun -n 4 sample_sort [--keys N | --total N] [--distribution D] [--uneven] ...
#include <dlfcn.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "report.hpp"
#include "sample_sort.hpp"

using namespace uptempo;
using namespace uptempo::sample_sort;

namespace {

void declare(CLI::App& app, Options& options) {
  CLI::Option* keys =
      app.add_option("--keys", options.keys, "Keys per rank, for weak scaling (262144)");
  CLI::Option* total =
      app.add_option("--total", options.total, "Keys of all ranks together, for strong scaling");
  keys->check(CLI::PositiveNumber);
  total->check(CLI::PositiveNumber)->excludes(keys);
  std::vector<std::string> names;
  for (const DistributionInfo& info : kDistributions) names.emplace_back(info.name);
  app.add_option_function<std::string>(
         "--distribution",
         [&options](const std::string& name) {
           for (const DistributionInfo& info : kDistributions)
             if (info.name == name) options.distribution = info.value;
         },
         "Of the keys (uniform)")
      ->check(CLI::IsMember(names));
  app.add_flag("--uneven", options.uneven,
               "The first rank begins with no keys, the last with about twice the mean");
  app.add_option("--rounds", options.rounds, "Most exchanges; fewer if fewer chunks suffice (4)")
      ->check(CLI::Range(1u, 1024u));
  app.add_option("--iterations", options.iterations, "Timed sorts (3)")
      ->check(CLI::Range(1u, 100000u));
  app.add_option("--seed", options.seed, "Seed of keys and samples (1)");
  app.add_option("--fail-rank", options.fail_rank,
                 "Give this rank's device a memory fault during the first exchange")
      ->check(CLI::NonNegativeNumber);
}

// Returns whether the result is right.
bool sort(Communicator& ranks, const Options& options, bool is_virtual) {
  const Workload workload = workload_of(options, ranks.size());
  const Runtime runtime;
  const Agent gpu = runtime.gpu(ranks.rank_on_host() % std::max<size_t>(runtime.gpus().size(), 1));
  Report report{.device = gpu.name(),
                .is_virtual = is_virtual,
                .mpi = ranks.library(),
                .ranks = ranks.size(),
                .hosts = ranks.hosts(),
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
    ranks.fail(error.what());
  }
  if (ranks.rank() == 0) std::printf("%s", table(report).c_str());
  return report.verified;
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app(
      "Sorts keys on the GPUs of all ranks of MPI: each rank sorts chunks on its GPU, sends each\n"
      "other rank its part, and merges what it receives, all at once. Start it with mpirun, one\n"
      "rank per GPU.",
      "sample_sort");
  Options options;
  declare(app, options);
  CLI11_PARSE(app, argc, argv);

  const bool is_virtual = dlsym(RTLD_DEFAULT, "uptempo_vgpu_device") != nullptr;
  Communicator ranks(is_virtual ? Idle::sleep : Idle::poll);
  try {
    // All ranks use rank 0's options.
    options = ranks.gather_all(std::span<const Options>(&options, 1)).front();
    return sort(ranks, options, is_virtual) ? 0 : 1;
  } catch (const std::invalid_argument& error) {  // by workload_of(), on every rank
    if (ranks.rank() == 0) std::fprintf(stderr, "sample_sort: %s\n", error.what());
    return 1;
  } catch (const std::exception& error) {
    ranks.fail(error.what());  // other ranks wait for this one
  }
} catch (const std::exception& error) {
  std::fprintf(stderr, "sample_sort: %s\n", error.what());
  return 1;
}
