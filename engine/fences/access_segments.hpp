// Ranges of addresses, cut where one of them begins or ends, so that whatever overlaps shares whole segments.
//
//   ranges     [--- a ---)   [- c -)         a = segments 0, 1;  b = 1, 2, 3;  c = 3
//                  [------ b ------)
//   segments   [ 0 )[ 1 )[ 2)[- 3 -)
//
// Ranges are remembered from one call to the next, because programs submit the same ones again and again: one that stands where it stood the last time costs a
// comparison, one that was there before a look into a hash table, a new one a sort of all. Private to engine/dispatch.
//
// Thread safety: as a vector.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/fences/fence_rules.hpp"

namespace uptempo::detail {

class AccessSegments {
 public:
  // Segments [first, last).
  struct Run {
    uint32_t first = 0, last = 0;
  };

  // Empty ranges have no segment. May throw std::bad_alloc.
  void cut(std::span<const AccessRange> ranges);
  // Of ranges[i].
  const Run& of(size_t i) const noexcept { return known_[ids_[i]].run; }
  // Segments are numbered below this; some may belong to no range of the last call.
  size_t size() const noexcept { return cuts_.size(); }

 private:
  struct Known {
    uintptr_t begin, end;
    Run run{};
    bool is(const AccessRange& range) const noexcept { return begin == range.begin && end == range.end; }
  };
  uint32_t find_or_add(const AccessRange& range);
  void grow_table();
  size_t place_of(uintptr_t begin, uintptr_t end) const noexcept;
  void forget() noexcept;
  void number_segments();

  std::vector<Known> known_;
  std::vector<uint32_t> table_;  // open addressing: number of a known range plus one, 0 where there is none
  std::vector<uint32_t> ids_;    // of the ranges of the last call, and behind them of longer ones before it
  std::vector<uintptr_t> cuts_;  // where segments begin
};

}  // namespace uptempo::detail
