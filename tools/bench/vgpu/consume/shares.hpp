// How evenly several queues were served, from their progress at several times.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace uptempo::vgpu::consume {

// Read indices of all queues, read one after the other within a few microseconds.
struct Snapshot {
  double ns;
  std::vector<uint64_t> read_indices;
};

struct Fairness {
  size_t windows = 0;
  // Both are of the worst window, and 1 if all queues got the same. least_to_most: packets of the
  // queue with the fewest by packets of the queue with the most. jain: Jain's index, (sum x)^2 / (n
  // sum x^2).
  double least_to_most = 1;
  double jain = 1;
};

double jain_index(std::span<const double> amounts);

// Splits the snapshots into consecutive windows, each until the queues have completed `packets`
// each on average. Windows are by packets, not by time, because the device may lose its core to
// other threads. Leaves out a remainder that is too short.
Fairness fairness(std::span<const Snapshot> snapshots, uint64_t packets);

}  // namespace uptempo::vgpu::consume
