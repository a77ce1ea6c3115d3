// Workgroups of launched dispatches onto the device's workers.
//
// Progress. A workgroup runs for a slice of instructions; if it has not ended by then it joins a queue of runnable ones, which all workers share and
// serve in turn. New workgroups are taken between rounds of that queue, so a kernel that spins on another one - of the same dispatch, of
// another queue, or on the host - never keeps that other one from running. What is resident at a time is bounded by what the device has waves for.
//
// Workers. Worker 0 is the command processor's own thread, so that a small dispatch needs no hand-off; the others are helpers, which sleep when
// there is nothing to take and are woken only for work large enough to pay for it: a dispatch of several workgroups, or several dispatches
// that take long.
//
// Determinism. Race-free kernels give the same results whatever the order. With Options::deterministic there are no helpers, and
// workgroups start in an order that depends on Options::seed alone.
//
// Thread safety: launch() and abandon() from any thread; run_slice(), drop_abandoned() and busy() belong to worker 0's thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "cp/scratch_slots.hpp"
#include "device/device.hpp"
#include "gfx9/workgroup.hpp"

namespace uptempo::vgpu {

// A launched dispatch. Made by the queue, driven by the scheduler, destroyed by the queue once finished() is true.
class Dispatch {
 public:
  // `scratch`: the queue's.
  Dispatch(std::shared_ptr<const gfx9::DispatchState> state, ScratchSlots& scratch);

  // Every workgroup has ended, or it was abandoned and no worker touches it any more. acquire: its results are visible.
  bool finished() const noexcept { return finished_.load(std::memory_order_acquire); }

  // Valid once finished(): what stopped it.
  const std::optional<gfx9::Executor::Fault>& fault() const noexcept { return fault_; }
  const gfx9::DispatchState& state() const noexcept { return *state_; }

 private:
  friend class Scheduler;

  const std::shared_ptr<const gfx9::DispatchState> state_;
  ScratchSlots& scratch_;  // guarded by the scheduler's mutex
  const std::array<uint32_t, 3> groups_;
  const uint64_t total_;
  const uint32_t waves_per_group_;
  bool needs_scratch_ = false;
  // Order of workgroups: the n-th to start has id (n * stride_ + offset_) mod total_.
  uint64_t stride_ = 1, offset_ = 0;

  uint64_t next_ = 0;  // first workgroup that no worker has claimed; guarded by the scheduler's mutex
  uint64_t resident_ = 0;  // claimed and not ended; same mutex
  std::atomic<uint64_t> ended_{0};
  std::atomic<bool> abandoned_{false};
  std::atomic<bool> finished_{false};
  std::optional<gfx9::Executor::Fault> fault_;  // written once, before finished_
};

class Scheduler {
 public:
  // `on_finished` is called by whoever ends the last workgroup of a dispatch, after finished() has become true; it must not block.
  Scheduler(Device& device, gfx9::CodeCache& code, gfx9::Target target, uint32_t workers,
            std::function<void()> on_finished);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // The dispatch stays where it is until finished().
  void launch(Dispatch& dispatch);

  // No workgroup of it starts or goes on any more; finished() follows as soon as every worker has noticed.
  void abandon(Dispatch& dispatch);

  // Worker 0: runs workgroups for about one time slice, less when a dispatch finishes. False: there was nothing to run.
  bool run_slice();

  // Drops what worker 0 has claimed of abandoned dispatches, so that a thread that waits for finished() on worker 0 does not wait for itself.
  void drop_abandoned();

  // Workgroups to start or to continue exist, those that worker 0 has claimed included.
  bool busy() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace uptempo::vgpu
