#include "merge_plan.hpp"

namespace uptempo::sample_sort {

MergeTree::Run MergeTree::merge(const Run& left, const Run& right, std::vector<Merge>& merges) {
  uint32_t from = left.side;
  if (left.side != right.side) {  // move the smaller run to the side of the other
    const Run& moved = left.place.count < right.place.count ? left : right;
    from = 1 - moved.side;
    merges.push_back({.first = moved.place.first, .left = moved.place.count, .from = moved.side});
  }
  merges.push_back({.first = left.place.first,
                    .left = left.place.count,
                    .right = right.place.count,
                    .from = from});
  return {.place = {.first = left.place.first, .count = left.place.count + right.place.count},
          .side = 1 - from,
          .rounds = left.rounds + right.rounds};
}

std::vector<Merge> MergeTree::add_round(std::span<const int> run_lengths) {
  std::vector<Run> level;
  for (const int length : run_lengths) {
    const auto count = static_cast<uint64_t>(length);
    if (count != 0) level.push_back({.place = {.first = keys_, .count = count}});
    keys_ += count;
  }
  std::vector<Merge> merges;
  if (level.empty()) return merges;
  while (level.size() > 1) {
    std::vector<Run> next;
    for (size_t i = 0; i + 1 < level.size(); i += 2)
      next.push_back(merge(level[i], level[i + 1], merges));
    if (level.size() % 2 != 0) next.push_back(level.back());
    level = std::move(next);
  }
  Run merged = level.front();
  merged.rounds = 1;
  while (!runs_.empty() && runs_.back().rounds <= merged.rounds) {
    merged = merge(runs_.back(), merged, merges);
    runs_.pop_back();
  }
  runs_.push_back(merged);
  return merges;
}

std::vector<Merge> MergeTree::finish() {
  std::vector<Merge> merges;
  while (runs_.size() > 1) {
    const Run merged = merge(runs_[runs_.size() - 2], runs_.back(), merges);
    runs_.pop_back();
    runs_.back() = merged;
  }
  return merges;
}

}  // namespace uptempo::sample_sort
