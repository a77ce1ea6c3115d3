// What the packets of a sequence need of one another, by what each reads and writes. Private to engine/dispatch.
//
// Thread safety: as a vector.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/fences/access_segments.hpp"
#include "engine/fences/fence_rules.hpp"

namespace uptempo::detail {

// What `writer` wrote, and nobody has overwritten since, must have reached `reader`: a release behind the one, and behind that an acquire ahead of the other.
struct HandOver {
  uint32_t writer, reader;
  bool operator==(const HandOver&) const = default;
};

class FenceRelations {
 public:
  // A packet that declares nothing may read and write everything. With `overwrites_are_handed_over` a packet that overwrites counts as a reader.
  // Cost: linear in packets and in the segments that each touches. May throw std::bad_alloc.
  void find(std::span<const Declarations> packets, std::span<const AccessRange> accesses,
            bool overwrites_are_handed_over);

  // The last packet that must be over before this one begins, plus one; 0 if there is none. Whoever comes after it comes after the others as well.
  uint32_t comes_after(uint32_t packet) const noexcept { return comes_after_[packet]; }
  // In the order of their readers.
  std::span<const HandOver> hand_overs() const noexcept { return hand_overs_; }

 private:
  // Packets are counted on from one call to the next, so that what earlier calls have left in the segments need not be cleared: counts up to `before_` are no packet
  // of this call.
  using Count = uint64_t;
  struct Segment {
    Count writer = 0, user = 0;
  };

  void begin(size_t packets);

  void touch_everything(uint32_t packet);
  void touch(uint32_t packet, const Declarations& declarations, std::span<const AccessRange> accesses,
             bool overwrites_are_handed_over);
  void hand_over(Count writer, uint32_t reader);
  Count count_of(uint32_t packet) const noexcept { return before_ + packet + 1; }
  // Plus one; 0 if it is none of this call's.
  uint32_t packet_of(Count count) const noexcept { return static_cast<uint32_t>(count - before_); }

  AccessSegments segments_;
  std::vector<Segment> states_;
  std::vector<uint32_t> written_;  // segments, since a packet touched everything
  Count before_ = 0;
  Count end_ = 0;                    // the last one of this call
  Count everything_ = 0, last_ = 0;  // who touched everything, and anything, last
  std::vector<uint32_t> comes_after_;
  std::vector<HandOver> hand_overs_;
  std::vector<Count> last_reader_;  // of each packet
};

}  // namespace uptempo::detail
