// FenceRelations derives what the packets of a sequence require of one another from the memory each
// one reads and writes. Private to engine/fences.
//
// Thread safety: thread-compatible.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/fences/access_segments.hpp"
#include "engine/fences/declarations.hpp"

namespace uptempo::detail {

// `reader` reads what `writer` wrote and no packet has overwritten since. Requires a release at or
// after the writer, then an acquire at or before the reader.
struct HandOver {
  uint32_t writer, reader;
  bool operator==(const HandOver&) const = default;
};

class FenceRelations {
 public:
  // A packet without declarations may read and write everything. With `overwrites_are_handed_over`,
  // a packet that overwrites counts as a reader. May throw std::bad_alloc.
  // Cost: linear in packets and in the segments that each accesses.
  void find(std::span<const Declarations> packets, std::span<const AccessRange> accesses,
            bool overwrites_are_handed_over);

  // The last packet that must complete before this one begins, plus one; 0 if there is none. Order
  // after it implies order after all other required packets.
  uint32_t comes_after(uint32_t packet) const noexcept { return comes_after_[packet].packet; }
  // That packet is a declared dependency of this one.
  bool is_dependency(uint32_t packet) const noexcept { return comes_after_[packet].is_dependency; }
  // Ordered by reader.
  std::span<const HandOver> hand_overs() const noexcept { return hand_overs_; }

 private:
  // Packet counts continue from call to call, so segment states of earlier calls need not be
  // cleared: counts up to `before_` belong to earlier calls.
  using Count = uint64_t;
  struct Segment {
    Count writer = 0, user = 0;
  };
  struct Predecessor {
    uint32_t packet = 0;  // plus one; 0: none
    bool is_dependency = false;
  };

  void begin(size_t packets);

  void touch_everything(uint32_t packet);
  void touch(uint32_t packet, const Declarations& declarations,
             std::span<const AccessRange> accesses, bool overwrites_are_handed_over);
  void hand_over(Count writer, uint32_t reader);
  Count count_of(uint32_t packet) const noexcept { return before_ + packet + 1; }
  // Packet number plus one; 0 if the packet belongs to an earlier call.
  uint32_t packet_of(Count count) const noexcept { return static_cast<uint32_t>(count - before_); }

  AccessSegments segments_;
  std::vector<Segment> states_;
  // segments written since the last packet that accessed everything
  std::vector<uint32_t> written_;
  // packets with dependencies since then: what they wrote is unknown
  std::vector<uint32_t> unknown_writers_;
  Count before_ = 0;
  Count end_ = 0;  // last packet of this call
  // last packet that accessed everything, and that accessed anything
  Count everything_ = 0, last_ = 0;
  std::vector<Predecessor> comes_after_;
  std::vector<HandOver> hand_overs_;
  std::vector<Count> last_reader_;  // per packet
};

}  // namespace uptempo::detail
