#include "splitters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace uptempo::sample_sort {
namespace {

// Keys of the chunk before the splitter.
size_t keys_before(const Sample& splitter, std::span<const uint32_t> sorted_chunk, Range place,
                   uint32_t rank) {
  const auto [first_equal, last_equal] =
      std::equal_range(sorted_chunk.begin(), sorted_chunk.end(), splitter.key);
  const auto lower = static_cast<size_t>(first_equal - sorted_chunk.begin());
  const auto equal = static_cast<size_t>(last_equal - first_equal);
  if (rank != splitter.rank) return rank < splitter.rank ? lower + equal : lower;
  if (splitter.position <= place.first) return lower;
  const uint64_t positions = std::min(splitter.position - place.first, place.count);
  return lower + static_cast<size_t>(static_cast<double>(equal) * static_cast<double>(positions) /
                                     static_cast<double>(place.count));
}

}  // namespace

std::vector<Sample> take_samples(std::span<const uint32_t> keys, uint64_t total, uint32_t ranks,
                                 uint32_t rank, uint64_t seed) {
  if (keys.empty()) return {};
  const double share = static_cast<double>(keys.size()) / static_cast<double>(total);
  const uint64_t wanted = static_cast<uint64_t>(share * ranks * kSamplesPerRank) + 1;
  const uint64_t count = std::min<uint64_t>(wanted, keys.size());
  std::vector<Sample> samples(count);
  const uint64_t width = keys.size() / count, rest = keys.size() % count;
  uint64_t first = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t part = width + (i < rest ? 1 : 0);
    const uint64_t position = first + mix(mix(seed + rank) ^ i) % part;
    samples[i] = {.key = keys[position], .rank = rank, .position = position};
    first += part;
  }
  return samples;
}

std::vector<Sample> choose_splitters(std::vector<Sample> samples, uint32_t ranks) {
  std::ranges::sort(samples);
  std::vector<Sample> splitters(ranks - 1);
  if (samples.empty()) return splitters;
  for (uint32_t i = 0; i + 1 < ranks; ++i) splitters[i] = samples[(i + 1) * samples.size() / ranks];
  return splitters;
}

std::vector<int> parts_of(std::span<const uint32_t> sorted_chunk, Range place, uint32_t rank,
                          std::span<const Sample> splitters) {
  std::vector<int> counts;
  counts.reserve(splitters.size() + 1);
  size_t begin = 0;
  for (const Sample& splitter : splitters) {
    const size_t end = keys_before(splitter, sorted_chunk, place, rank);
    counts.push_back(static_cast<int>(end - begin));
    begin = end;
  }
  counts.push_back(static_cast<int>(sorted_chunk.size() - begin));
  return counts;
}

std::vector<int> displacements(std::span<const int> counts) {
  if (sum_of(counts) > static_cast<uint64_t>(std::numeric_limits<int>::max()))
    throw std::overflow_error(
        fmt::format("one exchange would deliver {} keys to one rank, but MPI counts at most {}: "
                    "use more --rounds or fewer --keys",
                    sum_of(counts), std::numeric_limits<int>::max()));
  std::vector<int> begins(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), begins.begin(), 0);
  return begins;
}

uint64_t sum_of(std::span<const int> counts) {
  return std::accumulate(counts.begin(), counts.end(), uint64_t{0}, [](uint64_t sum, int count) {
    return sum + static_cast<uint64_t>(count);
  });
}

}  // namespace uptempo::sample_sort
