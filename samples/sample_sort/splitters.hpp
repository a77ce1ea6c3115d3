// Decides which rank receives which keys.
//
// Each rank takes keys of its input at random positions, one in each of many equal parts. The
// samples of all ranks, in order, give the splitters: rank r receives the keys from splitter r - 1
// (inclusive) to splitter r.
//
// Equal keys: samples and splitters are compared by key, then by rank, then by position on that
// rank. So splitters divide even a run of equal keys among ranks. A sorted chunk no longer knows
// the positions of its equal keys, and needs them no more: equal keys are interchangeable, so that
// only their number on each side of a splitter matters (parts_of).
//
// Thread safety: pure functions.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "keys.hpp"

namespace uptempo::sample_sort {

// With s samples per rank, the number of keys that a rank receives has a standard deviation of
// about 1/sqrt(s) of the mean: 3 %.
inline constexpr uint32_t kSamplesPerRank = 1024;

struct Sample {
  uint32_t key = 0;
  uint32_t rank = 0;
  uint64_t position = 0;  // in the rank's input
  friend auto operator<=>(const Sample&, const Sample&) = default;
};

// The samples of a rank with these keys. Their number is the rank's share of kSamplesPerRank times
// `ranks`, at most one per key.
std::vector<Sample> take_samples(std::span<const uint32_t> keys, uint64_t total, uint32_t ranks,
                                 uint32_t rank, uint64_t seed);

// ranks - 1 splitters in ascending order, from the samples of all ranks.
std::vector<Sample> choose_splitters(std::vector<Sample> samples, uint32_t ranks);

// The number of keys of a sorted chunk that each rank receives, in rank order. `place` is the range
// of the chunk in the input of `rank`. Equal keys that a splitter divides are divided in proportion
// to the positions on both sides of it.
std::vector<int> parts_of(std::span<const uint32_t> sorted_chunk, Range place, uint32_t rank,
                          std::span<const Sample> splitters);

// Where each part begins in a buffer that holds all parts: the displacements of MPI_Alltoallv.
// Throws std::overflow_error if there are more keys than MPI's int counts.
std::vector<int> displacements(std::span<const int> counts);

// Keys in all parts.
uint64_t sum_of(std::span<const int> counts);

}  // namespace uptempo::sample_sort
