#include "tools/bench/vgpu/consume/shares.hpp"

#include <algorithm>
#include <numeric>

namespace uptempo::vgpu::consume {

double jain_index(std::span<const double> amounts) {
  double sum = 0, squares = 0;
  for (const double amount : amounts) {
    sum += amount;
    squares += amount * amount;
  }
  return squares == 0 ? 1 : sum * sum / (static_cast<double>(amounts.size()) * squares);
}

Fairness fairness(std::span<const Snapshot> snapshots, uint64_t packets) {
  Fairness result;
  std::vector<double> amounts;
  for (size_t begin = 0, end = 0; end < snapshots.size(); ++end) {
    const std::vector<uint64_t>& from = snapshots[begin].read_indices;
    const std::vector<uint64_t>& to = snapshots[end].read_indices;
    amounts.clear();
    for (size_t queue = 0; queue < to.size(); ++queue)
      amounts.push_back(static_cast<double>(to[queue] - from[queue]));
    if (std::reduce(amounts.begin(), amounts.end()) < static_cast<double>(packets * amounts.size()))
      continue;
    const auto [least, most] = std::minmax_element(amounts.begin(), amounts.end());
    result.least_to_most = std::min(result.least_to_most, *least / *most);
    result.jain = std::min(result.jain, jain_index(amounts));
    ++result.windows;
    begin = end;
  }
  return result;
}

}  // namespace uptempo::vgpu::consume
