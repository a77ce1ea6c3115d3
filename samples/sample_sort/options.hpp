// The command line of sample_sort.
#pragma once

#include <cstdint>
#include <string>

#include "samples/sample_sort/sample_sort.hpp"

namespace uptempo::support {
class CommandLine;
}

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
  uint32_t workers = 0;  // of the virtual GPU; 0: not given
  int64_t fail_rank = -1;
  std::string device = "auto";
  std::string json_file;  // empty: none; "-": standard output
};

// Declares the options. Their values are in `options` after `app` has parsed.
void declare(support::CommandLine& app, Options& options);

// Workload for this number of ranks. Throws support::UsageError for keys that MPI cannot count.
Workload workload_of(const Options& options, uint32_t ranks);

// A number that differs, up to collisions, for options with which ranks would not sort together.
uint64_t fingerprint(const Options& options);

// Threads of the virtual GPU of each rank, so that the ranks of a host share its cores. `usable`
// are the cores that this process may use, `online` all of the host.
uint32_t workers_per_rank(uint32_t usable, uint32_t online, uint32_t ranks_on_host);

}  // namespace uptempo::sample_sort
