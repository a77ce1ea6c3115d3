// RecordedNode: an untyped description of one node, for code that reads or makes recordings without
// their types. It has no kernarg block and no handle. Private to engine/recording.
//
// Thread safety: thread-compatible; of() reads the recording, append() changes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "aql/packet.hpp"
#include "engine/fences/declarations.hpp"
#include "engine/program/grid.hpp"
#include "engine/program/program.hpp"
#include "engine/recording/recording.hpp"

namespace uptempo::detail {

struct RecordedNode {
  std::shared_ptr<const KernelInfo> kernel;  // null: not a dispatch
  Grid grid{1};
  // contents of the kernarg block; bytes of hidden arguments are undefined
  std::vector<std::byte> arguments{};
  uint32_t group_segment_size = 0;
  Declarations declarations{};
  std::vector<AccessRange> accesses{};  // those of the node alone
  // A finished packet with its header. A node with neither kernel nor finished packet is the
  // barrier packet that a replay appends to a recording that ends with a finished packet.
  std::optional<aql::Packet64> finished{};

  // Number of a recording's nodes. Throws Error if it was moved from, and after the end of the
  // Runtime.
  static size_t count(const Recording& of_recording);
  // Requires `index` less than count().
  static RecordedNode of(const Recording& of_recording, size_t index);
  // Throws Error as Recording::dispatch() and raw().
  static void append(Recording& to, const RecordedNode& node);
};

}  // namespace uptempo::detail
