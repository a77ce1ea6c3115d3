// Where a batch keeps its packets until they are published: in the slots of the ring that they will be published from, or in memory of its own.
// Private to engine/dispatch.
//
// In the ring a packet is written where it will be executed, header included. That takes a queue whose free slots nobody else writes (BatchQueue sees to it), and
// two things keep a packet processor from such packets: they lie beyond the write index, and behind an INVALID header. For the first packet stays in memory:
// it is the gate of all others (writer.hpp), and its slot gets it when the batch is published.
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
  PacketStore();

  size_t size() const noexcept { return before_ + static_cast<size_t>(next_ - begin_); }
  bool empty() const noexcept { return next_ == staged_.get(); }
  bool in_ring() const noexcept { return ring_ != nullptr; }
  aql::Packet64& operator[](size_t i) noexcept {
    return in_ring() && i != 0 ? ring_[(first_ + i) & mask_] : staged_[i];
  }
  const aql::Packet64& operator[](size_t i) const noexcept {
    return in_ring() && i != 0 ? ring_[(first_ + i) & mask_] : staged_[i];
  }

  // True if a packet more takes open_ring(), extend() or grow(). An empty store has room for the first one, unless it is closed.
  bool full() const noexcept { return next_ == end_; }
  // The packets that may be added without that.
  size_t room() const noexcept { return static_cast<size_t>(end_ - next_); }
  // Packets more, in a row, for the caller to fill. There is room.
  aql::Packet64& add(size_t count = 1) noexcept {
    aql::Packet64& first = *next_;
    next_ += count;
    return first;
  }
  // Takes the last add() back.
  void drop_last() noexcept;

  // The store of one packet goes on in a ring, in the slots behind that packet's, whose packet index is `first`.
  void open_ring(aql::Packet64* ring, uint64_t mask, uint64_t first, std::span<aql::Packet64> slots) noexcept;
  // In the ring and full: goes on with these slots, which follow the last one.
  void extend(std::span<aql::Packet64> slots) noexcept;
  // Moves what lies in the ring into memory of its own, and leaves INVALID headers behind. Strong guarantee.
  void leave_ring();
  // Not in the ring: makes room. Strong guarantee.
  void grow();
  // No room more until it is empty again. Packets stay.
  void close() noexcept { end_ = next_; }
  // The packets have been published, or do not lie in a ring. Keeps its memory.
  void clear() noexcept;
  // Nobody will publish them: leaves INVALID headers behind.
  void discard() noexcept;

 private:
  void stage(std::unique_ptr<aql::Packet64[]> memory, size_t capacity, size_t packets) noexcept;
  void invalidate_slots(size_t packets) noexcept;

  // The run of slots that is being filled, and the number of packets before it.
  aql::Packet64* begin_;
  aql::Packet64* next_;
  aql::Packet64* end_;
  size_t before_ = 0;

  aql::Packet64* ring_ = nullptr;
  uint64_t mask_ = 0;
  uint64_t first_ = 0;
  size_t capacity_;
  std::unique_ptr<aql::Packet64[]> staged_;  // never empty
};

}  // namespace uptempo::detail
