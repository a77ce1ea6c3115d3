#include "aql/shared_ring.hpp"

namespace uptempo::aql {
namespace {

// Rounds for which a thread commits what others have left before it relies on one that is still to come. Many, because until then their packets would wait
// for that one to be filled; few enough that no publication takes much longer than these doorbells.
constexpr uint32_t rounds_for_others = 16;

}  // namespace

SharedRing::SharedRing(hsa_queue_t* queue) {
  require_ring(queue);
  view_ = view(queue);
  mask_ = queue->size - 1;
  const uint64_t next = view_.load_write_index();
  marks_ = std::make_unique<std::atomic<uint64_t>[]>(queue->size);
  for (uint32_t i = 0; i <= mask_; ++i) marks_[i].store(taken(next), std::memory_order_relaxed);
  claimed_.store(next, std::memory_order_relaxed);
  committed_.store(next, std::memory_order_relaxed);
}

bool SharedRing::claim(const void* who, uint64_t count, uint64_t& read_seen, uint64_t& first) noexcept {
  uint64_t next = claimed_.load(std::memory_order_relaxed);
  for (;;) {
    // Relaxed: who misses it by a moment overtakes once more.
    if (const void* insisting = insisting_.load(std::memory_order_relaxed);
        insisting != nullptr && insisting != who)
      return false;
    if (next + count - read_seen > ring_size()) {
      read_seen = view_.load_read_index();
      (void)view_.load_write_index();  // for its order: see there
      if (next + count - read_seen > ring_size()) {
        // Refused only if `next` is no older than the read index: others may have claimed, and the processor taken, meanwhile.
        const uint64_t now = claimed_.load(std::memory_order_relaxed);
        if (now == next) return false;
        next = now;
        continue;
      }
    }
    // Relaxed: the claim hands over nothing. That the slots are free was acquired with the read index, and what is in them is released by the header.
    if (claimed_.compare_exchange_weak(next, next + count, std::memory_order_relaxed)) {
      first = next;
      return true;
    }
  }
}

// The end of the publications that lie ready from `index` on.
uint64_t SharedRing::pass_over_ready(uint64_t index) noexcept {
  for (;;) {
    // Acquire, of the headers: our store of the write index shows them. Sequentially consistent for the last look in commit().
    const uint64_t left = mark(index).load(std::memory_order_seq_cst);
    if (!is_ready(index, left)) return index;
    index += length(index, left);
  }
}

// Takes the turn that fell to a publication which is marked, if nobody else has.
bool SharedRing::take_turn(uint64_t& end) noexcept {
  // Sequentially consistent, both, as the stores in commit(): of a mark and its turn, stored by two threads, one of these two sees the other.
  const uint64_t at = committed_.load(std::memory_order_seq_cst);
  uint64_t left = mark(at).load(std::memory_order_seq_cst);
  if (!is_ready(at, left)) return false;
  // Fails if another thread has taken it. Acquire: the headers under the mark.
  if (!mark(at).compare_exchange_strong(left, taken(at), std::memory_order_acquire)) return false;
  end = at + length(at, left);
  return true;
}

uint32_t SharedRing::commit(uint64_t first, uint64_t end) noexcept {
  // Acquire: the write index and the doorbell of earlier turns are stored before ours.
  if (committed_.load(std::memory_order_acquire) != first) {
    // Release, of the headers, to whoever passes over the mark; sequentially consistent: see take_turn().
    mark(first).store(mark_of(end), std::memory_order_seq_cst);
    if (!take_turn(end)) return 0;
  }
  uint32_t doorbells = 0;
  for (;;) {
    end = pass_over_ready(end);
    view_.store_write_index(end);
    view_.ring_doorbell(end - 1);
    ++doorbells;
    // Release: the next turn's stores come after these; sequentially consistent: see take_turn().
    committed_.store(end, std::memory_order_seq_cst);
    // The owner of a slot that is claimed and has no mark yet will mark it, and look for its turn after that. Relaxed: marks were stored after
    // their claims, so this is not older than those just seen.
    if (doorbells >= rounds_for_others && pass_over_ready(end) != claimed_.load(std::memory_order_relaxed))
      return doorbells;
    if (!take_turn(end)) return doorbells;
  }
}

SharedRing::Waiter::~Waiter() {
  if (ring_ == nullptr) return;
  const void* mine = who_;
  // Relaxed: nothing but the permission to claim is handed over.
  ring_->insisting_.compare_exchange_strong(mine, nullptr, std::memory_order_relaxed);
}

void SharedRing::Waiter::refused() noexcept {
  if (ring_ == nullptr || ring_->claimed() - begun_at_ < ring_->ring_size()) return;
  const void* nobody = nullptr;
  ring_->insisting_.compare_exchange_strong(nobody, who_, std::memory_order_relaxed);
}

}  // namespace uptempo::aql
