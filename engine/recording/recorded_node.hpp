// One node of a recording, for what reads recordings or makes them without knowing its types: a description without kernarg block and handle.
// Private to engine/dispatch.
//
// Thread safety: as a vector; of() reads the recording, append() changes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "aql/packet.hpp"
#include "engine/fences/declarations.hpp"
#include "engine/recording/recording.hpp"
#include "engine/program/grid.hpp"
#include "engine/program/program.hpp"

namespace uptempo::detail {

struct RecordedNode {
  std::shared_ptr<const KernelInfo> kernel;  // null: no dispatch
  Grid grid{1};
  std::vector<std::byte> arguments{};  // as the kernarg block; of hidden arguments nothing is said
  uint32_t group_segment_size = 0;
  Declarations declarations{};  // but for the place of its accesses
  std::vector<AccessRange> accesses{};
  // A finished packet, with its header. If neither it nor a kernel is there, the node is the barrier packet with which a replay completes a recording that ends
  // with a finished packet.
  std::optional<aql::Packet64> finished{};

  // `index` is less than the recording's size.
  static RecordedNode of(const Recording& recording, size_t index);
  // Throws Error as Recording::dispatch and raw do.
  static void append(Recording& recording, const RecordedNode& node);
};

}  // namespace uptempo::detail
