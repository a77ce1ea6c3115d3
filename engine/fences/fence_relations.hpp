// FenceRelations derives what each packet of a sequence requires of earlier ones from the memory
// that packets read and write, and from declared dependencies. Private to engine/fences.
//
// Thread safety: thread-compatible.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/fences/access_segments.hpp"
#include "engine/fences/declarations.hpp"

namespace uptempo::detail {

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
