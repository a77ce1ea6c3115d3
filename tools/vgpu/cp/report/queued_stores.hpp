// Packets that have not run and store to an address, for waits that such a store may end.
//
// Thread safety: pure functions.
#pragma once

#include <span>
#include <vector>

#include "cp/report/snapshot.hpp"

namespace uptempo::vgpu {

// A packet of an SDMA queue.
struct QueuedStore {
  const QueueSnapshot* queue;
  const QueuedCopy* copy;
};

// Packets that store to one of the bytes. Decrements of signals are in QueueSnapshot::completers.
std::vector<QueuedStore> queued_stores(std::span<const QueueSnapshot* const> queues,
                                       GpuAddress address, uint64_t bytes);

}  // namespace uptempo::vgpu
