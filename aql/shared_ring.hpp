// SharedRing: where the writers of several threads of one process meet, so that they can publish to one queue and still keep the rule of an
// exclusive producer: the visible write index moves over published slots only.
//
//   SharedRing ring(queue);                             // one for the queue; outlives its writers
//   AqlQueueWriter mine = AqlQueueWriter::share(ring);  // one for each thread
//   mine.publish(120, Deadline::after(1s), emit);
//
// Why. hsa_queue_add_write_index claims slots and shows them to the packet processor in one step. An INVALID header protects a slot shown too early only
// while it is read once: a processor that fetches the 64-byte line in two pieces, or again after the queue was remapped or another producer's
// doorbell, can put half an old packet and half a new one together (seen on hardware: github.com/ROCm/rocm-systems/pull/10377).
//
// The way of one publication
//   claim   Room is proven by the read index, then the slots are claimed by compare-and-swap on a cursor that the processor never sees. A full ring
//           strands no claimed slot. What is claimed together lies together in the ring.
//   fill    By the writer, in its own slots, headers last.
//   commit  In order of the claims. Whose publication is the oldest not yet committed has its turn: it moves the write index over its own
//           publication and over all that lie ready behind it, rings one doorbell for them all, hands over to the owner of the slot that it has
//           come to, and looks once more whether that one has come meanwhile. Who finishes out of turn leaves a mark at its first slot, and whoever
//           has the turn passes over it. Nobody waits for anybody: what a delayed thread delays is when the later packets become visible.
//
// The doorbell. It and the write index are stored by whoever has the turn, and turns follow one another, so both only ever grow, as if there was one
// producer. (A queue of type MULTI need not care, hsa.h, hsa_queue_t::doorbell_signal; one of type SINGLE does, and so may the processor: ROCr drops
// backward doorbells itself where a device cannot take them, amd_aql_queue.cpp:467 at 5.2.3.) No doorbell is lost: who has stored one
// of the two, a mark or the turn, looks at the other afterwards, so at least one thread finds both.
// A thread commits for others sixteen times at most while a slot is claimed whose owner will look after it.
//
// Back-pressure. As with every writer, but others may take each slot that comes free before a waiting thread sees all those that it needs. One that
// was overtaken by a ring full of packets insists: until it has been served or its deadline has passed nobody else claims slots, and a
// try may be refused although there is room.
//
// Model: test/models/shared_ring.pml, checked exhaustively by Spin. ThreadSanitizer looks for races (test/aql).
//
// Relies on the packet processor to take nothing beyond the write index.
//
// Thread safety: every function may be called from any thread; each writer belongs to one. Nobody else publishes to the queue while the SharedRing
// lives. Lifetime: the queue outlives it. Cost: one allocation of 8 bytes a slot when made; after that no lock, allocation or system call.
// Over an exclusive producer, a publication costs one compare-and-swap, one sequentially consistent store and the travels of two cache lines.
#pragma once

#include <hsa/hsa.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "aql/amd_abi.hpp"

namespace uptempo::aql {

class SharedRing {
 public:
  // Throws std::invalid_argument for a queue that nobody can write to (require_ring).
  explicit SharedRing(hsa_queue_t* queue);
  SharedRing(const SharedRing&) = delete;
  SharedRing& operator=(const SharedRing&) = delete;

  hsa_queue_t* queue() const noexcept { return view_.queue; }
  uint32_t ring_size() const noexcept { return mask_ + 1; }
  // The index that the next packet will get, if it is claimed now.
  uint64_t claimed() const noexcept { return claimed_.load(std::memory_order_relaxed); }

 private:
  friend class AqlQueueWriter;

  // Claims `count` slots from `first` on for `who`, if there is room. `read_seen` is a read index that the thread has seen earlier, brought up to date
  // where it does not prove room.
  bool claim(const void* who, uint64_t count, uint64_t& read_seen, uint64_t& first) noexcept;
  // The slots claimed from `first` up to `end` hold packets, headers included. Returns how many doorbells were rung.
  uint32_t commit(uint64_t first, uint64_t end) noexcept;

  // A thread that waits for slots; insists where it has been overtaken too often.
  class Waiter {
   public:
    // `ring` may be null, for a writer that has none.
    Waiter(SharedRing* ring, const void* who) noexcept
        : ring_(ring), who_(who), begun_at_(ring == nullptr ? 0 : ring->claimed()) {}
    ~Waiter();
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;
    void refused() noexcept;

   private:
    SharedRing* ring_;
    const void* who_;
    uint64_t begun_at_;
  };

  // What a finished publication leaves at its first slot: twice the index past its end. What a mark becomes when it is taken: odd, because the bare index
  // of the slot would read as a publication as long as the ring, one lap earlier.
  static constexpr uint64_t mark_of(uint64_t end) noexcept { return end * 2; }
  static constexpr uint64_t taken(uint64_t at) noexcept { return at * 2 + 1; }
  // Whether the mark is that of a publication which begins at `at`, in this lap of the ring.
  bool is_ready(uint64_t at, uint64_t mark) const noexcept {
    return mark % 2 == 0 && mark - mark_of(at) - 1 < uint64_t{ring_size()} * 2;
  }
  // Of the publication that begins at `at`, in packets; its end alone would lack the highest bit.
  static constexpr uint64_t length(uint64_t at, uint64_t mark) noexcept { return (mark - mark_of(at)) / 2; }
  std::atomic<uint64_t>& mark(uint64_t index) noexcept { return marks_[index & mask_]; }
  uint64_t pass_over_ready(uint64_t index) noexcept;
  bool take_turn(uint64_t& end) noexcept;

  QueueView view_;
  uint32_t mask_;
  std::unique_ptr<std::atomic<uint64_t>[]> marks_;
  // Written by every publication, so each has its lines; 128: neighbouring lines are fetched in pairs.
  alignas(128) std::atomic<uint64_t> claimed_;
  std::atomic<const void*> insisting_{nullptr};  // read wherever claimed_ is
  alignas(128) std::atomic<uint64_t> committed_;
};

}  // namespace uptempo::aql
