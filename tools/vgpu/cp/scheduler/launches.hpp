// Launched dispatches, from their launch to the end of their last workgroup: when their workgroups
// may start, which a worker claims next, and who starts the dispatch that waits for them.
//
// Thread safety: launch_after(), has_room() and the setters from worker 0's thread, which alone
// destroys dispatches; all others from any worker. A mutex guards what is not counted in Claims:
// opening and abandoning dispatches, shares, scratch. Workers that claim and end workgroups of a
// dispatch without CU mask and scratch do not take it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "cp/scheduler/claims.hpp"
#include "cp/scheduler/dispatch.hpp"
#include "cp/scheduler/queue_share.hpp"
#include "device/device.hpp"

namespace uptempo::vgpu {

// Workgroups that a worker has claimed, until the last of them has had its first slice.
struct Chunk {
  Dispatch* dispatch = nullptr;  // null: none
  uint32_t part = 0;
  uint64_t next = 0, end = 0;  // numbers within the part
  uint64_t ended = 0;          // not yet counted in the dispatch
  std::optional<uint32_t> scratch;
  ComputeUnitSet units;
  bool masked = false;  // counted in the queue's masked_waves
};

class Launches {
 public:
  // The thread that ends the last workgroup of a dispatch calls `on_finished`.
  Launches(const Device& device, uint32_t workers, const WaveSlots& slots,
           std::function<void()> on_finished);

  bool has_room() const noexcept { return claims_.has_room(); }
  // As Scheduler's functions of these names.
  void launch_after(Dispatch& dispatch, std::span<Dispatch* const> earlier);
  void set_units(QueueShare& share, const ComputeUnitSet& units);
  void set_priority(QueueShare& share, PipePriority priority);
  void set_suspended(QueueShare& share, bool suspended);

  // Claims workgroups of priority `least` or higher for one of the worker's chunks, which are one
  // for each priority.
  bool claim(Claims::View& view, int least, std::array<Chunk, kPipePriorities>& chunks);
  // The highest priority of workgroups to claim, as far as the worker knows, or -1.
  int highest(const Claims::View& view) const noexcept { return claims_.highest(view); }
  // An estimate of the workgroups that nobody has claimed.
  static uint64_t left(const Dispatch& dispatch, uint32_t part) noexcept {
    return Claims::left(*dispatch.slot_, part);
  }

  // Workgroups that no worker has claimed. Exact while no worker claims.
  uint64_t unclaimed(const Dispatch& dispatch);

  // Counts workgroups that do not run any more. After the last one the dispatch may be destroyed.
  // Returns whether it was the last one.
  bool end(Dispatch& dispatch, uint32_t part, uint64_t count);
  // Workgroups of the dispatch give back scratch and places in its queue's share, if they have any.
  void give_back(Dispatch& dispatch, uint64_t masked, const std::optional<uint32_t>& scratch);

  // The first step of abandoning a dispatch: nobody claims its workgroups any more. Returns false
  // if it is finished or was abandoned before.
  bool close(Dispatch& dispatch, std::optional<gfx9::Executor::Fault> fault);
  // The last step: counts what nobody had claimed, and preempted workgroups of these parts.
  void drop_rest(Dispatch& dispatch, std::span<const uint32_t> preempted);

 private:
  void unblock(Dispatch& dispatch);
  void open(Dispatch& dispatch);
  void finish(Dispatch& dispatch);
  void keep(Dispatch& dispatch, uint32_t part, uint64_t first, uint64_t last);
  void show(Dispatch& dispatch);
  void shuffle(Dispatch& dispatch);
  std::optional<Claims::Claim> claim_locked(Claims::Slot& slot, uint32_t generation, Chunk& chunk,
                                            bool& exhausted);
  uint64_t room_for(const Dispatch& dispatch, uint64_t resident) const;
  template <typename Visit>
  void for_each_of(const QueueShare& share, Visit visit);

  const Device& device_;
  const uint32_t workers_;
  const WaveSlots& slots_;
  const std::function<void()> on_finished_;
  const ComputeUnitSet all_units_;
  const uint64_t waves_per_unit_;
  Claims claims_;

  // Guards the two members below, and those of Dispatch and QueueShare that name it.
  alignas(64) std::mutex mutex_;
  uint64_t turns_ = 0;  // workgroups of all dispatches so far
  std::minstd_rand random_;
};

}  // namespace uptempo::vgpu
