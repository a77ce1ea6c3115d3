// A compute queue's share of the device: the compute units that it may use, and its priority over
// other queues.
//
// Thread safety: none; the scheduler's lock guards it. Lifetime: the queue owns it, and it outlives
// the queue's dispatches.
#pragma once

#include <cstdint>

#include "device/compute_units.hpp"

namespace uptempo::vgpu {

// The priority by which the hardware's pipes start waves: CP_HQD_PIPE_PRIORITY.
enum class PipePriority : uint8_t { low, medium, high };
inline constexpr unsigned kPipePriorities = 3;

// KFD's queue priority, 0 to 15, as KFD maps it (pipe_priority_map in Linux's kfd_mqd_manager.c).
constexpr PipePriority pipe_priority(uint32_t queue_priority) noexcept {
  if (queue_priority < 7) return PipePriority::low;
  return queue_priority < 11 ? PipePriority::medium : PipePriority::high;
}

struct QueueShare {
  ComputeUnitSet units;
  PipePriority priority = PipePriority::medium;
  bool suspended = false;  // starts nothing
  // The XCD of the first workgroup of every dispatch. KFD gives each queue the next one
  // (current_logical_xcc_start in Linux's kfd_mqd_manager_v9.c).
  uint32_t first_xcd = 0;
  // Waves of workgroups that are claimed and not ended, of dispatches that were launched with a CU
  // mask. Those of other dispatches are not counted, since each start and end would store here.
  uint64_t masked_waves = 0;
};

}  // namespace uptempo::vgpu
