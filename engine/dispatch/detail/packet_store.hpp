// PacketStore: holds the packets of a batch until they are published, in the ring slots that they
// will be published from or in its own memory. Private: the templates of BatchSubmitter need it.
//
// In the ring, a packet is written where it will execute, header included. This requires a queue
// whose free slots no other producer writes (BatchQueue ensures it). Two facts keep the packet
// processor from reading such packets: they are beyond the write index, and after an INVALID
// header. The first packet of the batch stays in memory because it is the gate of all others
// (writer.hpp); publication copies it into its slot.
//
// Thread safety: thread-compatible.
// Cost: one addition and one comparison per added packet.
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
  bool empty() const noexcept { return size() == 0; }
  bool in_ring() const noexcept { return ring_ != nullptr; }
  aql::Packet64& operator[](size_t i) noexcept {
    return in_ring() && i != 0 ? ring_[(first_ + i) & mask_] : staged_[i];
  }
  const aql::Packet64& operator[](size_t i) const noexcept {
    return in_ring() && i != 0 ? ring_[(first_ + i) & mask_] : staged_[i];
  }

  // True if one more packet requires open_ring(), extend() or grow(). An empty store has room for
  // one packet, unless it is closed.
  bool full() const noexcept { return next_ == end_; }
  // Number of packets that may be added before full().
  size_t room() const noexcept { return static_cast<size_t>(end_ - next_); }
  // Returns `count` consecutive packets for the caller to fill. Requires room.
  aql::Packet64& add(size_t count = 1) noexcept {
    aql::Packet64& first = *next_;
    next_ += count;
    return first;
  }
  // Reverts the last add().
  void drop_last() noexcept;

  // Continues a store of one packet in a ring, in the slots after that packet's slot. `first`:
  // packet index of that slot.
  void open_ring(aql::Packet64* ring, uint64_t mask, uint64_t first,
                 std::span<aql::Packet64> slots) noexcept;
  // Continues a full store in the ring with these slots, which follow the last one.
  void extend(std::span<aql::Packet64> slots) noexcept;
  // Moves packets from the ring into its own memory and leaves INVALID headers in the ring. Strong
  // guarantee.
  void leave_ring();
  // Makes room in memory. Requires !in_ring(). Strong guarantee.
  void grow();
  // Provides no more room until it is empty again. Packets stay.
  void close() noexcept { end_ = next_; }
  // Requires that the packets are published or not in a ring. Keeps its memory.
  void clear() noexcept {
    begin_ = next_ = staged_.get();
    end_ = begin_ + 1;
    before_ = 0;
    ring_ = nullptr;
  }
  // Drops unpublished packets and leaves INVALID headers in the ring.
  void discard() noexcept;

 private:
  void stage(std::unique_ptr<aql::Packet64[]> memory, size_t capacity, size_t packets) noexcept;
  void invalidate_slots(size_t packets) noexcept;

  // Current run of slots, and the number of packets before it.
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
