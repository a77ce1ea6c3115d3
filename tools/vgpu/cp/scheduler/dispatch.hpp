// A launched dispatch. The queue creates it, the scheduler runs it, and the queue destroys it once
// finished() is true.
//
// Thread safety: finished() and fault() from any thread; the scheduler's members as noted.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "cp/scheduler/claims.hpp"
#include "cp/scheduler/queue_share.hpp"
#include "cp/scheduler/scratch_slots.hpp"
#include "gfx9/workgroup.hpp"

namespace uptempo::vgpu {

class Dispatch {
 public:
  // `scratch` and `share`: those of the queue.
  Dispatch(std::unique_ptr<const gfx9::DispatchState> state, ScratchSlots& scratch,
           QueueShare& share);
  Dispatch(const Dispatch&) = delete;
  Dispatch& operator=(const Dispatch&) = delete;

  // True when every workgroup has ended, or when the dispatch was abandoned and no worker accesses
  // it. acquire: its results are visible.
  bool finished() const noexcept { return finished_.load(std::memory_order_acquire); }

  // Whether its workgroups may start: false while it waits for others (Scheduler::launch_after).
  bool opened() const noexcept { return opened_.load(std::memory_order_relaxed); }

  // The fault that stopped the dispatch. Valid once finished().
  const std::optional<gfx9::Executor::Fault>& fault() const noexcept { return fault_; }
  const gfx9::DispatchState& state() const noexcept { return *state_; }
  uint32_t waves_per_group() const noexcept { return waves_per_group_; }

 private:
  friend class Launches;
  friend class Scheduler;

  const std::unique_ptr<const gfx9::DispatchState> state_;
  ScratchSlots& scratch_;  // guarded by the mutex of Launches
  QueueShare& share_;      // same mutex
  const std::array<uint32_t, 3> groups_;
  const uint64_t total_;
  const uint32_t waves_per_group_;
  const bool needs_scratch_;
  bool masked_ = false;  // opened while the queue had a CU mask
  // Order of workgroups: the n-th to start has id (n * stride_ + offset_) mod total_.
  uint64_t stride_ = 1, offset_ = 0;
  uint64_t first_turn_ = 0;  // number of the first one in the order of the device's workgroups
  Claims::Slot* slot_ = nullptr;
  Deal deal_;
  // Guarded by the mutex, and used while claims need it: the workgroups that nobody has claimed.
  struct Rest {
    uint32_t part;
    uint64_t next, end;
  };
  bool locked_ = false;
  std::vector<Rest> rest_;
  uint64_t rest_count_ = 0;
  std::atomic<bool> opened_{false};             // written under the mutex
  std::atomic<bool> abandoned_{false};          // written under the mutex
  std::optional<gfx9::Executor::Fault> fault_;  // written once, before finished_

  // A line of its own: whoever ends the dispatch, or one that it waits for, stores here.
  //
  // Dispatches that it waits for, and one while the queue still adds them. It is opened at 0.
  alignas(64) std::atomic<uint32_t> blockers_{1};
  // The dispatch that waits for this one: null, a dispatch, or this one itself once it has ended.
  std::atomic<Dispatch*> successor_{nullptr};
  std::atomic<bool> finished_{false};
};

}  // namespace uptempo::vgpu
