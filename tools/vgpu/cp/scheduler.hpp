// Runs the workgroups of launched dispatches on the device's workers.
//
// Progress: a workgroup runs for a slice of instructions. If it has not ended, it joins a queue of
// runnable workgroups, which all workers share and serve in turn. Workers start new workgroups
// between rounds of that queue. A kernel that spins on another one (of the same dispatch, of
// another queue, or on the host) therefore never prevents the other one from running. The device's
// wave count bounds the number of resident workgroups.
//
// Compute units: a workgroup runs on a unit of its queue's share (QueueShare). The waves that fit
// on those units bound the resident workgroups of a queue with a mask, and of each dispatch of a
// queue without. A queue without units starts nothing.
//
// Priority: when workgroups of several queues wait to start, those of the highest priority start
// first, and equal ones in turn. Resident workgroups continue whatever their priority, and take
// their turns with the others. A workgroup of lower priority starts when those of higher priority
// have started or have no room. A kernel may therefore spin on a kernel of lower priority. It waits
// for as long as workgroups of higher priority keep coming, as on hardware.
//
// Workers: worker 0 is the command processor's own thread, so a small dispatch needs no hand-over.
// The others are helpers. They sleep without work and are woken only for work that pays for the
// wake-up: a dispatch of several workgroups, or several long dispatches.
//
// Determinism: race-free kernels give the same results in any order. With Options::deterministic
// there are no helpers, and only Options::seed determines the order in which workgroups start.
//
// Thread safety: launch(), abandon() and the setters of shares from any thread; run_slice(),
// drop_abandoned() and busy() from worker 0's thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "cp/queue_share.hpp"
#include "cp/scratch_slots.hpp"
#include "device/device.hpp"
#include "gfx9/workgroup.hpp"

namespace uptempo::vgpu {

// A launched dispatch. The queue creates it, the scheduler runs it, and the queue destroys it once
// finished() is true.
class Dispatch {
 public:
  // `scratch` and `share`: those of the queue.
  Dispatch(std::shared_ptr<const gfx9::DispatchState> state, ScratchSlots& scratch,
           QueueShare& share);

  // True when every workgroup has ended, or when the dispatch was abandoned and no worker accesses
  // it. acquire: its results are visible.
  bool finished() const noexcept { return finished_.load(std::memory_order_acquire); }

  // The fault that stopped the dispatch. Valid once finished().
  const std::optional<gfx9::Executor::Fault>& fault() const noexcept { return fault_; }
  const gfx9::DispatchState& state() const noexcept { return *state_; }

 private:
  friend class Scheduler;

  const std::shared_ptr<const gfx9::DispatchState> state_;
  ScratchSlots& scratch_;  // guarded by the scheduler's mutex
  QueueShare& share_;      // same mutex
  const std::array<uint32_t, 3> groups_;
  const uint64_t total_;
  const uint32_t waves_per_group_;
  bool needs_scratch_ = false;
  bool masked_ = false;  // launched while the queue had a CU mask
  // Order of workgroups: the n-th to start has id (n * stride_ + offset_) mod total_.
  uint64_t stride_ = 1, offset_ = 0;
  uint64_t first_turn_ = 0;  // number of the first one in the order of the device's workgroups

  // first workgroup that no worker has claimed; guarded by the scheduler's mutex
  uint64_t next_ = 0;
  uint64_t resident_ = 0;  // claimed and not ended; same mutex
  std::atomic<uint64_t> ended_{0};
  std::atomic<bool> abandoned_{false};
  std::atomic<bool> finished_{false};
  std::optional<gfx9::Executor::Fault> fault_;  // written once, before finished_
};

class Scheduler {
 public:
  // The worker that ends the last workgroup of a dispatch calls `on_finished`, after finished() has
  // become true. `on_finished` must not block.
  Scheduler(Device& device, gfx9::CodeCache& code, gfx9::Target target, uint32_t workers,
            std::function<void()> on_finished);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // The dispatch must not move until finished().
  void launch(Dispatch& dispatch);

  // For workgroups that no worker has claimed yet, those of launched dispatches included.
  void set_units(QueueShare& share, const ComputeUnitSet& units);
  void set_priority(QueueShare& share, PipePriority priority);

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

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace uptempo::vgpu
