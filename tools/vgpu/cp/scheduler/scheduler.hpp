// Runs the workgroups of launched dispatches on the device's workers.
//
// Progress: a workgroup runs for a slice of instructions. If it has not ended, it joins its
// worker's queue of preempted workgroups, which the worker serves in turn; a worker with a shorter
// queue takes from a longer one. Workers start new workgroups between rounds of that queue. A
// kernel that spins on another one (of the same dispatch, of another queue, or on the host)
// therefore does not prevent the other one from running, if both fit on the compute units together.
//
// Claims: workers claim new workgroups, and count those that ended, without a lock (claims.hpp).
// Only dispatches with a CU mask, with scratch or of 2^32 workgroups take the scheduler's lock.
//
// Chains: a dispatch may be launched before those that it waits for have ended. The worker that
// ends the last of them starts it, without the command processor.
//
// Compute units: a workgroup runs on a unit of its queue's share (QueueShare). Residency follows
// the wave slots, LDS, registers and barriers of these units (device/occupancy.hpp): exactly for the
// workgroups of one dispatch, and beside other dispatches for those that were preempted once and
// hold their unit since then (WaveSlots). A workgroup without room waits until others end. A queue
// without units starts nothing.
//
// Priority: when workgroups of several queues wait to start, those of the highest priority start
// first, and equal ones in turn. Resident workgroups continue whatever their priority, and take
// their turns with the others. A workgroup of lower priority starts when those of higher priority
// have started or have no room. It waits for as long as workgroups of higher priority keep coming,
// as on hardware.
//
// Workers: worker 0 is the command processor's own thread, so a small dispatch needs no hand-over.
// The others are helpers. They sleep without work. A launch wakes one; after that, every worker
// that ends a workgroup wakes others if the rest of the dispatch pays for the wake-up.
//
// Determinism: race-free kernels give the same results in any order. With Options::deterministic
// there are no helpers, and only Options::seed determines the order in which workgroups start.
//
// Thread safety: all members from worker 0's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cp/report/snapshot.hpp"
#include "cp/scheduler/dispatch.hpp"
#include "cp/scheduler/queue_share.hpp"
#include "device/device.hpp"
#include "gfx9/workgroup.hpp"

namespace uptempo::vgpu {

class Scheduler {
 public:
  // The worker that ends the last workgroup of a dispatch calls `on_finished`, after finished() has
  // become true. `on_finished` must not block.
  Scheduler(Device& device, gfx9::CodeCache& code, gfx9::Target target, uint32_t workers,
            std::function<void()> on_finished);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Whether another dispatch may be launched now. The device runs some 2000 at a time.
  bool has_room() const noexcept;

  // The dispatch must not move until finished(). Requires has_room().
  void launch(Dispatch& dispatch) { launch_after(dispatch, {}); }

  // The workgroups start when all of `earlier` have ended. If one of them is abandoned or faults,
  // they never start, and the caller must abandon this dispatch, too. Requires that each of
  // `earlier` was launched, is not destroyed, and has no other dispatch that waits for it.
  void launch_after(Dispatch& dispatch, std::span<Dispatch* const> earlier);

  // Whether there are workers besides worker 0.
  bool has_helpers() const noexcept;

  // For workgroups that no worker has claimed yet, those of launched dispatches included.
  void set_units(QueueShare& share, const ComputeUnitSet& units);
  void set_priority(QueueShare& share, PipePriority priority);
  void set_suspended(QueueShare& share, bool suspended);

  // Its workgroups neither start nor continue. finished() becomes true when every worker has
  // noticed.
  void abandon(Dispatch& dispatch);

  // Worker 0: runs workgroups for about one time slice, or less if a dispatch finishes. Returns
  // false if there was nothing to run.
  bool run_slice();

  // Drops what worker 0 has claimed of abandoned dispatches. Without it, a thread that waits for
  // finished() on worker 0 would wait for itself.
  void drop_abandoned();

  // Whether workgroups remain to start or continue, including those that worker 0 has claimed.
  bool busy() const noexcept;

  // Workgroups that have started and not ended.
  struct Residents {
    struct Resident {
      const Dispatch* dispatch;
      WorkgroupSnapshot workgroup;
    };
    // Dispatches with workgroups to start that a worker has claimed.
    struct Claimed {
      const Dispatch* dispatch;
      uint64_t workgroups;
    };
    std::vector<Resident> workgroups;
    std::vector<Claimed> claimed;
    std::vector<uint32_t> silent_workers;  // did not come to rest; what they run is missing
  };
  // Has all helpers rest after the slice that they execute, copies the state of resident
  // workgroups, and lets them continue. Waits for the helpers for at most `limit`. Cost: a slice, and
  // some 100 ns a wave.
  Residents residents(std::chrono::nanoseconds limit);
  // Workgroups that have not started, but for Residents::claimed. Exact while no worker claims.
  uint64_t unclaimed(const Dispatch& dispatch);
  // Whether a workgroup fits beside those that were preempted.
  bool fits(const ComputeUnitSet& units, const WorkgroupNeeds& needs) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace uptempo::vgpu
