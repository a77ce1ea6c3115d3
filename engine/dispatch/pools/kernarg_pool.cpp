#include <uptempo/dispatch/pools/kernarg_pool.hpp>

namespace uptempo {

KernargPool::KernargPool(std::span<std::byte> memory, uint32_t slab_bytes)
    : memory_(memory.data()), slab_bytes_(slab_bytes), slabs_(memory.size() / slab_bytes) {
  // Lowest address first: a program that needs few slabs touches few pages.
  for (uint32_t i = static_cast<uint32_t>(slabs_.size()); i-- > 0;) {
    slabs_[i].next = free_head_;
    free_head_ = i;
  }
  held_.start(slabs());
}

bool KernargPool::add_slab(Cursor& cursor, uint64_t size) noexcept {
  if (size > slab_bytes_ || free_head_ == kNone) return false;
  const uint32_t fresh = free_head_;
  free_head_ = slabs_[fresh].next;
  held_.set(held_.in_use() + 1);
  slabs_[fresh].holders = 1;  // held by the cursor
  slabs_[fresh].next = kNone;
  if (cursor.slabs.last == kNone) {
    cursor.slabs = {fresh, fresh};
  } else if (cursor.blocks == 0) {
    // No unpublished block is in the old slab. Publications that use it hold it themselves.
    retire(cursor.slabs);
    cursor.slabs = {fresh, fresh};
  } else {
    slabs_[cursor.slabs.last].next = fresh;
    cursor.slabs.last = fresh;
  }
  cursor.next = memory_ + size_t{fresh} * slab_bytes_;
  cursor.end = cursor.next + slab_bytes_;
  return true;
}

void KernargPool::retire(Slabs run) noexcept {
  for (uint32_t i = run.first; i != kNone;) {
    // Read before the slab is freed. The link after `last` may already lead to slabs of a later
    // publication.
    const uint32_t next = i == run.last ? kNone : slabs_[i].next;
    if (--slabs_[i].holders == 0) {
      slabs_[i].next = free_head_;
      free_head_ = i;
      held_.set(held_.in_use() - 1);
    }
    i = next;
  }
}

void KernargPool::drop(Cursor& cursor) noexcept {
  retire(cursor.slabs);
  cursor = {};
}

}  // namespace uptempo
