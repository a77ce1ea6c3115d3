// The values of the command line, and the workload that they describe.
#pragma once

#include <cstdint>

#include "sample_sort.hpp"

namespace uptempo::sample_sort {

inline constexpr uint64_t kDefaultKeys = 1 << 18;

struct Options {
  uint64_t keys = 0;   // per rank; 0: not given
  uint64_t total = 0;  // of all ranks; 0: not given
  Distribution distribution = Distribution::uniform;
  bool uneven = false;
  uint32_t rounds = 4;
  uint32_t iterations = 3;
  uint64_t seed = 1;
  int64_t fail_rank = -1;
};

// Workload for this number of ranks. Throws std::invalid_argument for keys that MPI cannot count.
Workload workload_of(const Options& options, uint32_t ranks);

}  // namespace uptempo::sample_sort
