// The input of a sort: which keys each rank holds, their values, and a checksum that shows whether
// the output holds the same keys.
//
// Thread safety: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace uptempo::sample_sort {

enum class Distribution : uint8_t { uniform, sorted, reverse, equal, skewed };

struct DistributionInfo {
  const char* name;
  Distribution value;
};
inline constexpr std::array<DistributionInfo, 5> kDistributions{{
    {"uniform", Distribution::uniform},
    {"sorted", Distribution::sorted},    // each rank already holds its part of the result
    {"reverse", Distribution::reverse},  // descending: every key changes its rank
    {"equal", Distribution::equal},
    {"skewed", Distribution::skewed},  // value v has a frequency of about 1/v, as in Zipf's law
}};
const char* name_of(Distribution distribution);

// A range of keys, by their positions.
struct Range {
  uint64_t first = 0;
  uint64_t count = 0;
  friend bool operator==(const Range&, const Range&) = default;
};

// The positions that `rank` of `ranks` holds before the sort, out of `total`. Uneven: rank 0 holds
// none and the last rank about twice the mean.
Range share_of(uint64_t total, uint32_t ranks, uint32_t rank, bool uneven);

// Writes the keys at the positions share.first, share.first + 1, ... out of `total`. `keys` has
// share.count elements. A key depends only on its position, on the seed and on the distribution.
void generate(Distribution distribution, uint64_t seed, uint64_t total, Range share,
              std::span<uint32_t> keys);

// Equal for two ranges of keys if, up to collisions, one is a permutation of the other. Checksums
// of parts add up member by member, modulo 2^64, to that of the whole.
struct Checksum {
  uint64_t count = 0;
  uint64_t sum = 0;
  uint64_t mixed_sum = 0;  // sum of a 64-bit hash of each key
  friend bool operator==(const Checksum&, const Checksum&) = default;
};
Checksum checksum(std::span<const uint32_t> keys);

// The 64-bit finalizer of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
// Generators): a bijection that changes half of the bits.
constexpr uint64_t mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

}  // namespace uptempo::sample_sort
