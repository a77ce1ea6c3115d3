#include "device/host/host_events.hpp"

#include <sched.h>
#include <sys/mman.h>

#include <bit>
#include <new>

namespace uptempo::vgpu {
namespace {

constexpr uint32_t kPageBytes = 4096;

}  // namespace

uint32_t find_byte(const PageMask& mask, uint32_t from, bool set) noexcept {
  while (from < kPageBytes) {
    const uint64_t word = (set ? mask[from / 64] : ~mask[from / 64]) >> from % 64;
    if (word != 0) return from + static_cast<uint32_t>(std::countr_zero(word));
    from = (from / 64 + 1) * 64;
  }
  return kPageBytes;
}

// `turn` is index + 1 when entry `index` is filled, and index + entries when it may be filled for
// the next round. Stored relative to the slot's index, so that zeroed pages are a ring of free
// entries.
struct HostEventRing::Entry {
  std::atomic<uint64_t> turn;
  HostEvent event;
  bool has_mask;
  PageMask mask;
};

HostEventRing::HostEventRing(size_t entries)
    : entries_(entries),
      ring_(static_cast<Entry*>(mmap(nullptr, entries * sizeof(Entry), PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {
  if (ring_ == MAP_FAILED) throw std::bad_alloc();
}

HostEventRing::~HostEventRing() { munmap(ring_, entries_ * sizeof(Entry)); }

bool HostEventRing::push(const HostEvent& event, const PageMask* mask) noexcept {
  uint64_t index = tail_.load(std::memory_order_relaxed);
  for (;;) {
    Entry& entry = ring_[index % entries_];
    // acquire: pairs with advance(); the consumer no longer reads the entry.
    const uint64_t turn = entry.turn.load(std::memory_order_acquire) + index % entries_;
    if (turn == index) {
      if (!tail_.compare_exchange_weak(index, index + 1, std::memory_order_relaxed)) continue;
      entry.event = event;
      entry.has_mask = mask != nullptr;
      if (mask != nullptr) entry.mask = *mask;
      // release: publishes the complete entry.
      entry.turn.store(index + 1 - index % entries_, std::memory_order_release);
      return true;
    }
    if (turn < index) return false;  // the entry of the previous round has not been taken
    index = tail_.load(std::memory_order_relaxed);
  }
}

const HostEventRing::Entry* HostEventRing::next() const noexcept {
  const Entry& entry = ring_[head_ % entries_];
  while (entry.turn.load(std::memory_order_acquire) + head_ % entries_ != head_ + 1) {
    // relaxed: if a push() happened before this call, some other synchronisation ordered it, and
    // that also makes its tail_ visible.
    if (tail_.load(std::memory_order_relaxed) == head_) return nullptr;
    sched_yield();
  }
  return &entry;
}

void HostEventRing::advance() noexcept {
  // release: push() may fill the entry again.
  ring_[head_ % entries_].turn.store(head_ + entries_ - head_ % entries_,
                                     std::memory_order_release);
  ++head_;
}

bool HostEventRing::take(HostEvent& event) noexcept {
  const Entry* const entry = next();
  if (entry == nullptr) return false;
  event = entry->event;
  if (entry->has_mask) {
    const uint32_t begin = find_byte(entry->mask, next_byte_, true);
    next_byte_ = find_byte(entry->mask, begin, false);
    event.address += begin;
    event.bytes = next_byte_ - begin;
    if (find_byte(entry->mask, next_byte_, true) < kPageBytes) return true;
  }
  next_byte_ = 0;
  advance();
  return true;
}

bool HostEventRing::take(HostEvent& event, PageMask& mask) noexcept {
  const Entry* const entry = next();
  if (entry == nullptr) return false;
  event = entry->event;
  if (entry->has_mask) {
    mask = entry->mask;
  } else {
    mask = {};
    const uint32_t begin = event.address % kPageBytes;
    for (uint32_t byte = begin; byte < begin + event.bytes; ++byte)
      mask[byte / 64] |= uint64_t{1} << byte % 64;
  }
  advance();
  return true;
}

}  // namespace uptempo::vgpu
