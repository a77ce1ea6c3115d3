#include "cp/scheduler/claims.hpp"

#include <algorithm>

namespace uptempo::vgpu {

Claims::Claims(Room room) : room_(room), slots_(std::make_unique<Slot[]>(kSlots)) {
  free_.fill(~uint64_t{0});
}

Claims::Slot* Claims::reserve(Dispatch& dispatch, uint64_t total) noexcept {
  for (size_t group = 0; group < free_.size(); ++group) {
    // acquire: pairs with release(), so that nobody uses the slots any more
    if (free_[group] == 0 && released_[group].load(std::memory_order_relaxed) != 0)
      free_[group] = released_[group].exchange(0, std::memory_order_acquire);
    if (free_[group] == 0) continue;
    Slot& slot = slots_[group * 64 + static_cast<size_t>(std::countr_zero(free_[group]))];
    free_[group] &= free_[group] - 1;
    slot.dispatch_.store(&dispatch, std::memory_order_relaxed);
    slot.units_.store(total, std::memory_order_relaxed);
    slot.added_.store(0, std::memory_order_relaxed);
    slot.ended_.store(0, std::memory_order_relaxed);
    if (groups_in_use_.load(std::memory_order_relaxed) <= group)
      groups_in_use_.store(group + 1, std::memory_order_release);
    return &slot;
  }
  return nullptr;
}

bool Claims::has_room() const noexcept {
  for (size_t group = 0; group < free_.size(); ++group)
    if (free_[group] != 0 || released_[group].load(std::memory_order_relaxed) != 0) return true;
  return false;
}

void Claims::release(Slot& slot) noexcept {
  slot.dispatch_.store(nullptr, std::memory_order_relaxed);
  released_[index_of(slot) / 64].fetch_or(uint64_t{1} << index_of(slot) % 64,
                                          std::memory_order_release);
}

void Claims::open(Slot& slot, uint64_t total, uint32_t waves, uint64_t room) noexcept {
  slot.total_.store(total, std::memory_order_relaxed);
  slot.waves_.store(waves, std::memory_order_relaxed);
  slot.room_.store(room, std::memory_order_relaxed);
  slot.ticket_.store(next_generation(slot.ticket_.load(std::memory_order_relaxed)),
                     std::memory_order_release);
}

void Claims::open_locked(Slot& slot) noexcept {
  slot.ticket_.store(next_generation(slot.ticket_.load(std::memory_order_relaxed)) | kLocked,
                     std::memory_order_release);
}

std::optional<uint64_t> Claims::lock(Slot& slot) noexcept {
  uint64_t ticket = slot.ticket_.load(std::memory_order_relaxed);
  do {
    if (closed(ticket)) return std::nullopt;
  } while (!slot.ticket_.compare_exchange_weak(ticket, next_generation(ticket) | kLocked,
                                               std::memory_order_acq_rel));
  return next_of(ticket);
}

std::optional<uint64_t> Claims::close(Slot& slot) noexcept {
  uint64_t ticket = slot.ticket_.load(std::memory_order_relaxed);
  do {
    if (closed(ticket)) return std::nullopt;
  } while (!slot.ticket_.compare_exchange_weak(ticket, (ticket & ~kLocked) | kClosed,
                                               std::memory_order_seq_cst));
  hide(slot);
  return next_of(ticket) == kLocked ? 0 : next_of(ticket);
}

void Claims::show(Slot& slot, std::optional<PipePriority> priority) noexcept {
  Group& group = groups_[index_of(slot) / 64];
  const uint64_t bit = uint64_t{1} << index_of(slot) % 64;
  for (size_t each = 0; each < kPipePriorities; ++each)
    if (!priority || each != static_cast<size_t>(*priority))
      group.shown[each].fetch_and(~bit, std::memory_order_relaxed);
  if (!priority) return;
  // The worker that claims the last workgroup hides the slot. It takes no lock, so it may have been
  // too early. seq_cst: either it sees the bit, or this thread sees its ticket. The slot is not
  // opened again meanwhile, since that needs the lock.
  group.shown[static_cast<size_t>(*priority)].fetch_or(bit, std::memory_order_seq_cst);
  if (closed(slot.ticket_.load(std::memory_order_seq_cst))) hide(slot);
}

void Claims::hide(const Slot& slot) noexcept {
  const uint64_t bit = uint64_t{1} << index_of(slot) % 64;
  for (std::atomic<uint64_t>& shown : groups_[index_of(slot) / 64].shown)
    if ((shown.load(std::memory_order_seq_cst) & bit) != 0)
      shown.fetch_and(~bit, std::memory_order_relaxed);
}

std::optional<Claims::Claim> Claims::claim_counted(Slot& slot, uint64_t ticket) noexcept {
  for (;;) {
    if (closed(ticket) || next_of(ticket) == kLocked) return std::nullopt;
    const uint64_t next = next_of(ticket);
    const uint64_t total = slot.total_.load(std::memory_order_relaxed);
    uint64_t room = slot.room_.load(std::memory_order_relaxed);
    if (room_.preempted_waves.load(std::memory_order_relaxed) +
            slot.waves_.load(std::memory_order_relaxed) >
        room_.max_waves)
      room = 0;
    if (room < total) {
      const uint64_t resident = slot.resident(next);
      // Each dispatch has at least one resident workgroup.
      if (room <= resident && resident != 0) return std::nullopt;
      room = std::max<uint64_t>(room, resident + 1) - resident;
    }
    // An old ticket may meet the total of a later dispatch here; its exchange fails.
    const uint64_t left = total > next ? total - next : 1;
    const uint64_t count =
        std::clamp<uint64_t>(std::min(left / (room_.workers * 4), room), 1, kMaxChunk);
    Dispatch* const dispatch = slot.dispatch_.load(std::memory_order_relaxed);
    // seq_cst: see show()
    const bool last = count == left;
    const uint64_t after = last ? (ticket & ~kLocked) | kClosed : ticket + count;
    if (!slot.ticket_.compare_exchange_weak(ticket, after, std::memory_order_seq_cst,
                                            std::memory_order_acquire))
      continue;
    // Its workgroups have not ended, so nobody reuses the slot before it is hidden.
    if (last) hide(slot);
    return Claim{dispatch, next, next + count};
  }
}

}  // namespace uptempo::vgpu
