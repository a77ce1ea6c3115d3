// What the packets of a sequence need of one another, by what each reads and writes. Private to engine/dispatch.
//
// Thread safety: as a vector.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/dispatch/access_segments.hpp"
#include "engine/dispatch/fence_rules.hpp"

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
  void find(std::span<const PacketIntent> packets, std::span<const AccessRange> accesses,
            bool overwrites_are_handed_over);

  // The last packet that must be over before this one begins, plus one; 0 if there is none. Whoever comes after it comes after the others as well.
  uint32_t comes_after(uint32_t packet) const noexcept { return comes_after_[packet]; }
  // In the order of their readers.
  std::span<const HandOver> hand_overs() const noexcept { return hand_overs_; }

 private:
  // Packets, plus one; 0: none.
  struct Segment {
    uint32_t writer = 0, user = 0;
  };

  void touch_everything(uint32_t packet);
  void touch(uint32_t packet, const PacketIntent& intent, std::span<const AccessRange> accesses,
             bool overwrites_are_handed_over);
  void hand_over(uint32_t writer_plus_one, uint32_t reader);

  AccessSegments segments_;
  std::vector<Segment> states_;
  std::vector<uint32_t> written_;       // segments, since a packet touched everything
  uint32_t everything_ = 0, last_ = 0;  // who touched everything, and anything, last; plus one
  std::vector<uint32_t> comes_after_;
  std::vector<HandOver> hand_overs_;
  std::vector<uint32_t> last_reader_;  // of each packet, plus one
};

}  // namespace uptempo::detail
