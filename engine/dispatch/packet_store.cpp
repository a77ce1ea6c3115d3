#include "engine/dispatch/detail/packet_store.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <utility>

namespace uptempo::detail {
namespace {

constexpr size_t kSmallestCapacity = 64;  // packets

void invalidate(aql::Packet64& slot) noexcept {
  std::atomic_ref(slot.word[0])
      .store(aql::first_word(aql::kInvalidHeader), std::memory_order_release);
}

}  // namespace

PacketStore::PacketStore()
    : capacity_(kSmallestCapacity),
      staged_(std::make_unique_for_overwrite<aql::Packet64[]>(kSmallestCapacity)) {
  clear();
}

void PacketStore::open_ring(aql::Packet64* ring, uint64_t mask, uint64_t first,
                            std::span<aql::Packet64> slots) noexcept {
  ring_ = ring;
  mask_ = mask;
  first_ = first;
  extend(slots);
}

void PacketStore::extend(std::span<aql::Packet64> slots) noexcept {
  before_ = size();
  begin_ = next_ = slots.data();
  end_ = begin_ + slots.size();
}

void PacketStore::stage(std::unique_ptr<aql::Packet64[]> memory, size_t capacity,
                        size_t packets) noexcept {
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
  const size_t capacity = std::bit_ceil(packets + 1);
  std::unique_ptr<aql::Packet64[]> memory;
  if (capacity > capacity_) {
    memory = std::make_unique_for_overwrite<aql::Packet64[]>(capacity);
    memory[0] = staged_[0];
  }
  aql::Packet64* const to = memory ? memory.get() : staged_.get();
  for (size_t i = 1; i < packets; ++i) to[i] = (*this)[i];
  invalidate_slots(packets);
  stage(std::move(memory), capacity, packets);
}

void PacketStore::grow() {
  const size_t packets = size();
  if (packets < capacity_) return stage({}, 0, packets);
  const size_t capacity = 2 * capacity_;
  auto memory = std::make_unique_for_overwrite<aql::Packet64[]>(capacity);
  std::copy_n(staged_.get(), packets, memory.get());
  stage(std::move(memory), capacity, packets);
}

void PacketStore::drop_last() noexcept {
  const size_t last = size() - 1;
  if (in_ring() && last != 0) invalidate((*this)[last]);
  --next_;
}

void PacketStore::invalidate_slots(size_t packets) noexcept {
  if (!in_ring()) return;
  for (size_t i = 1; i < packets; ++i) invalidate((*this)[i]);
}

void PacketStore::discard() noexcept {
  invalidate_slots(size());
  clear();
}

}  // namespace uptempo::detail
