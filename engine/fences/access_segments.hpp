// Splits address ranges at every begin and end, so that overlapping ranges share whole segments.
//
//   ranges     [--- a ---)   [- c -)         a = segments 0, 1;  b = 1, 2, 3;  c = 3
//                  [------ b ------)
//   segments   [ 0 )[ 1 )[ 2)[- 3 -)
//
// Keeps ranges between calls, because programs submit the same ones repeatedly. Private to
// engine/fences.
//
// Cost: one comparison for a range at the same position as in the last call, one hash lookup for
// another known range, and a sort of all ranges if any range is new.
// Thread safety: thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <vector>

#include "engine/fences/declarations.hpp"

namespace uptempo::detail {

class AccessSegments {
 public:
  // Splits `ranges`. An empty range has no segment. May throw std::bad_alloc.
  void cut(std::span<const AccessRange> ranges);
  // Segments of ranges[i]: consecutive numbers.
  auto of(size_t i) const noexcept {
    const Known& range = known_[ids_[i]];
    return std::views::iota(range.first, range.last);
  }
  // Number of segments; some may belong to no range of the last call.
  size_t size() const noexcept { return cuts_.size(); }

 private:
  struct Known {
    uintptr_t begin, end;
    uint32_t first = 0, last = 0;  // segments [first, last)
    bool is(const AccessRange& range) const noexcept {
      return begin == range.begin && end == range.end;
    }
  };
  uint32_t find_or_add(const AccessRange& range);
  void grow_table();
  size_t place_of(uintptr_t begin, uintptr_t end) const noexcept;
  void forget() noexcept;
  void number_segments();

  std::vector<Known> known_;
  size_t numbered_ = 0;          // number of known ranges when they got their segments
  std::vector<uint32_t> table_;  // open addressing: index into known_ plus one; 0: empty slot
  // index into known_ per range; may be longer than the last call's list
  std::vector<uint32_t> ids_;
  std::vector<uintptr_t> cuts_;  // begin addresses of the segments
};

}  // namespace uptempo::detail
