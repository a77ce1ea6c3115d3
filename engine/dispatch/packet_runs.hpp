// PacketRuns: finds the packets of a recording that differ from their predecessor only by a kernarg
// address at a constant distance. Such packets are stored from registers; others must be read
// first. Private to engine/dispatch.
//
// Packets are compared in groups of 64, on first use of a group and again after one of its packets
// has changed. The cost of a patch is therefore independent of the recording's length.
//
// Thread safety: thread-compatible.
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
  // Sets the number of packets and discards all results. May allocate.
  void reset(size_t packets) { groups_.assign((packets + kGroupSize - 1) / kGroupSize, {}); }
  void changed(size_t packet) noexcept {
    if (packet / kGroupSize < groups_.size()) groups_[packet / kGroupSize].known = false;
  }

  // Packets [first, end), which are stored in the same way. `step`: distance of consecutive kernarg
  // addresses in bytes, if the packets differ in nothing else.
  struct Run {
    size_t end;
    std::optional<ptrdiff_t> step;
  };
  // `packets` are those counted by reset(). `first` is neither the first nor the last of them;
  // these two belong to no run.
  Run run_from(size_t first, std::span<const aql::Packet64> packets) noexcept;

 private:
  static constexpr size_t kGroupSize = 64;
  struct Group {
    bool known = false;
    std::optional<ptrdiff_t> step;
  };
  std::vector<Group> groups_;
};

}  // namespace uptempo::detail
