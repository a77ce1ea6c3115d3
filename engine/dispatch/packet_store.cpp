#include "engine/dispatch/packet_store.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace uptempo::detail {

void PacketStore::open_ring(aql::Packet64* ring, uint64_t mask, uint64_t first) noexcept {
  ring_ = ring;
  mask_ = mask;
  first_ = first;
}

void PacketStore::extend(std::span<aql::Packet64> slots) noexcept {
  before_ = size();
  begin_ = next_ = slots.data();
  end_ = begin_ + slots.size();
}

void PacketStore::stage(std::unique_ptr<aql::Packet64[]> memory, size_t capacity, size_t packets) noexcept {
  if (memory) {
    staged_ = std::move(memory);
    capacity_ = capacity;
  }
  ring_ = nullptr;
  before_ = 0;
  begin_ = staged_.get();
  next_ = begin_ + packets;
  end_ = begin_ + capacity_;
}

void PacketStore::leave_ring() {
  const size_t packets = size();
  const size_t capacity = std::max<size_t>(64, std::bit_ceil(packets + 1));
  std::unique_ptr<aql::Packet64[]> memory;
  if (capacity > capacity_) memory = std::make_unique_for_overwrite<aql::Packet64[]>(capacity);
  aql::Packet64* const to = memory ? memory.get() : staged_.get();
  for (size_t i = 0; i < packets; ++i) to[i] = ring_[(first_ + i) & mask_];
  stage(std::move(memory), capacity, packets);
}

void PacketStore::grow() {
  const size_t packets = size();
  if (packets < capacity_) return stage({}, 0, packets);
  const size_t capacity = std::max<size_t>(64, 2 * capacity_);
  auto memory = std::make_unique_for_overwrite<aql::Packet64[]>(capacity);
  std::copy_n(staged_.get(), packets, memory.get());
  stage(std::move(memory), capacity, packets);
}

void PacketStore::clear() noexcept {
  begin_ = next_ = end_ = nullptr;
  before_ = 0;
  ring_ = nullptr;
}

}  // namespace uptempo::detail
