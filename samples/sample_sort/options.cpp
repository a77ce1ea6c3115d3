#include "options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <stdexcept>

namespace uptempo::sample_sort {
namespace {

constexpr uint64_t kMostKeys = uint64_t{1} << 40;
constexpr uint64_t kMostInChunk = uint64_t{1} << 30;  // the sort counts work-items in 32 bits

}  // namespace

Workload workload_of(const Options& options, uint32_t ranks) {
  Workload workload{.distribution = options.distribution,
                    .total = options.total,
                    .seed = options.seed,
                    .uneven = options.uneven};
  const uint64_t per_rank = options.keys != 0 ? options.keys : kDefaultKeys;
  const char* const option = options.total != 0 ? "--total" : "--keys";
  if (options.total == 0) {
    if (per_rank > kMostKeys / ranks)
      throw std::invalid_argument(
          fmt::format("--keys: {} keys on {} ranks are more than 2^40 in all", per_rank, ranks));
    workload.total = per_rank * ranks;
  }
  if (workload.total > kMostKeys)
    throw std::invalid_argument(fmt::format("--total: {} is more than 2^40", workload.total));

  if (options.fail_rank >= static_cast<int64_t>(ranks))
    throw std::invalid_argument(
        fmt::format("--fail-rank: there is no rank {} among {} ranks", options.fail_rank, ranks));

  uint64_t most = 0;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    most = std::max(most, share_of(workload.total, ranks, rank, workload.uneven).count);
  workload.chunk = std::bit_ceil((most + options.rounds - 1) / options.rounds);
  workload.rounds = static_cast<uint32_t>((most + workload.chunk - 1) / workload.chunk);
  // All chunks of a round may go to one rank.
  constexpr auto kMostCounted = static_cast<uint64_t>(std::numeric_limits<int>::max());
  if (workload.chunk > std::min(kMostInChunk, kMostCounted / ranks))
    throw std::invalid_argument(
        fmt::format("{}: chunks of {} keys on {} ranks are too large: one rank may receive {} keys "
                    "in a round, but MPI counts at most {}; use more --rounds",
                    option, workload.chunk, ranks, workload.chunk * ranks, kMostCounted));
  return workload;
}

}  // namespace uptempo::sample_sort
