// The dispatches whose workgroups wait to start, and how workers claim and end these workgroups
// without a lock.
//
// A launched dispatch has a slot. Its workgroups are dealt to parts, one for each worker: blocks of
// up to eight, in turn. A worker claims from the part of its own number, so that it gets the same
// workgroups of each dispatch of a chain, whose data its cache still holds, and takes from others
// when its own has nothing left or when another one is more than a block behind. So workgroups
// start roughly in the order of their numbers, as on hardware.
//
// A part's `ticket` holds the next workgroup that nobody has claimed, and the generation of the
// slot. A slot gets a new generation each time it is opened; a part whose ticket has an older one
// has not been touched yet. A worker claims by exchanging the ticket. The exchange succeeds only in
// the generation whose words the worker has read from the slot, and while a workgroup is claimed
// and not ended, the dispatch cannot finish. A stale worker's exchange therefore fails. Ends are
// counted in the part; the last one of a part counts all of it in the slot.
//
// Some dispatches need more than counters: those with a CU mask, with scratch, or of 2^32
// workgroups and more. Their slots are `locked`, and the scheduler claims for them under its lock.
//
// test/models/claims.pml is a model of this protocol.
//
// Thread safety: reserve(), has_room() and for_each() from one thread, the others from any thread;
// members that require the scheduler's lock say so. A View belongs to one worker.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "cp/scheduler/queue_share.hpp"
#include "device/compute_units.hpp"
#include "device/occupancy.hpp"

namespace uptempo::vgpu {

class Dispatch;

// How the workgroups of a dispatch are dealt to parts. Immutable.
struct Deal {
  uint64_t total = 0;  // workgroups
  uint32_t parts = 1;  // none is empty
  uint32_t block = 1;  // consecutive workgroups of a part
  uint64_t room = 0;   // most resident workgroups, at least `parts`
  WorkgroupNeeds needs{};

  static constexpr uint32_t kMaxBlock = 8;

  // For that many workers. All resident workgroups together are at most `room`.
  static Deal make(uint64_t total, const WorkgroupNeeds& needs, uint64_t room,
                   uint32_t workers) noexcept {
    const uint64_t parts = std::min({uint64_t{workers}, total, room});
    return {total, static_cast<uint32_t>(parts),
            static_cast<uint32_t>(std::clamp<uint64_t>(total / parts, 1, kMaxBlock)), room, needs};
  }

  // Workgroups of a part.
  uint64_t size(uint32_t part) const noexcept {
    const uint64_t round = uint64_t{parts} * block;
    const uint64_t rest = total % round, before = uint64_t{part} * block;
    return total / round * block + std::min<uint64_t>(rest > before ? rest - before : 0, block);
  }
  // The number, among all, of the part's workgroup `index`.
  uint64_t workgroup(uint32_t part, uint64_t index) const noexcept {
    return (index / block * parts + part) * block + index % block;
  }
  // Most resident workgroups of a part, unless it borrows those of others (Claims::borrowed).
  uint64_t room_of(uint32_t part) const noexcept {
    return room * (part + 1) / parts - room * part / parts;
  }
};

class Claims {
 public:
  // Dispatches that are launched and not finished: 64 of each queue of the hardware, and more.
  static constexpr size_t kSlots = 2048;
  // Claims at a time. A worker that starts the last ones of a chunk late keeps others waiting.
  static constexpr uint64_t kMaxChunk = 8;
  // A dispatch of more workgroups must be locked.
  static constexpr uint64_t kMaxCounted = 0xffff'fff0;

  class Slot;

  struct Claim {
    Dispatch* dispatch;
    uint32_t part;
    uint64_t first, end;  // numbers within the part
    int priority = 0;
  };

  // A worker's memory between claims.
  struct View {
    explicit View(uint32_t the_worker) : worker(the_worker), exhausted(kSlots, 0) {}

    const uint32_t worker;
    size_t turn = ~size_t{0};  // slot of the last claim
    uint32_t compared = 0;     // the part whose progress was compared last
    // The generation of each slot in which nothing is left to claim.
    std::vector<uint32_t> exhausted;
  };

  struct Device {
    const WaveSlots& slots;  // of the workgroups that were preempted
    const ComputeUnitSet units;
    uint32_t workers;
  };

  explicit Claims(Device device);
  ~Claims();

  // Takes a slot for a dispatch, which stays closed. Returns null if all are in use.
  Slot* reserve(Dispatch& dispatch, uint64_t total);
  bool has_room() const noexcept;
  // Gives the slot back. Requires that its last unit has ended; nobody uses it any more.
  void release(Slot& slot) noexcept;

  // Lets workers claim its workgroups. Requires the lock.
  void open(Slot& slot, const Deal& deal, bool locked) noexcept;
  // Nobody claims anything from now on. Calls `rest(part, first, end)` for what nobody had claimed.
  // Requires the lock, and that the slot is open and not locked.
  template <typename Rest>
  void close(Slot& slot, Rest rest);
  // The same, but the scheduler claims the rest under the lock.
  template <typename Rest>
  void lock(Slot& slot, Rest rest);

  // Lets idle workers find the slot in the class of this priority only; nullopt: in none. Requires
  // the lock, and that the slot is open.
  void show(Slot& slot, std::optional<PipePriority> priority) noexcept;

  // Claims workgroups of priority `least` or higher, the highest first, and of equal ones those of
  // the next slot after the last claim's in a circle. For slots whose claims need the lock, it
  // calls `locked(slot, generation, exhausted)`, which returns a claim or nullopt and sets
  // `exhausted` if there will be none.
  template <typename Locked>
  std::optional<Claim> claim(View& view, int least, Locked locked);
  // For `locked`: the slot's dispatch if that is the one that claim() found and the scheduler holds
  // a rest of it, without which it may have finished and been destroyed; otherwise null. Requires
  // the lock, until which it exists.
  static Dispatch* current(const Slot& slot, uint32_t generation) noexcept;
  // Says whether the scheduler holds a rest of the dispatch. Requires the lock.
  static void set_rest(Slot& slot, bool has_rest) noexcept;

  // Counts workgroups of a part that do not run any more. Returns true for the last unit of the
  // dispatch. acq_rel: whoever counts it sees the results of all.
  static bool end(Slot& slot, uint32_t part, uint64_t count) noexcept;

  // The highest priority of a slot with workgroups to claim, as far as the worker knows, or -1.
  int highest(const View& view) const noexcept;

  // Workgroups that are claimed and have not ended, if the scheduler holds `rest` unclaimed ones.
  // Requires the lock, and that the slot is locked.
  static uint64_t resident(const Slot& slot, uint64_t rest) noexcept;

  // Workgroups of the dispatch that nobody has claimed, estimated from one part. For wake-ups.
  static uint64_t left(const Slot& slot, uint32_t part) noexcept;

  // Workgroups of the dispatch that nobody has claimed, if it is not locked. Exact while no worker
  // claims.
  static uint64_t unclaimed(const Slot& slot) noexcept;

  // Calls `visit(slot, dispatch)` for every slot in use. From the thread of reserve(), which alone
  // destroys dispatches.
  template <typename Visit>
  void for_each(Visit visit);

 private:
  // Values of a ticket's `next`.
  static constexpr uint64_t kClosed = 0xffff'ffff;  // nothing is left to claim

  struct alignas(64) Part {
    std::atomic<uint64_t> ticket{kClosed};  // generation << 32 | next
    std::atomic<uint64_t> ended{0};         // generation << 32 | count
  };

  // A slot's words, read together.
  struct Opened {
    uint32_t generation;
    bool locked;
    Dispatch* dispatch;
    Deal deal;
  };

  // 64 slots.
  struct Group;

  static constexpr uint64_t next_of(uint64_t word) noexcept { return word & 0xffff'ffff; }
  static constexpr uint32_t generation_of(uint64_t word) noexcept {
    return static_cast<uint32_t>(word >> 32);
  }
  static constexpr uint64_t word_of(uint32_t generation, uint64_t value) noexcept {
    return uint64_t{generation} << 32 | value;
  }
  // The value of a word that may be of an earlier generation, when it is 0.
  static constexpr uint64_t value_in(uint64_t word, uint32_t generation) noexcept {
    return generation_of(word) == generation ? next_of(word) : 0;
  }

  static std::optional<Opened> read(const Slot& slot) noexcept;
  // Closes the part and returns the first workgroup that nobody had claimed, or kClosed.
  static uint64_t close_part(Part& part, uint32_t generation) noexcept;
  static uint64_t ended_in(const Slot& slot, const Opened& opened, uint32_t part) noexcept;
  void hide(const Slot& slot) noexcept;
  enum class PartState : uint8_t { claimed, closed, no_room };
  std::optional<Claim> claim_of(Slot& slot, const Opened& opened, View& view) const noexcept;
  PartState claim_part(Slot& slot, const Opened& opened, uint32_t part,
                       Claim& claim) const noexcept;
  bool has_room_for(const Slot& slot, const Opened& opened, uint32_t part, uint64_t next,
                    uint64_t& room) const noexcept;
  static uint64_t borrowed(const Slot& slot, const Opened& opened, uint32_t part) noexcept;

  Slot& slot_at(size_t index) const noexcept;
  std::atomic<uint64_t>& shown(size_t group, size_t priority) const noexcept;

  const Device device_;
  std::array<std::unique_ptr<Group>, kSlots / 64> groups_;
  alignas(64) std::atomic<size_t> groups_in_use_{0};  // only grows
  std::array<uint64_t, kSlots / 64> free_;            // of reserve()'s thread
  alignas(64) std::array<std::atomic<uint64_t>, kSlots / 64> released_{};
};

class alignas(64) Claims::Slot {
 public:
  // Adds a unit that must end besides the workgroups, or takes it back. Call it before the slot is
  // opened.
  void add_unit(int64_t count) noexcept {
    unended_.fetch_add(static_cast<uint64_t>(count), std::memory_order_relaxed);
  }
  // Counts the end of `count` units. Returns true for the last one of the dispatch. acq_rel as
  // end().
  bool end_units(uint64_t count) noexcept {
    return unended_.fetch_sub(count, std::memory_order_acq_rel) == count;
  }

 private:
  friend class Claims;

  size_t index_ = 0;
  Part* parts_ = nullptr;
  // Words that all workers read. They change only while the generation is odd.
  std::atomic<uint32_t> generation_{0};
  std::atomic<bool> locked_{false};
  std::atomic<Dispatch*> dispatch_{nullptr};
  std::atomic<uint64_t> total_{0}, room_{0};
  std::atomic<uint32_t> parts_count_{1}, block_{1};
  std::atomic<WorkgroupNeeds> needs_{WorkgroupNeeds{}};
  static_assert(std::atomic<WorkgroupNeeds>::is_always_lock_free);
  bool has_rest_ = false;  // requires the lock
  // In a line of their own: whoever ends a part stores here.
  alignas(64) std::atomic<uint64_t> unended_{0};
  std::atomic<bool> finished_{false};
};

struct Claims::Group {
  Group(size_t first, uint32_t workers) : parts(std::make_unique<Part[]>(slots.size() * workers)) {
    for (size_t index = 0; index < slots.size(); ++index) {
      slots[index].index_ = first + index;
      slots[index].parts_ = &parts[index * workers];
    }
  }

  // A bit for each slot with workgroups to claim, or whose last ones run; one word a priority.
  alignas(64) std::array<std::atomic<uint64_t>, kPipePriorities> shown{};
  std::array<Slot, 64> slots;
  const std::unique_ptr<Part[]> parts;  // as many a slot as there are workers
};

inline Claims::Slot& Claims::slot_at(size_t index) const noexcept {
  return groups_[index / 64]->slots[index % 64];
}
inline std::atomic<uint64_t>& Claims::shown(size_t group, size_t priority) const noexcept {
  return groups_[group]->shown[priority];
}

template <typename Visit>
void Claims::for_each(Visit visit) {
  const size_t count = 64 * groups_in_use_.load(std::memory_order_relaxed);
  for (size_t index = 0; index < count; ++index) {
    Slot& slot = slot_at(index);
    if (Dispatch* const dispatch = slot.dispatch_.load(std::memory_order_relaxed))
      visit(slot, *dispatch);
  }
}

template <typename Rest>
void Claims::lock(Slot& slot, Rest rest) {
  // Before the parts are closed: a worker that finds them closed then sees that more is left.
  slot.locked_.store(true, std::memory_order_release);
  close(slot, rest);
}

template <typename Rest>
void Claims::close(Slot& slot, Rest rest) {
  const std::optional<Opened> opened = read(slot);
  for (uint32_t part = 0; part < opened->deal.parts; ++part)
    if (const uint64_t next = close_part(slot.parts_[part], opened->generation); next != kClosed)
      rest(part, next, opened->deal.size(part));
}

template <typename Locked>
std::optional<Claims::Claim> Claims::claim(View& view, int least, Locked locked) {
  const size_t groups = groups_in_use_.load(std::memory_order_acquire);
  if (groups == 0) return std::nullopt;
  const size_t first = (view.turn + 1) % (groups * 64);
  const uint64_t below = (uint64_t{1} << first % 64) - 1;
  for (int priority = kPipePriorities - 1; priority >= least; --priority) {
    // The first group comes again at the end, for the slots before the first.
    for (size_t step = 0; step <= groups; ++step) {
      const size_t group = (first / 64 + step) % groups;
      uint64_t bits = shown(group, static_cast<size_t>(priority)).load(std::memory_order_acquire);
      if (step == 0) bits &= ~below;
      if (step == groups) bits &= below;
      for (; bits != 0; bits &= bits - 1) {
        const size_t index = group * 64 + static_cast<size_t>(std::countr_zero(bits));
        Slot& slot = slot_at(index);
        const std::optional<Opened> opened = read(slot);
        if (!opened || view.exhausted[index] == opened->generation) continue;
        std::optional<Claim> found;
        if (opened->locked) {
          bool exhausted = false;
          found = locked(slot, opened->generation, exhausted);
          if (exhausted) view.exhausted[index] = opened->generation;
        } else {
          found = claim_of(slot, *opened, view);
        }
        if (!found) continue;
        found->priority = priority;
        view.turn = index;
        return found;
      }
    }
  }
  return std::nullopt;
}

}  // namespace uptempo::vgpu
