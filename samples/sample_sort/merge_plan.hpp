// The order in which sorted runs are merged, until one is left.
//
// Runs are ranges of two equally long arrays, "sides" 0 and 1. A merge reads two neighbouring runs
// from one side and writes their merged keys to the same range of the other.
//
// Thread safety: pure functions; MergeTree has one owner.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "keys.hpp"

namespace uptempo::sample_sort {

// Merges the `left` keys that begin at `first` of side `from` with the `right` keys after them. If
// `right` is 0, the keys are copied to the other side.
struct Merge {
  uint64_t first = 0;
  uint64_t left = 0;
  uint64_t right = 0;
  uint32_t from = 0;
  friend bool operator==(const Merge&, const Merge&) = default;
};

// The runs that have arrived so far. Each round adds some; they are merged to one run, and that run
// with earlier rounds' runs as soon as both hold equally many rounds. So each key takes part in
// about log2(runs of all rounds) merges, and most of them happen while later rounds are exchanged.
class MergeTree {
 public:
  // Adds runs that lie one after another on side 0, after all earlier ones. Returns the merges to
  // execute now, in order.
  std::vector<Merge> add_round(std::span<const int> run_lengths);
  // Returns the merges that leave one run, or none if there are no keys.
  std::vector<Merge> finish();

  uint64_t keys() const noexcept { return keys_; }
  // Side that holds the result after finish().
  uint32_t side() const noexcept { return runs_.empty() ? 0 : runs_.back().side; }

 private:
  struct Run {
    Range place;
    uint32_t side = 0;
    uint32_t rounds = 1;
  };
  static Run merge(const Run& left, const Run& right, std::vector<Merge>& merges);

  std::vector<Run> runs_;
  uint64_t keys_ = 0;
};

}  // namespace uptempo::sample_sort
