// The bytes that a packet of an SDMA engine reads and writes.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>

#include "cp/packet/sdma_packet.hpp"
#include "device/memory.hpp"

namespace uptempo::vgpu::sdma {

struct Range {
  GpuAddress address = 0;
  uint64_t bytes = 0;
};

// Calls visit(source, destination) for each row that a packet copies; a fill has no source. Calls
// nothing for packets that move no data.
template <typename Visit>
void for_ranges(const Decoded& packet, Visit visit) {
  if (const auto* linear = std::get_if<CopyLinear>(&packet.packet)) {
    visit(std::optional(Range{linear->source, linear->bytes}),
          Range{linear->destination, linear->bytes});
  } else if (const auto* fill = std::get_if<ConstFill>(&packet.packet)) {
    visit(std::optional<Range>(), Range{fill->destination, fill->bytes});
  } else if (const auto* write = std::get_if<WriteLinear>(&packet.packet)) {
    visit(std::optional<Range>(),
          Range{write->destination, uint64_t{write->dwords} * sizeof(uint32_t)});
  } else if (const auto* rect = std::get_if<CopyRect>(&packet.packet)) {
    for (uint32_t slice = 0; slice < rect->slices; ++slice) {
      for (uint32_t row = 0; row < rect->rows; ++row) {
        const auto at = [&](const CopyRect::Side& side) {
          return Range{side.base + slice * side.slice_bytes + row * side.pitch_bytes,
                       rect->row_bytes};
        };
        visit(std::optional(at(rect->source)), at(rect->destination));
      }
    }
  }
}

}  // namespace uptempo::vgpu::sdma
