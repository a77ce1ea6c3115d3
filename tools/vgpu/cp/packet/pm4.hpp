// PM4 commands inside AQL vendor packets. ROCr sends one, ACQUIRE_MEM, to drop stale code after an
// upload.
#pragma once

#include <optional>

#include "cp/packet/aql_packet.hpp"
#include "device/caches/caching.hpp"
#include "device/memory.hpp"

namespace uptempo::vgpu {

struct Pm4Result {
  bool invalidates_code = false;
  CacheActions caches;
  // Names the unsupported command, or states why the buffer cannot be read.
  std::optional<PacketError> error;
};

// Reads the packet's indirect buffer. Call it between the reader's enter() and leave().
Pm4Result execute_pm4(AddressSpace::Reader& memory, const Pm4IbPacket& packet);

}  // namespace uptempo::vgpu
