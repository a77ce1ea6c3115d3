// AqlQueueWriter: writes packets straight into the ring of an HSA queue. Reserve, fill, publish, ring the doorbell.
//
//   AqlQueueWriter writer = AqlQueueWriter::own(queue);
//   PublishResult r = writer.publish(120, Deadline::after(1s), [&](uint64_t i, void* slot) noexcept { return fill(slot, packets[i]); });
//
// Publication order (HSA Platform System Architecture 1.2, 2.8 and 2.9). Of each packet, bytes 4..63 are written first and the first 32
// bits last, by a 32-bit release store; until then they read INVALID. Of each chunk, headers go in order, then the visible write index,
// then one doorbell store with the index of the chunk's last packet.
//
// Behind a gate. Packets by the run (RunEmitter), and those that were written in place beforehand, are stored whole, in any order, while the slot of their chunk's
// first packet reads INVALID; that packet's header is stored last, with release order. No processor gets there before: a queue is processed in order, and nothing
// is looked at beyond the write index. (The virtual GPU and ROCr's intercepting queues, intercept_queue.cpp:228, fetch up to the write index and no further, as gfx9's
// command processor is told to by the doorbell. Foreign producers show slots before they are filled, so their packets go one by one.) Processors leave INVALID headers in
// the slots that they have taken (HSA 1.2, 2.9); a gate relies on it.
//
// Producers
//   exclusive  One producer, this writer. Its cursor is private and the visible write index moves over published slots only: a
//              processor that re-reads a 64-byte line between two of our stores (a remapped queue, another's doorbell) finds no
//              half-written packet below the write index. The owner may change threads, with ordering between them of its own.
//   foreign    Others publish to the same queue too, so slots are claimed by compare-and-swap on the visible write index (what
//              hsa_queue_cas_write_index does), after room for them is proven; a full ring never strands a claimed slot. Between the claim
//              and the header the write index covers unpublished slots: the rule above is waived, and only the INVALID header protects.
//              Several foreign writers may share a queue, each owned by one thread. The queue must not be of type SINGLE.
//   shared     Threads of this process share the queue through a SharedRing, a writer each, and keep the exclusive rule (shared_ring.hpp).
//
// Thread safety: one thread at a time per writer. Lifetime: an owned queue is destroyed with the writer; a borrowed one outlives it.
//
// Back-pressure. Room is proven before the first byte is written, so a refused publication leaves no trace. A publication of up to
// ring_size() packets is all or nothing; a longer one goes out in chunks, and if the deadline passes in between, PublishResult::published
// says how many are out (whole packets, rung). Waiting spins for about a microsecond, then yields, then sleeps 50 us to 1 ms at a
// time; no lock is held. Waiting ends at once when `error` shows that the queue has failed; a queue borrowed without an
// error source is known dead only by the deadline. The read index frees slots and nothing else: kernargs and signals end with completion.
//
// Cost: no virtual call, lock, allocation or system call; the read index (a line that the device writes) is loaded only when the
// last value seen does not prove room. The one HSA call is the doorbell store, absent where the doorbell is a hardware one.
#pragma once

#include <hsa/hsa.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

#include "aql/amd_abi.hpp"
#include "aql/deadline.hpp"
#include "aql/packet.hpp"
#include "aql/shared_ring.hpp"

namespace uptempo::aql {

enum class Producers : uint8_t { exclusive, foreign, shared };

// How a publication is cut. With `lead` packets rung first, execution starts while the rest is being written (not of packets written in place: those are all
// there); each further doorbell costs
// a device write (100-300 ns over PCIe). A publication longer than the ring is also cut at half the ring, so that one half
// fills while the other drains.
struct Chunking {
  uint32_t lead = 0;            // packets of the first chunk; 0: like the rest
  uint32_t chunk = UINT32_MAX;  // packets of every further chunk, at least 1

  constexpr uint32_t next() const noexcept { return chunk != 0 ? chunk : 1; }
  constexpr uint32_t first() const noexcept { return lead != 0 ? lead : next(); }
};

enum class PublishStatus : uint8_t {
  ok,
  resource_full,  // no room in the ring until the deadline
  queue_failed,   // the error source holds a status other than HSA_STATUS_SUCCESS
};

// What happened, with everything an error message needs (describe() in text.hpp writes it).
struct [[nodiscard]] PublishResult {
  PublishStatus status = PublishStatus::ok;
  hsa_status_t queue_error = HSA_STATUS_SUCCESS;
  uint32_t ring_size = 0;   // packets
  uint64_t occupancy = 0;   // slots in use when room was last looked for
  uint64_t requested = 0;   // packets asked for
  uint64_t published = 0;   // packets out; equals requested when ok
  uint64_t last_index = 0;  // packet index of the last one out; meaningful when published > 0
  uint64_t doorbells = 0;   // rung; by a shared producer for its own packets and those of others

  explicit operator bool() const noexcept { return status == PublishStatus::ok; }
};

// A look at the ring. With exclusive producers `free` can only grow until the next publication; with others it is a snapshot.
struct Room {
  uint32_t ring_size = 0;
  uint64_t occupancy = 0;
  uint64_t free = 0;
};

// What publish() takes: emit(uint64_t i, void* slot) noexcept -> uint32_t. A function that may throw is refused when compiled (invariant:
// nothing fallible between reserving a slot and publishing it).
template <class Emit>
concept Emitter = std::is_nothrow_invocable_r_v<uint32_t, Emit&, uint64_t, void*>;
// One that can also take many at a time: emit(uint64_t i, std::span<Packet64> slots) noexcept stores whole packets from the i-th on (store_behind_gate() in
// packet.hpp). It is called for all packets of a chunk but the first, unless producers are foreign.
template <class Emit>
concept RunEmitter = Emitter<Emit> && std::is_nothrow_invocable_v<Emit&, uint64_t, std::span<Packet64>>;

class AqlQueueWriter {
 public:
  // Takes over a queue made by hsa_queue_create; hsa_queue_destroy is called by the destructor. `error`, if given, is set by the queue's
  // error callback, is read with acquire order, and outlives the writer. Throws std::invalid_argument for a null
  // queue, a ring that is no power of two or not 64-byte aligned, and foreign producers on a queue of type SINGLE.
  static AqlQueueWriter own(hsa_queue_t* queue, Producers producers = Producers::exclusive,
                            const std::atomic<hsa_status_t>* error = nullptr);

  // The same over a queue that someone else destroys. With exclusive producers nobody else may publish while the writer lives. Throws
  // std::invalid_argument for shared producers, as own() does: they meet in a SharedRing.
  static AqlQueueWriter borrow(hsa_queue_t* queue, Producers producers,
                               const std::atomic<hsa_status_t>* error = nullptr);

  // One of several writers over a ring, which outlives them. What one call to publish() reserves at a time (all of it, if it fits in the ring)
  // lies together; between the portions of a longer one there may be packets of others.
  static AqlQueueWriter share(SharedRing& ring, const std::atomic<hsa_status_t>* error = nullptr);

  // A second error source, read as the first one is; null for none.
  void also_watch(const std::atomic<hsa_status_t>* error) noexcept { second_error_ = error; }

  AqlQueueWriter(AqlQueueWriter&&) noexcept = default;
  AqlQueueWriter& operator=(AqlQueueWriter&&) noexcept = default;

  // Publishes `count` packets. emit(i, slot) is called for i = 0 .. count-1 in order (of a RunEmitter the first packet of a chunk comes last); it fills bytes 4..63 of the
  // 64-byte aligned slot and returns the first 32 bits (fill() in packet.hpp does both). It must be noexcept: nothing fallible happens between
  // reserving a slot and publishing it. It is not called at all unless there is room.
  template <Emitter Emit>
  PublishResult publish(uint64_t count, Deadline deadline, Emit&& emit, Chunking chunking = {});

  // Publishes finished packets.
  PublishResult publish(std::span<const Packet64> packets, Deadline deadline, Chunking chunking = {});

  // Proves room for `count` packets, or for a ring full if that is less, without changing anything: with exclusive producers the next publish
  // of up to that many packets does not wait. With shared ones it refuses only where the deadline is Deadline::now(): who waits here holds
  // nothing, so that the waiting is left to publish().
  PublishResult admit(uint64_t count, Deadline deadline) noexcept;
  // The same without waiting and without a report, for exclusive producers; false for others.
  bool admits_now(uint64_t count) noexcept {
    return producers_ == Producers::exclusive && queue_error() == HSA_STATUS_SUCCESS &&
           has_room(count < ring_size() ? count : ring_size());
  }

  // For exclusive producers who write packets where they will be executed: the free slots that follow the next `skip` ones, as far as they lie in a row; empty if
  // there is none. `skip` is at least 1: the next slot is the gate. Headers may be written there, too. Whoever does not publish such packets in the end makes
  // their headers INVALID again.
  std::span<Packet64> free_run(uint64_t skip) noexcept;
  Packet64* ring() const noexcept { return ring_; }
  // Publishes `first`, and behind it the count - 1 packets that lie, whole, in the slots after the next one. Room is proven, so nothing can fail. Returns the
  // number of doorbells rung.
  uint64_t publish_in_place(const Packet64& first, uint64_t count, Chunking chunking) noexcept;

  Room room() const noexcept;
  uint32_t ring_size() const noexcept { return mask_ + 1; }
  // The index that the next packet will get (exclusive), or would get now (foreign, shared).
  uint64_t next_index() const noexcept {
    return producers_ == Producers::exclusive ? next_
           : shared_ != nullptr               ? shared_->claimed()
                                              : load_write_index();
  }
  uint64_t read_index() const noexcept { return load_read_index(); }
  Producers producers() const noexcept { return producers_; }
  hsa_queue_t* queue() const noexcept { return queue_; }
  // True if doorbells are written directly; false if they go through hsa_signal_store_screlease.
  bool direct_doorbell() const noexcept { return view_.doorbell != nullptr; }

 private:
  struct Destroy {
    void operator()(hsa_queue_t* queue) const noexcept;
  };

  AqlQueueWriter(hsa_queue_t* queue, Producers producers, const std::atomic<hsa_status_t>* error, bool owned,
                 SharedRing* shared);

  template <class Emit>
  uint64_t write_chunk(uint64_t first, uint64_t count, uint64_t done, Emit& emit) noexcept;  // doorbells

  void ring_doorbell(uint64_t last) noexcept { view_.ring_doorbell(last); }
  uint64_t load_read_index() const noexcept { return view_.load_read_index(); }
  uint64_t load_write_index() const noexcept { return view_.load_write_index(); }
  void store_write_index(uint64_t index) noexcept { view_.store_write_index(index); }
  bool cas_write_index(uint64_t expected, uint64_t desired) noexcept;

  hsa_status_t queue_error() const noexcept;
  bool has_room(uint64_t count) noexcept;
  bool claim(uint64_t count, uint64_t& first) noexcept;
  // Returns when `count` slots are proven free (exclusive) or claimed from `first` on (foreign, shared), or says why not.
  bool reserve(uint64_t count, Deadline deadline, uint64_t& first, PublishResult& result) noexcept;
  bool wait_for_slots(uint64_t count, Deadline deadline, uint64_t& first, PublishResult& result) noexcept;

  Packet64* ring_ = nullptr;
  uint32_t mask_ = 0;
  Producers producers_ = Producers::exclusive;
  uint64_t next_ = 0;       // exclusive: index of the next packet
  uint64_t read_seen_ = 0;  // a read index seen earlier; the true one is not lower
  QueueView view_;
  hsa_queue_t* queue_ = nullptr;
  const std::atomic<hsa_status_t>* error_ = nullptr;
  const std::atomic<hsa_status_t>* second_error_ = nullptr;
  std::unique_ptr<hsa_queue_t, Destroy> owned_;
  SharedRing* shared_ = nullptr;
};

inline hsa_status_t AqlQueueWriter::queue_error() const noexcept {
  const hsa_status_t first = error_ == nullptr ? HSA_STATUS_SUCCESS : error_->load(std::memory_order_acquire);
  if (first != HSA_STATUS_SUCCESS || second_error_ == nullptr) return first;
  return second_error_->load(std::memory_order_acquire);
}

inline bool AqlQueueWriter::has_room(uint64_t count) noexcept {
  if (next_ + count - read_seen_ <= ring_size()) return true;
  read_seen_ = load_read_index();
  return next_ + count - read_seen_ <= ring_size();
}

inline bool AqlQueueWriter::reserve(uint64_t count, Deadline deadline, uint64_t& first,
                                    PublishResult& result) noexcept {
  if (queue_error() == HSA_STATUS_SUCCESS) {
    if (producers_ == Producers::exclusive) {
      first = next_;
      if (has_room(count)) return true;
    } else if (claim(count, first)) {
      return true;
    }
  }
  return wait_for_slots(count, deadline, first, result);
}

template <class Emit>
inline uint64_t AqlQueueWriter::write_chunk(uint64_t first, uint64_t count, uint64_t done,
                                            Emit& emit) noexcept {
  // Copies: the compiler must otherwise think that a packet's stores change them.
  Packet64* const ring = ring_;
  const uint64_t mask = mask_;
  uint64_t one_by_one = count;
  if constexpr (RunEmitter<Emit>) {
    if (producers_ != Producers::foreign) {
      for (uint64_t i = 1; i < count;) {
        const uint64_t place = (first + i) & mask, to_the_end = mask + 1 - place;
        const uint64_t run = count - i < to_the_end ? count - i : to_the_end;
        emit(done + i, std::span(ring + place, run));
        i += run;
      }
      one_by_one = 1;
    }
  }
  for (uint64_t i = 0; i < one_by_one; ++i) {
    Packet64* const slot = ring + ((first + i) & mask);
    const uint32_t word = emit(done + i, static_cast<void*>(slot));
    // Release: bytes 4..63, and the packets of a run, are visible before the header that makes the packet live and opens the way to what follows.
    std::atomic_ref(slot->word[0]).store(word, std::memory_order_release);
  }
  if (producers_ == Producers::exclusive) {
    next_ = first + count;
    store_write_index(next_);
  } else if (shared_ != nullptr) {
    return shared_->commit(first, first + count);
  }
  ring_doorbell(first + count - 1);
  return 1;
}

inline uint64_t AqlQueueWriter::publish_in_place(const Packet64& first, uint64_t count,
                                                 Chunking chunking) noexcept {
  Packet64& slot = ring_[next_ & mask_];
  const uint32_t word = fill(&slot, first);
  // Release: the other packets, too, are visible before the header that opens the way to them.
  std::atomic_ref(slot.word[0]).store(word, std::memory_order_release);
  uint64_t doorbells = 0;
  for (uint64_t chunk = chunking.first(); count != 0; chunk = chunking.next()) {
    if (chunk > count) chunk = count;
    count -= chunk;
    next_ += chunk;
    store_write_index(next_);
    ring_doorbell(next_ - 1);
    ++doorbells;
  }
  return doorbells;
}

template <Emitter Emit>
PublishResult AqlQueueWriter::publish(uint64_t count, Deadline deadline, Emit&& emit, Chunking chunking) {
  PublishResult result{.ring_size = ring_size(), .requested = count};
  // What fits in the ring is reserved whole; the rest goes by halves of the ring.
  const uint64_t portion_limit = count <= ring_size() ? count : (ring_size() + 1) / 2;
  uint64_t chunk_limit = chunking.first();
  while (result.published < count) {
    const uint64_t remaining = count - result.published;
    const uint64_t portion = remaining < portion_limit ? remaining : portion_limit;
    uint64_t first = 0;
    if (!reserve(portion, deadline, first, result)) return result;
    for (uint64_t written = 0; written < portion;) {
      const uint64_t rest = portion - written;
      const uint64_t chunk = rest < chunk_limit ? rest : chunk_limit;
      result.doorbells += write_chunk(first + written, chunk, result.published, emit);
      written += chunk;
      result.published += chunk;
      chunk_limit = chunking.next();
    }
    result.last_index = first + portion - 1;
  }
  return result;
}

}  // namespace uptempo::aql
