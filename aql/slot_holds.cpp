#include <uptempo/aql/slot_holds.hpp>

#include <algorithm>

namespace uptempo::aql {

SlotHolds::SlotHolds(uint32_t ring_size, uint64_t read_index, IsComplete is_complete)
    : mask_(ring_size - 1),
      is_complete_(is_complete),
      holds_(std::make_unique<Hold[]>(ring_size)),
      free_below_(read_index) {
  // An index that no packet in this place has.
  for (uint64_t i = 0; i <= mask_; ++i) holds_[i].first.store(~i, std::memory_order_relaxed);
}

void SlotHolds::add(uint64_t first, uint64_t last, const HoldEnd& end) noexcept {
  Hold& place = hold(first);
  // Relaxed: the packets' headers are stored later, with release order, and free_below() looks at
  // this place only after it has found these packets below the read index.
  place.last.store(last, std::memory_order_relaxed);
  place.owner.store(end.owner, std::memory_order_relaxed);
  place.value.store(end.value, std::memory_order_relaxed);
  place.first.store(first, std::memory_order_release);
}

uint64_t SlotHolds::free_below(uint64_t read_index) noexcept {
  // Acquire: what this thread then stores into free slots comes after what ended their holds.
  uint64_t from = free_below_.load(std::memory_order_acquire);
  while (from < read_index) {
    uint64_t next = from;
    bool is_held = false;
    while (next < read_index) {
      const Hold& place = hold(next);
      if (place.first.load(std::memory_order_acquire) != next) {
        ++next;
        continue;
      }
      const uint64_t last = place.last.load(std::memory_order_relaxed);
      const HoldEnd end{.owner = place.owner.load(std::memory_order_relaxed),
                        .value = place.value.load(std::memory_order_relaxed)};
      is_held = !is_complete_(end);
      if (is_held) break;
      // Not past the read index: a signal may show the completion before the read index does.
      next = std::min(last + 1, read_index);
    }
    // If the exchange fails, another thread has moved the index past slots that this one has seen,
    // and producers may have filled them again: look again from there.
    if (next == from || free_below_.compare_exchange_strong(from, next, std::memory_order_acq_rel,
                                                            std::memory_order_acquire)) {
      from = next;
      if (is_held) break;
    }
  }
  return from;
}

}  // namespace uptempo::aql
