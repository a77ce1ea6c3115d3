// Which packets of a recording differ from the one before by their kernarg address alone, and all by the same distance. Such packets are stored from registers,
// where others have to be read first. Private to engine/dispatch.
//
// Packets are looked at in groups of 64, each when it is asked for and again after one of its packets has changed: what a patch costs does not depend on the length
// of the recording.
//
// Thread safety: as a vector.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "aql/packet.hpp"

namespace uptempo::detail {

class PacketRuns {
 public:
  // There are so many packets, and nothing is known of them. May allocate.
  void reset(size_t packets) { groups_.assign((packets + group_size - 1) / group_size, {}); }
  void changed(size_t packet) noexcept {
    if (packet / group_size < groups_.size()) groups_[packet / group_size].known = false;
  }

  // The packets [first, end) that are stored in the same way. `step`: bytes from one kernarg address to the next, for packets that have nothing else of their own.
  struct Run {
    size_t end;
    std::optional<ptrdiff_t> step;
  };
  // Of the packets that reset() was told of. `first` is neither the first nor the last of them: those belong to no run.
  Run run_from(size_t first, std::span<const aql::Packet64> packets) noexcept;

 private:
  static constexpr size_t group_size = 64;
  struct Group {
    bool known = false;
    std::optional<ptrdiff_t> step;
  };
  std::vector<Group> groups_;
};

}  // namespace uptempo::detail
