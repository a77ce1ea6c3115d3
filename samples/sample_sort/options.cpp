#include "samples/sample_sort/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <map>

#include "tools/support/command_line.hpp"
#include "tools/support/device.hpp"
#include "tools/support/program.hpp"

namespace uptempo::sample_sort {
namespace {

constexpr uint64_t kMostKeys = uint64_t{1} << 40;
constexpr uint64_t kMostInChunk = uint64_t{1} << 30;  // the sort counts work-items in 32 bits

}  // namespace

void declare(support::CommandLine& app, Options& options) {
  app.option("--keys N", options.keys, "Keys per rank, for weak scaling (262144)").positive();
  app.option("--total N", options.total, "Keys of all ranks together, for strong scaling")
      .positive()
      .excludes(app.declared("--keys"));
  std::map<std::string, Distribution> distributions;
  for (const DistributionInfo& info : kDistributions) distributions[info.name] = info.value;
  app.option("--distribution D", options.distribution, distributions,
             "uniform, sorted, reverse, equal or skewed (uniform)");
  app.flag("--uneven", options.uneven,
           "The first rank begins with no keys, the last with about twice the mean");
  app.option("--rounds N", options.rounds, "Most exchanges; fewer if fewer chunks suffice (4)")
      .range(1u, 1024u);
  app.option("--iterations N", options.iterations, "Timed sorts (3)").range(1u, 100000u);
  app.option("--seed N", options.seed, "Seed of keys and samples (1)");
  app.option("--workers N", options.workers,
             "Threads of each rank's virtual GPU (its share of the host's cores)")
      .range(1u, 4096u);
  app.option("--fail-rank R", options.fail_rank,
             "Give this rank's device a memory fault during the first exchange")
      .not_negative();
  support::add_device_option(app, options.device);
  support::add_json_option(app, options.json_file);
}

Workload workload_of(const Options& options, uint32_t ranks) {
  Workload workload{.distribution = options.distribution,
                    .total = options.total,
                    .seed = options.seed,
                    .uneven = options.uneven};
  const uint64_t per_rank = options.keys != 0 ? options.keys : kDefaultKeys;
  const char* const option = options.total != 0 ? "--total" : "--keys";
  if (options.total == 0) {
    if (per_rank > kMostKeys / ranks)
      throw support::UsageError(
          fmt::format("--keys: {} keys on {} ranks are more than 2^40 in all", per_rank, ranks));
    workload.total = per_rank * ranks;
  }
  if (workload.total > kMostKeys)
    throw support::UsageError(fmt::format("--total: {} is more than 2^40", workload.total));

  uint64_t most = 0;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    most = std::max(most, share_of(workload.total, ranks, rank, workload.uneven).count);
  workload.chunk = std::bit_ceil((most + options.rounds - 1) / options.rounds);
  workload.rounds = static_cast<uint32_t>((most + workload.chunk - 1) / workload.chunk);
  // All chunks of a round may go to one rank.
  constexpr auto kMostCounted = static_cast<uint64_t>(std::numeric_limits<int>::max());
  if (workload.chunk > std::min(kMostInChunk, kMostCounted / ranks))
    throw support::UsageError(
        fmt::format("{}: chunks of {} keys on {} ranks are too large: one rank may receive {} keys "
                    "in a round, but MPI counts at most {}; use more --rounds",
                    option, workload.chunk, ranks, workload.chunk * ranks, kMostCounted));
  return workload;
}

uint64_t fingerprint(const Options& options) {
  uint64_t result = 0;
  for (const uint64_t value :
       {options.keys, options.total, static_cast<uint64_t>(options.distribution),
        uint64_t{options.uneven}, uint64_t{options.rounds}, uint64_t{options.iterations},
        options.seed, static_cast<uint64_t>(options.fail_rank)})
    result = mix(result ^ value);
  return result;
}

uint32_t workers_per_rank(uint32_t usable, uint32_t online, uint32_t ranks_on_host) {
  return std::max(1u, std::min(usable, online / ranks_on_host));
}

}  // namespace uptempo::sample_sort
