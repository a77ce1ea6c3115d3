// Where a batch keeps its packets until they are published: in the slots of the ring that they will be published from, or in memory of its own.
// Private to engine/dispatch.
//
// In the ring a packet is written once and never copied. That takes a queue whose free slots nobody else writes (QueueState sees to it); until its
// header is stored, a packet there is an INVALID slot beyond the write index, which no packet processor looks at. Wherever packets lie, their headers read
// INVALID and everything else is as it will be published, but for completion signals.
//
// Thread safety: as a vector. Cost: adding a packet is an addition and a comparison.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "aql/packet.hpp"

namespace uptempo::detail {

class PacketStore {
 public:
  size_t size() const noexcept { return before_ + static_cast<size_t>(next_ - begin_); }
  bool empty() const noexcept { return size() == 0; }
  bool in_ring() const noexcept { return ring_ != nullptr; }
  aql::Packet64& operator[](size_t i) noexcept {
    return in_ring() ? ring_[(first_ + i) & mask_] : staged_[i];
  }
  const aql::Packet64& operator[](size_t i) const noexcept {
    return in_ring() ? ring_[(first_ + i) & mask_] : staged_[i];
  }

  // True if a packet more takes open_ring(), extend() or grow().
  bool full() const noexcept { return next_ == end_; }
  // A packet more, for the caller to fill. Not full.
  aql::Packet64& add() noexcept { return *next_++; }
  // Takes the last add() back.
  void drop_last() noexcept { --next_; }

  // The empty store will lie in a ring from packet index `first` on; full until extend().
  void open_ring(aql::Packet64* ring, uint64_t mask, uint64_t first) noexcept;
  // In the ring and full: goes on with these slots, which follow the last one.
  void extend(std::span<aql::Packet64> slots) noexcept;
  // Moves what lies in the ring into memory of its own. Strong guarantee.
  void leave_ring();
  // Not in the ring: makes room. Strong guarantee.
  void grow();
  // No room more until clear(). Packets stay.
  void close() noexcept { end_ = next_; }
  // Keeps its memory.
  void clear() noexcept;

 private:
  void stage(std::unique_ptr<aql::Packet64[]> memory, size_t capacity, size_t packets) noexcept;

  // The run of slots that is being filled, and the number of packets before it.
  aql::Packet64* begin_ = nullptr;
  aql::Packet64* next_ = nullptr;
  aql::Packet64* end_ = nullptr;
  size_t before_ = 0;

  aql::Packet64* ring_ = nullptr;
  uint64_t mask_ = 0;
  uint64_t first_ = 0;
  std::unique_ptr<aql::Packet64[]> staged_;
  size_t capacity_ = 0;
};

}  // namespace uptempo::detail
