// FenceRelations derives what each packet of a sequence requires of earlier ones from the memory
// that packets read and write, and from declared dependencies. Private to engine/fences.
//
// Thread safety: thread-compatible.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <unordered_map>
#include <vector>

#include <uptempo/fences/declarations.hpp>

namespace uptempo::detail {

// Splits address ranges at every begin and end, so that overlapping ranges share whole segments.
//
//   ranges     [--- a ---)   [- c -)         a = segments 0, 1;  b = 1, 2, 3;  c = 3
//                  [------ b ------)
//   segments   [ 0 )[ 1 )[ 2)[- 3 -)
//
// Keeps ranges between calls, because programs submit the same ones repeatedly. Cost: one
// comparison for a range at the same position as in the last call, one hash lookup for another
// known range, and a sort of all ranges if any range is new.
class AccessSegments {
 public:
  // Splits `ranges`. An empty range has no segment. May throw std::bad_alloc.
  void cut(std::span<const AccessRange> ranges);
  // Segments of ranges[i]: consecutive numbers.
  auto of(size_t i) const noexcept {
    const Segments& segments = ranges_[i]->second;
    return std::views::iota(segments.first, segments.last);
  }
  // Number of segments; some may belong to no range of the last call.
  size_t size() const noexcept { return cuts_.size(); }

 private:
  struct Range {
    uintptr_t begin, end;
    bool operator==(const Range&) const = default;
  };
  struct Hash {
    size_t operator()(const Range& range) const noexcept {
      return (range.begin ^ std::rotl(uint64_t{range.end}, 32)) * 0x9e3779b97f4a7c15 >> 32;
    }
  };
  struct Segments {
    uint32_t first = 0, last = 0;  // [first, last)
  };
  using Known = std::unordered_map<Range, Segments, Hash>;
  void number_segments();

  Known known_;
  bool are_numbered_ = true;  // all known ranges have their segments
  // known range of each range; may be longer than the last call's list
  std::vector<const Known::value_type*> ranges_;
  std::vector<uintptr_t> cuts_;  // begin addresses of the segments
};

class FenceRelations {
 public:
  struct Needs {
    // The last packet that must complete before this one begins, plus one; 0: none. Order after it
    // implies order after all other required packets.
    uint32_t after = 0;
    bool is_dependency = false;  // that packet is a declared dependency
    // The packets whose writes this one reads and no packet has overwritten since. Each requires a
    // release at or after the writer, then an acquire at or before this packet. Valid until the
    // next call.
    std::span<const uint32_t> writers{};
  };

  // With `overwrites_are_handed_over`, a packet that overwrites counts as a reader.
  explicit FenceRelations(bool overwrites_are_handed_over) noexcept
      : overwrites_are_handed_over_(overwrites_are_handed_over) {}

  // Begins a sequence of so many packets. May throw std::bad_alloc, as may add().
  void begin(size_t packets, std::span<const AccessRange> accesses);
  // The next packet. Without declarations it may read and write everything.
  // Cost: linear in the segments that it accesses.
  Needs add(const Declarations& packet, std::span<const AccessRange> accesses);

 private:
  // Packets by their number plus one; 0: none.
  struct Segment {
    uint32_t writer = 0, user = 0;
  };

  Needs add_undeclared();
  void hand_over(uint32_t writer);

  const bool overwrites_are_handed_over_;
  AccessSegments segments_;
  std::vector<Segment> states_;
  uint32_t packet_ = 0;  // the current one
  // last packet that accessed everything, and that accessed anything
  uint32_t everything_ = 0, last_ = 0;
  // since the last packet that accessed everything: segments written, and packets with
  // dependencies, which may have written anything
  std::vector<uint32_t> written_, unknown_writers_;
  std::vector<uint32_t> writers_;      // of Needs
  std::vector<uint32_t> last_reader_;  // per packet
};

}  // namespace uptempo::detail
