// How evenly several queues were served, from how far each had got at certain times.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace uptempo::vgpu::consume {

// Read indices of all queues, taken one after the other within a few microseconds.
struct Snapshot {
  double ns;
  std::vector<uint64_t> read_indices;
};

struct Fairness {
  size_t windows = 0;
  // Of the worst window: packets of the queue that got fewest over packets of the one that got most, and Jain's index, (sum x)^2 / (n sum x^2). Both are
  // 1 where all got the same.
  double least_to_most = 1;
  double jain = 1;
};

double jain_index(std::span<const double> amounts);

// Windows that follow one another, each from one snapshot to the first by which the queues have got `packets` each on average: by packets, not by time, because
// the device may lose its core to others for a while. A rest that is too short is left out.
Fairness fairness(std::span<const Snapshot> snapshots, uint64_t packets);

}  // namespace uptempo::vgpu::consume
