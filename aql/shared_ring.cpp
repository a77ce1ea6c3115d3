#include <uptempo/aql/shared_ring.hpp>

namespace uptempo::aql {
namespace {

// How many rounds a thread commits for others before it leaves them to an owner that has not yet
// finished. High, because their packets would then wait until that owner's slots are filled. Low
// enough that no publication takes much longer than this number of doorbells.
constexpr uint32_t kRoundsForOthers = 16;

}  // namespace

SharedRing::SharedRing(hsa_queue_t* queue, RingAccess access) : access_(access) {
  require_ring(queue);
  view_ = view(queue, access);
  mask_ = queue->size - 1;
  const uint64_t next = view_.load_write_index();
  marks_ = std::make_unique<std::atomic<uint64_t>[]>(queue->size);
  for (uint32_t i = 0; i <= mask_; ++i) marks_[i].store(taken(next), std::memory_order_relaxed);
  claimed_.store(next, std::memory_order_relaxed);
  committed_.store(next, std::memory_order_relaxed);
}

bool SharedRing::claim(const void* claimant, uint64_t count, uint64_t& read_seen,
                       uint64_t& first) noexcept {
  uint64_t next = claimed_.load(std::memory_order_relaxed);
  for (;;) {
    // Relaxed: a thread that just misses the store overtakes once more.
    if (const void* insisting = insisting_.load(std::memory_order_relaxed);
        insisting != nullptr && insisting != claimant)
      return false;
    if (next + count - read_seen > ring_size()) {
      read_seen = view_.load_read_index();
      // A processor may take packets before they are committed. Their slots stay in use until then,
      // because their marks are stored later. Acquire: see QueueView::load_write_index().
      if (const uint64_t committed = committed_.load(std::memory_order_acquire);
          static_cast<int64_t>(committed - read_seen) < 0)
        read_seen = committed;
      // After the index: a hold is added before its packets are committed.
      if (SlotHolds* const held = holds()) read_seen = held->free_below(read_seen);
      if (next + count - read_seen > ring_size()) {
        // Refuse only if `next` is no older than the read index: meanwhile other threads may have
        // claimed slots and the processor may have taken packets.
        const uint64_t now = claimed_.load(std::memory_order_relaxed);
        if (now == next) return false;
        next = now;
        continue;
      }
    }
    // Relaxed: the claim transfers no data. The load of the read index acquired the free slots; the
    // header's store releases their contents.
    if (claimed_.compare_exchange_weak(next, next + count, std::memory_order_relaxed)) {
      first = next;
      return true;
    }
  }
}

// Returns the end of the finished publications that follow `index`.
uint64_t SharedRing::pass_over_ready(uint64_t index) noexcept {
  for (;;) {
    // Acquire of the headers, so that our store of the write index exposes them. Sequentially
    // consistent for the final check in commit().
    const uint64_t left = mark(index).load(std::memory_order_seq_cst);
    if (!is_ready(index, left)) return index;
    index += length(index, left);
  }
}

// Takes the turn of a marked publication, unless another thread has taken it.
bool SharedRing::take_turn(uint64_t& end) noexcept {
  // Both loads are sequentially consistent, as are the stores in commit(). If two threads store a
  // mark and its turn, at least one of these loads sees the other thread's store.
  const uint64_t at = committed_.load(std::memory_order_seq_cst);
  uint64_t left = mark(at).load(std::memory_order_seq_cst);
  if (!is_ready(at, left)) return false;
  // Fails if another thread has taken it. Acquire of the headers that the mark covers.
  if (!mark(at).compare_exchange_strong(left, taken(at), std::memory_order_acquire)) return false;
  end = at + length(at, left);
  return true;
}

uint32_t SharedRing::commit(uint64_t first, uint64_t end) noexcept {
  // Acquire: earlier turns store the write index and the doorbell before this turn does.
  if (committed_.load(std::memory_order_acquire) != first) {
    // Release of the headers to the thread that moves past the mark. Sequentially consistent: see
    // take_turn().
    mark(first).store(mark_of(end), std::memory_order_seq_cst);
    if (!take_turn(end)) return 0;
  }
  uint32_t doorbells = 0;
  for (;;) {
    end = pass_over_ready(end);
    view_.store_write_index(end);
    view_.ring_doorbell(end - 1);
    ++doorbells;
    // Release: the next turn's stores come after these. Sequentially consistent: see take_turn().
    committed_.store(end, std::memory_order_seq_cst);
    // The owner of a claimed slot without a mark will store the mark and then check its turn.
    // Relaxed: marks are stored after their claims, so this value is no older than the marks just
    // loaded.
    if (doorbells >= kRoundsForOthers &&
        pass_over_ready(end) != claimed_.load(std::memory_order_relaxed))
      return doorbells;
    if (!take_turn(end)) return doorbells;
  }
}

SharedRing::Waiter::~Waiter() {
  if (ring_ == nullptr) return;
  const void* mine = claimant_;
  // Relaxed: only the permission to claim is transferred.
  ring_->insisting_.compare_exchange_strong(mine, nullptr, std::memory_order_relaxed);
}

void SharedRing::Waiter::refused() noexcept {
  if (ring_ == nullptr || ring_->claimed() - begun_at_ < ring_->ring_size()) return;
  const void* expected = nullptr;
  ring_->insisting_.compare_exchange_strong(expected, claimant_, std::memory_order_relaxed);
}

}  // namespace uptempo::aql
