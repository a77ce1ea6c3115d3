// The dispatches whose workgroups wait to start, and how workers claim and end these workgroups
// without a lock.
//
// A launched dispatch has a slot. Its `ticket` holds the next workgroup that nobody has claimed, and
// `ended` those that do not run any more. A worker claims workgroups by exchanging the ticket, and
// the exchange also proves that the slot's other words were those of the same dispatch: each opening
// has a generation of its own in the ticket, and while a workgroup is claimed and not ended, the
// dispatch cannot finish. So a worker may read words of a slot that is being reused; its exchange
// then fails. The claim of the last workgroup closes the ticket, so no old ticket ever meets the
// count of a later dispatch. A bit per slot tells idle workers where to look, without a store by anybody until a
// dispatch is opened or its last workgroup is claimed.
//
// Some dispatches need more than a counter: those with a CU mask, with scratch, or of 2^32
// workgroups and more. Their ticket says `locked`, and the scheduler claims for them under its lock.
//
// Thread safety: reserve() and for_each() from one thread, the others from any thread; members that
// require the scheduler's lock say so.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "cp/scheduler/queue_share.hpp"

namespace uptempo::vgpu {

class Dispatch;

class Claims {
 public:
  // Dispatches that are launched and not finished: 64 of each queue of the hardware, and more.
  static constexpr size_t kSlots = 2048;
  // Claims at a time. A worker that starts the last ones of a chunk late keeps others waiting.
  static constexpr uint64_t kMaxChunk = 8;
  // A dispatch of more workgroups must be locked.
  static constexpr uint64_t kMaxCounted = 0xffff'fff0;

 private:
  // Values of a ticket's `next`.
  static constexpr uint64_t kLocked = 0xffff'ffff;
  static constexpr uint64_t kClosed = 0xffff'fffe;  // nothing is left to claim

 public:
  class Slot {
   public:
    // Counts `count` units that ended: workgroups of its dispatch, or units that were added. Returns
    // true for the last one. acq_rel: whoever counts the last one sees the results of all.
    bool end(uint64_t count) noexcept {
      return ended_.fetch_add(count, std::memory_order_acq_rel) + count ==
             units_.load(std::memory_order_relaxed);  // does not change once anything can end
    }
    // Adds a unit that must end, or takes it back. Call it before the slot is opened.
    void add_unit(int64_t count) noexcept {
      units_.fetch_add(static_cast<uint64_t>(count), std::memory_order_relaxed);
      added_.fetch_add(count, std::memory_order_relaxed);
    }
    // Whether claims need the scheduler's lock. Requires that lock.
    bool locked() const noexcept {
      return next_of(ticket_.load(std::memory_order_relaxed)) == kLocked;
    }
    // Workgroups that are claimed and have not ended, when `next` is the first that is not claimed.
    // Counts one too many for a moment after the slot was opened.
    uint64_t resident(uint64_t next) const noexcept {
      const auto ended = static_cast<int64_t>(ended_.load(std::memory_order_acquire)) -
                         added_.load(std::memory_order_relaxed);
      return static_cast<uint64_t>(static_cast<int64_t>(next) - ended);
    }

   private:
    friend class Claims;

    // Words that change only while no claim of the slot can succeed. All workers read them.
    std::atomic<Dispatch*> dispatch_{nullptr};
    std::atomic<uint64_t> total_{0};
    std::atomic<uint64_t> room_{0};        // most resident workgroups
    std::atomic<uint64_t> waves_{0};       // of a workgroup
    std::atomic<uint64_t> units_{0};       // workgroups and added units
    std::atomic<int64_t> added_{0};
    // One line: a worker counts the end of its last claim, then claims again.
    alignas(64) std::atomic<uint64_t> ticket_{kClosed};  // generation << 32 | next
    std::atomic<uint64_t> ended_{0};
  };

  struct Claim {
    Dispatch* dispatch;
    uint64_t first, end;
    int priority = 0;
  };

  // Workgroups that were preempted take room of the device, too.
  struct Room {
    const std::atomic<uint64_t>& preempted_waves;
    uint64_t max_waves;  // of the device
    uint64_t workers;
  };

  explicit Claims(Room room);

  // Takes a slot for a dispatch of `total` > 0 workgroups, which stays closed. Returns null if all
  // are in use. From one thread.
  Slot* reserve(Dispatch& dispatch, uint64_t total) noexcept;
  bool has_room() const noexcept;
  // Gives the slot back. Requires that its last unit has ended; nobody uses it any more.
  void release(Slot& slot) noexcept;

  // Lets workers claim its workgroups, at most `room` resident at a time. Requires the lock.
  void open(Slot& slot, uint64_t total, uint32_t waves, uint64_t room) noexcept;
  // The same for a dispatch whose claims need the lock. Requires the lock.
  void open_locked(Slot& slot) noexcept;
  // Claims need the lock from now on. Returns the first workgroup that is not claimed, or nullopt if
  // there is none. Requires the lock, and that the slot is open and not locked.
  std::optional<uint64_t> lock(Slot& slot) noexcept;
  // No worker claims anything from now on. Returns the first workgroup that was not claimed, or
  // nullopt if there was none. For a locked slot it returns 0, because the scheduler counts itself.
  // Requires the lock.
  std::optional<uint64_t> close(Slot& slot) noexcept;

  // Lets idle workers find the slot in the class of this priority only; nullopt: in none. Requires
  // the lock, and that the slot is open.
  void show(Slot& slot, std::optional<PipePriority> priority) noexcept;

  // Claims workgroups of priority `least` or higher, the highest first, and of equal ones those of
  // the next slot after `turn` in a circle. For slots whose claims need the lock, it returns what
  // `locked(slot, ticket)` returns, if that is a claim. `turn` belongs to the worker.
  template <typename Locked>
  std::optional<Claim> claim(int least, size_t& turn, Locked locked);
  // For `locked`: the slot's dispatch, or null if that is not the one any more that claim() found.
  // Requires the lock.
  static Dispatch* locked_dispatch(const Slot& slot, uint64_t ticket) noexcept {
    return slot.ticket_.load(std::memory_order_relaxed) == ticket
               ? slot.dispatch_.load(std::memory_order_relaxed)
               : nullptr;
  }

  // The highest priority of a slot with workgroups to claim, or -1.
  int highest() const noexcept {
    int best = -1;
    const size_t groups = groups_in_use_.load(std::memory_order_acquire);
    for (size_t group = 0; group < groups; ++group)
      for (int priority = kPipePriorities - 1; priority > best; --priority)
        if (word(group, priority).load(std::memory_order_acquire) != 0) best = priority;
    return best;
  }
  bool any() const noexcept { return highest() >= 0; }

  // Calls `visit(slot, dispatch)` for every slot in use. From the thread of reserve(), which alone
  // destroys dispatches.
  template <typename Visit>
  void for_each(Visit visit) {
    const size_t count = 64 * groups_in_use_.load(std::memory_order_relaxed);
    for (size_t index = 0; index < count; ++index)
      if (Dispatch* const dispatch = slots_[index].dispatch_.load(std::memory_order_relaxed))
        visit(slots_[index], *dispatch);
  }

  // Workgroups of the slot's dispatch that nobody has claimed. An estimate, for wake-ups.
  static uint64_t left(const Slot& slot) noexcept {
    const uint64_t next = next_of(slot.ticket_.load(std::memory_order_relaxed));
    const uint64_t total = slot.total_.load(std::memory_order_relaxed);
    return next < total ? total - next : 0;  // a closed or locked ticket is above any total
  }

 private:
  // Slots of 64, one line: all priorities together.
  struct alignas(64) Group {
    std::array<std::atomic<uint64_t>, kPipePriorities> shown{};
  };

  static constexpr uint64_t next_of(uint64_t ticket) noexcept { return ticket & 0xffff'ffff; }
  static constexpr uint64_t next_generation(uint64_t ticket) noexcept {
    return ((ticket >> 32) + 1) << 32;
  }
  static constexpr bool closed(uint64_t ticket) noexcept { return next_of(ticket) == kClosed; }
  const std::atomic<uint64_t>& word(size_t group, int priority) const noexcept {
    return groups_[group].shown[static_cast<size_t>(priority)];
  }
  size_t index_of(const Slot& slot) const noexcept {
    return static_cast<size_t>(&slot - slots_.get());
  }
  void hide(const Slot& slot) noexcept;
  std::optional<Claim> claim_counted(Slot& slot, uint64_t ticket) noexcept;

  const Room room_;
  const std::unique_ptr<Slot[]> slots_;
  std::array<Group, kSlots / 64> groups_{};
  alignas(64) std::atomic<size_t> groups_in_use_{0};  // only grows
  std::array<uint64_t, kSlots / 64> free_;            // of reserve()'s thread
  alignas(64) std::array<std::atomic<uint64_t>, kSlots / 64> released_{};
};

template <typename Locked>
std::optional<Claims::Claim> Claims::claim(int least, size_t& turn, Locked locked) {
  const size_t groups = groups_in_use_.load(std::memory_order_acquire);
  if (groups == 0) return std::nullopt;
  for (int priority = kPipePriorities - 1; priority >= least; --priority) {
    const size_t first = (turn + 1) % (groups * 64);
    // The first group comes again at the end, for the bits below `first`.
    for (size_t step = 0; step <= groups; ++step) {
      const size_t group = (first / 64 + step) % groups;
      uint64_t shown = word(group, priority).load(std::memory_order_acquire);
      const uint64_t below = (uint64_t{1} << first % 64) - 1;
      if (step == 0) shown &= ~below;
      if (step == groups) shown &= below;
      for (; shown != 0; shown &= shown - 1) {
        const size_t index = group * 64 + static_cast<size_t>(std::countr_zero(shown));
        Slot& slot = slots_[index];
        const uint64_t ticket = slot.ticket_.load(std::memory_order_acquire);
        std::optional<Claim> found = next_of(ticket) == kLocked ? locked(slot, ticket)
                                                                : claim_counted(slot, ticket);
        if (!found) continue;
        found->priority = priority;
        turn = index;
        return found;
      }
    }
  }
  return std::nullopt;
}

}  // namespace uptempo::vgpu
