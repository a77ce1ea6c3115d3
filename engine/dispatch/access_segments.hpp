// Ranges of addresses, cut where one of them begins or ends, so that whatever overlaps shares whole segments.
//
//   ranges     [--- a ---)   [- c -)         a = segments 0, 1;  b = 1, 2, 3;  c = 3
//                  [------ b ------)
//   segments   [ 0 )[ 1 )[ 2)[- 3 -)
//
// Ranges are remembered from one call to the next, because programs submit the same ones again and again: those that were there the last time cost a look
// into a hash table each, new ones a sort of all. Private to engine/dispatch.
//
// Thread safety: as a vector.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/dispatch/fence_rules.hpp"

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
  const Run& of(size_t i) const noexcept { return runs_[ids_[i]]; }
  // Segments are numbered below this; some may belong to no range of the last call.
  size_t size() const noexcept { return cuts_.size(); }

 private:
  struct Range {
    uintptr_t begin, end;
    bool operator==(const Range&) const = default;
  };
  uint32_t find_or_add(const Range& range);
  void grow_table();
  size_t place_of(const Range& range) const noexcept;
  void forget() noexcept;
  void number_segments();

  std::vector<Range> known_;
  std::vector<Run> runs_;        // of each known range
  std::vector<uint32_t> table_;  // open addressing: number of a known range plus one, 0 where there is none
  std::vector<uint32_t> ids_;    // of the ranges of the last call
  std::vector<uintptr_t> cuts_;  // where segments begin
};

}  // namespace uptempo::detail
