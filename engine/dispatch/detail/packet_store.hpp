// PacketStore: the packets of a batch until they are published. Private: the templates of
// BatchSubmitter need it.
//
// Thread safety: thread-compatible.
// Cost: one addition, one comparison and one prefetch per added packet. Memory doubles, and is
// kept.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include <uptempo/aql/packet.hpp>

namespace uptempo::detail {

class PacketStore {
 public:
  PacketStore() { clear(); }

  size_t size() const noexcept { return static_cast<size_t>(next_ - packets_.get()); }
  bool empty() const noexcept { return size() == 0; }
  aql::Packet64& operator[](size_t i) noexcept { return packets_[i]; }
  const aql::Packet64& operator[](size_t i) const noexcept { return packets_[i]; }

  // True if one more packet requires grow().
  bool full() const noexcept { return next_ == end_; }
  // Number of packets that may be added before full().
  size_t room() const noexcept { return static_cast<size_t>(end_ - next_); }
  // The packets will probably be copied to the ring from slot `first` on. `mask`: its slots less
  // one.
  void expect_slots(aql::Packet64* ring, size_t mask, uint64_t first) noexcept {
    ring_ = reinterpret_cast<uintptr_t>(ring);
    mask_ = mask * sizeof(aql::Packet64);
    to_slot_ = first * sizeof(aql::Packet64) - reinterpret_cast<uintptr_t>(packets_.get());
  }
  // Fetches the cache line of the packet's slot for writing, so that the copy into the ring need
  // not wait for the core that has read the slot last. A prefetch of any other slot is harmless.
  void fetch_slot(const aql::Packet64& packet) const noexcept {
#if defined(__x86_64__)
    const auto address = reinterpret_cast<uintptr_t>(&packet);
    const uintptr_t slot = ring_ + ((address + to_slot_) & mask_);
    asm volatile("prefetchw (%0)" : : "r"(slot));
#else
    (void)packet;
#endif
  }
  // Returns `count` consecutive packets for the caller to fill. Requires room.
  aql::Packet64& add(size_t count = 1) noexcept {
    aql::Packet64& first = *next_;
    next_ += count;
    return first;
  }
  // Reverts the last add().
  void drop_last() noexcept { --next_; }
  // Strong guarantee.
  void grow() {
    const size_t count = size();
    auto memory = std::make_unique_for_overwrite<aql::Packet64[]>(2 * capacity_);
    std::copy_n(packets_.get(), count, memory.get());
    packets_ = std::move(memory);
    capacity_ *= 2;
    next_ = packets_.get() + count;
    open();
  }
  // Provides no more room until open() or clear(). Packets stay.
  void close() noexcept { end_ = next_; }
  void open() noexcept { end_ = packets_.get() + capacity_; }
  // Keeps its memory.
  void clear() noexcept {
    next_ = packets_.get();
    open();
  }

 private:
  uintptr_t ring_ = 0, to_slot_ = 0;
  size_t mask_ = 0;
  size_t capacity_ = 64;  // packets
  std::unique_ptr<aql::Packet64[]> packets_ =
      std::make_unique_for_overwrite<aql::Packet64[]>(capacity_);
  aql::Packet64* next_;
  aql::Packet64* end_;
};

}  // namespace uptempo::detail
