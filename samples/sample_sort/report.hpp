// The report of sample_sort.
#pragma once

#include <string>
#include <vector>

#include "options.hpp"

namespace uptempo::sample_sort {

struct Report {
  std::string device;
  bool is_virtual = false;
  std::string mpi;
  uint32_t ranks = 1;
  uint32_t hosts = 1;
  Workload workload;
  bool verified = true;
  // One entry per iteration, with an entry per rank.
  std::vector<std::vector<RankTimes>> iterations;
};

// Least, mean and largest value among the ranks.
struct Spread {
  double least = 0, mean = 0, most = 0;
};

// An iteration takes as long as its slowest rank. Returns the iteration with the median time; of
// two middle ones, the faster.
const std::vector<RankTimes>& median_iteration(const Report& report);
double seconds_of(const std::vector<RankTimes>& ranks);
double keys_per_second(const Report& report);
Spread spread(const std::vector<RankTimes>& ranks, double (*value)(const RankTimes&));
// Share of the exchanges' time in which the device was busy, over all ranks; 0 without exchange.
double overlap(const std::vector<RankTimes>& ranks);

std::string table(const Report& report);

}  // namespace uptempo::sample_sort
