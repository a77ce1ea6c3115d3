// SharedRing lets several threads of one process publish to one HSA queue. It keeps the rule of an
// exclusive producer: the visible write index covers published slots only.
//
//   SharedRing ring(queue);                             // one for the queue; outlives its writers
//   AqlQueueWriter mine = AqlQueueWriter::share(ring);  // one for each thread
//   mine.publish(120, Deadline::after(1s), emit);
//
// Why not hsa_queue_add_write_index: it claims slots and exposes them to the packet processor in
// one step. An INVALID header protects such a slot only if the processor reads the slot once. A
// processor can combine halves of the old and the new packet if it fetches the 64-byte line in two
// pieces. The same happens if it fetches the line again after the queue was remapped or another
// producer rang the doorbell. Seen on hardware: github.com/ROCm/rocm-systems/pull/10377.
//
// A publication has three steps:
//   claim   The read index and the index of commits prove room. Then a compare-and-swap claims the
//           slots on a cursor that the processor does not see. A full ring strands no claimed slot.
//           Slots claimed together are contiguous.
//   fill    The writer fills its own slots, headers last.
//   commit  Publications are committed in the order of their claims. The oldest uncommitted
//           publication has the turn. Its thread moves the write index past its own publication and
//           all finished ones that follow, rings one doorbell for them, and passes the turn to the
//           owner of the next slot. It then checks whether that owner has finished meanwhile. A
//           thread that finishes out of turn leaves a mark at its first slot, and the thread that
//           has the turn moves past it. No thread waits to commit; a delayed thread only delays
//           when later packets become visible.
//
// Doorbell: only the thread that has the turn stores the write index and the doorbell, and turns
// follow one another. Both values therefore only grow, as with one producer. (A queue of type MULTI
// does not require this, hsa.h, hsa_queue_t::doorbell_signal. A queue of type SINGLE does, and the
// processor may: ROCr drops backward doorbells where a device cannot take them,
// amd_aql_queue.cpp:467 at 5.2.3.) No doorbell is lost: a thread that stores the mark or the turn
// then reads the other, so at least one thread sees both. While a claimed slot has an owner that
// will still check its turn, a thread commits for others at most sixteen times.
//
// Contention: a thread whose short publication finished out of turn makes its next one up to 16 us
// later, also a try (collision_backoff.hpp).
//
// Back-pressure: as in writer.hpp. In addition, other threads may take each slot that becomes free
// before a waiting thread sees all the slots it needs. A waiting thread that a ring full of packets
// has overtaken insists: until it is served or its deadline passes, no other thread can claim
// slots. A try may then be refused although there is room.
//
// The processor may take a packet as soon as its header is valid, even beyond the write index (HSA
// Platform System Architecture 1.2, 2.9). A slot is free when its packet is taken and committed.
//
// Requires: no other code publishes to the queue while the SharedRing exists, except in turns
// (follow()).
// Thread safety: every function may be called from any thread. Each writer belongs to one thread.
// Lifetime: the queue outlives the SharedRing.
// Cost: construction allocates 8 bytes per slot. After that: no lock, allocation or system call.
// Compared with an exclusive producer, a publication adds one compare-and-swap, one sequentially
// consistent store and the transfer of two cache lines.
// Model: test/models/shared_ring.pml, checked exhaustively by Spin. ThreadSanitizer checks for
// races (test/aql).
#pragma once

#include <hsa/hsa.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include <uptempo/aql/amd_abi.hpp>
#include <uptempo/aql/slot_holds.hpp>

namespace uptempo::aql {

class SharedRing {
 public:
  // Its writers use `access`, too. Throws std::invalid_argument for a queue that require_ring()
  // rejects.
  explicit SharedRing(hsa_queue_t* queue, RingAccess access = RingAccess::direct);
  SharedRing(const SharedRing&) = delete;
  SharedRing& operator=(const SharedRing&) = delete;

  hsa_queue_t* queue() const noexcept { return view_.queue; }
  RingAccess access() const noexcept { return access_; }
  uint32_t ring_size() const noexcept { return mask_ + 1; }
  // Index of the next packet if it were claimed now.
  uint64_t claimed() const noexcept { return claimed_.load(std::memory_order_relaxed); }

  // The rest is for turns with other code. No writer has a claim or makes one meanwhile.

  uint64_t visible_write_index() const noexcept { return view_.load_write_index(); }
  // True if other code has published to the queue. Always false where tools may move the index
  // (RingAccess::hsa_calls).
  bool has_intruder() const noexcept {
    return view_.write_index != nullptr && view_.load_write_index() != claimed();
  }
  uint64_t free_slots() const noexcept {
    const uint64_t read = view_.load_read_index();
    SlotHolds* const held = holds();
    return ring_size() - (claimed() - (held == nullptr ? read : held->free_below(read)));
  }
  // Continues after the packets that other code has published. It publishes no more.
  void follow() noexcept {
    const uint64_t next = view_.load_write_index();
    // Relaxed: the caller orders this and the writers' threads. The marks of the slots passed are
    // of earlier laps, as those of publications that were committed in turn.
    claimed_.store(next, std::memory_order_relaxed);
    committed_.store(next, std::memory_order_relaxed);
  }

  // Slots that the read index does not free (slot_holds.hpp). Null until the first hold. The holds
  // outlive the ring's use. Any thread; once.
  void use_holds(SlotHolds& holds) noexcept { holds_.store(&holds, std::memory_order_release); }
  SlotHolds* holds() const noexcept { return holds_.load(std::memory_order_acquire); }

 private:
  friend class AqlQueueWriter;

  // If there is room, claims `count` slots from `first` on for `who`. `read_seen` is a read index
  // that the thread loaded earlier; claim() updates it if it does not prove room.
  bool claim(const void* claimant, uint64_t count, uint64_t& read_seen, uint64_t& first) noexcept;
  // Commits the slots from `first` up to `end`, which hold packets with headers. Returns the number
  // of doorbells rung.
  uint32_t commit(uint64_t first, uint64_t end) noexcept;

  // A thread that waits for slots. It insists after a ring full of packets has overtaken it.
  class Waiter {
   public:
    // `ring` may be null, for a writer without a SharedRing.
    Waiter(SharedRing* ring, const void* claimant) noexcept
        : ring_(ring), claimant_(claimant), begun_at_(ring == nullptr ? 0 : ring->claimed()) {}
    ~Waiter();
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;
    void refused() noexcept;

   private:
    SharedRing* ring_;
    const void* claimant_;
    uint64_t begun_at_;
  };

  // mark_of() is the mark of a finished publication, stored at its first slot: twice the index past
  // its end. taken() replaces a mark that is taken. It is odd because the bare slot index would
  // read as a publication of the ring's length, one lap earlier.
  static constexpr uint64_t mark_of(uint64_t end) noexcept { return end * 2; }
  static constexpr uint64_t taken(uint64_t at) noexcept { return at * 2 + 1; }
  // True if `mark` belongs to a publication that begins at `at` in this lap of the ring.
  bool is_ready(uint64_t at, uint64_t mark) const noexcept {
    return mark % 2 == 0 && mark - mark_of(at) - 1 < uint64_t{ring_size()} * 2;
  }
  // Length in packets of the publication that begins at `at`. A difference is used because the end
  // alone would lack the highest bit.
  static constexpr uint64_t length(uint64_t at, uint64_t mark) noexcept {
    return (mark - mark_of(at)) / 2;
  }
  std::atomic<uint64_t>& mark(uint64_t index) noexcept { return marks_[index & mask_]; }
  uint64_t pass_over_ready(uint64_t index) noexcept;
  bool take_turn(uint64_t& end) noexcept;

  QueueView view_;
  RingAccess access_;
  uint32_t mask_;
  std::unique_ptr<std::atomic<uint64_t>[]> marks_;
  std::atomic<SlotHolds*> holds_{nullptr};
  // Every publication writes these, so each has its own lines. 128: neighbouring lines are fetched
  // in pairs.
  alignas(128) std::atomic<uint64_t> claimed_;
  std::atomic<const void*> insisting_{nullptr};  // read together with claimed_
  alignas(128) std::atomic<uint64_t> committed_;
};

}  // namespace uptempo::aql
