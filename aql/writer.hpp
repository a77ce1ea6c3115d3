// AqlQueueWriter writes packets directly into the ring of an HSA queue: reserve, fill, commit.
//
//   AqlQueueWriter writer = AqlQueueWriter::borrow(queue);
//   Slots slots{120};
//   if (const PublishResult refused = writer.reserve(slots, Deadline::after(1s)); !refused) ...
//   writer.commit(slots, [&](uint64_t i, void* slot) noexcept { return fill(slot, packets[i]); });
//
// reserve() is the only step that can wait or fail. commit() stores the packets and rings the
// doorbell. publish() makes both steps.
//
// Publication order (HSA Platform System Architecture 1.2, 2.8 and 2.9): for each packet, the
// writer stores bytes 4..63 first and the first 32 bits last, with a 32-bit release store. Until
// then they read INVALID. For each chunk, it stores headers in order, then the visible write index,
// then one doorbell with the index of the chunk's last packet.
//
// Gate: packets written by a RunEmitter are stored whole and in any order while the first slot of
// their chunk reads INVALID. The writer stores the header of that
// first slot last, with release order. No processor takes the packets earlier, because it processes
// a queue in order and stops at an INVALID header, whether or not it stops at the write index, too.
// A gate requires that processors leave INVALID headers in the slots that they have taken (HSA 1.2,
// 2.9).
//
// Ring in device memory (is_ring_in_device_memory() in amd_abi.hpp): the host's stores to it are
// write-combined, so neither a release store nor the doorbell orders them. The writer stores the
// body, sfence, the header, sfence, then the doorbell (store_fence.hpp). It never reads the ring.
// ROCr publishes its own packets to such rings in the same order, without a flush of the HDP.
//
// Producers:
//   exclusive  This writer is the only producer. Its cursor is private, and the visible write index
//              covers published slots only. A processor that re-reads a 64-byte line between two
//              stores (after a remap or another doorbell) finds no half-written packet below the
//              write index. The owner may change threads if it orders them itself.
//   shared     Threads of this process share the queue through a SharedRing, with one writer each,
//              and keep the exclusive rule (shared_ring.hpp).
// No other code may publish to the queue, except in turns (follow()). Such code would claim slots
// on the visible write index (hsa_queue_add_write_index), which exposes a slot before it is filled.
// An INVALID header protects that slot only if the processor reads the slot once, and some hosts
// split its fetch of 64 bytes: it can then combine halves of the old and the new packet (seen on
// MI300X behind Intel hosts, github.com/ROCm/rocm-systems/pull/10377). In its turn, other code is
// the only producer, and can store the index after its packets as this writer does.
//
// Tools: a profiler may keep an index of its own behind the HSA functions. It reads the packets and
// moves the queue's write index when the doorbell is stored (rocprofiler-sdk: ROCm/rocm-systems
// pull request 5219). With RingAccess::hsa_calls the writer loads and stores indices and doorbell
// by HSA functions alone, so that the tool sees each packet. No doorbell names a slot beyond the
// write index that the writer has stored or claimed: such a doorbell hangs the tool (pull request
// 7796).
//
// Thread safety: one thread at a time per writer.
// Lifetime: the queue outlives the writer.
// Back-pressure: the writer proves room before it stores the first byte, so a refused publication
// leaves no trace. A waiting thread spins for about 1 us, then yields, then sleeps 50 us to 1 ms at
// a time, and holds no lock. Waiting ends at once when `error` shows that the queue has failed. For
// a queue without an error source, only the deadline ends it.
// The read index frees slots only; kernargs and signals stay in use until completion. Slots of
// kernels that read their packets also do, if the caller holds them (slot_holds.hpp).
// Cost: no virtual call, lock, allocation or system call. The read index (a line that the device
// writes) is loaded only if the last loaded value does not prove room. The only HSA call is the
// doorbell store, and only if the doorbell is not a hardware doorbell. RingAccess::hsa_calls adds
// two HSA calls per chunk and one per load of the read index.
#pragma once

#include <hsa/hsa.h>

#include <atomic>
#include <cstdint>
#include <span>
#include <type_traits>

#include <uptempo/aql/amd_abi.hpp>
#include <uptempo/aql/collision_backoff.hpp>
#include <uptempo/aql/deadline.hpp>
#include <uptempo/aql/packet.hpp>
#include <uptempo/aql/shared_ring.hpp>
#include <uptempo/aql/slot_holds.hpp>
#include <uptempo/aql/store_fence.hpp>

namespace uptempo::aql {

// How a publication is split. With `lead`, the first packets start executing while the writer
// stores the rest. Each further doorbell costs a device write (100-300 ns over PCIe).
struct Chunking {
  uint32_t lead = 0;            // packets of the first chunk; 0: same as the others
  uint32_t chunk = UINT32_MAX;  // packets of every other chunk, at least 1

  constexpr uint32_t next() const noexcept { return chunk != 0 ? chunk : 1; }
  constexpr uint32_t first() const noexcept { return lead != 0 ? lead : next(); }
};

enum class PublishStatus : uint8_t {
  ok,
  resource_full,  // no room in the ring until the deadline
  too_long,       // more packets than the ring has slots
  queue_failed,   // the error source holds a status other than HSA_STATUS_SUCCESS
};

// Result of a publication. describe() in text.hpp turns it into a sentence.
struct [[nodiscard]] PublishResult {
  PublishStatus status = PublishStatus::ok;
  hsa_status_t queue_error = HSA_STATUS_SUCCESS;
  uint32_t ring_size = 0;   // packets
  uint64_t occupancy = 0;   // slots in use at the last check
  uint64_t requested = 0;   // packets requested
  uint64_t last_index = 0;  // of publish(): index of the last packet
  uint64_t doorbells = 0;  // of publish(): rung; a shared producer also rings for packets of others

  explicit operator bool() const noexcept { return status == PublishStatus::ok; }
};

// A snapshot of the ring. With exclusive producers, `free` can only grow until the next
// publication.
struct Room {
  uint32_t ring_size = 0;
  uint64_t occupancy = 0;
  uint64_t free = 0;
};

// Consecutive slots of the ring.
struct Slots {
  uint64_t count = 0;
  uint64_t first = 0;  // packet index; set by reserve()
};

// Argument of commit(): emit(uint64_t i, void* slot) noexcept -> uint32_t. A function that may
// throw does not compile (invariant: nothing fallible between reserving a slot and publishing it).
template <class Emit>
concept Emitter = std::is_nothrow_invocable_r_v<uint32_t, Emit&, uint64_t, void*>;
// An Emitter that can also store many packets at once: emit(uint64_t i, std::span<Packet64> slots)
// noexcept stores whole packets from the i-th on (store_behind_gate() in packet.hpp). commit()
// calls it for all packets of a chunk except the first.
template <class Emit>
concept RunEmitter =
    Emitter<Emit> && std::is_nothrow_invocable_v<Emit&, uint64_t, std::span<Packet64>>;

class AqlQueueWriter {
 public:
  // Uses a queue that the caller destroys. No other code may publish while the writer exists. The
  // queue's error callback sets `error`, if given; the writer reads it with acquire order, and it
  // outlives the writer. Throws std::invalid_argument for a queue that require_ring() rejects.
  static AqlQueueWriter borrow(hsa_queue_t* queue, const std::atomic<hsa_status_t>* error = nullptr,
                               RingAccess access = RingAccess::direct);

  // Creates one of several writers over `ring`, which outlives them.
  static AqlQueueWriter share(SharedRing& ring, const std::atomic<hsa_status_t>* error = nullptr);

  // Sets a second error source, read like the first one. Null removes it.
  void also_watch(const std::atomic<hsa_status_t>* error) noexcept { second_error_ = error; }

  AqlQueueWriter(AqlQueueWriter&&) noexcept = default;
  AqlQueueWriter& operator=(AqlQueueWriter&&) noexcept = default;

  // Slots that the read index does not free. Null until the first call; for a shared queue, those
  // of its ring. `holds` is for this ring, and outlives the writer. Call before the first hold.
  void use_holds(SlotHolds& holds) noexcept {
    // Release: other threads read it through room().
    std::atomic_ref(holds_).store(&holds, std::memory_order_release);
    if (shared_ != nullptr) shared_->use_holds(holds);
  }
  SlotHolds* holds() const noexcept {
    return shared_ != nullptr ? shared_->holds()
                              : std::atomic_ref(holds_).load(std::memory_order_acquire);
  }

  // Proves room for slots.count packets (exclusive), or claims these slots for this thread
  // (shared), and sets slots.first. Returns false at once if the queue has failed or there is no
  // room. Exclusive producers may leave the slots unused; shared producers must commit() them.
  bool try_reserve(Slots& slots) noexcept {
    return queue_error() == HSA_STATUS_SUCCESS && claim(slots);
  }
  // The same, but waits for room until the deadline. More than longest_run() slots may never be
  // free together.
  PublishResult reserve(Slots& slots, Deadline deadline) noexcept;
  // The reserved slots stay in use until then. Requires holds().
  void hold(const Slots& slots, const HoldEnd& end) noexcept {
    holds()->add(slots.first, slots.first + slots.count - 1, end);
  }
  // Publishes packets in the reserved slots. Calls emit(i, slot) for i = 0 .. count-1 in order (a
  // RunEmitter gets the first packet of a chunk last). emit fills bytes 4..63 of the 64-byte
  // aligned slot and returns the first 32 bits, as fill() in packet.hpp does. It must be noexcept.
  // Returns the number of doorbells rung.
  template <Emitter Emit>
  uint64_t commit(const Slots& slots, Emit&& emit, Chunking chunking = {}) noexcept;

  // reserve() and commit().
  template <Emitter Emit>
  PublishResult publish(uint64_t count, Deadline deadline, Emit&& emit, Chunking chunking = {});
  // The same for finished packets.
  PublishResult publish(std::span<const Packet64> packets, Deadline deadline,
                        Chunking chunking = {});

  Packet64* ring() const noexcept { return ring_; }
  // True if other code has published to the queue since this writer last did: the visible write
  // index is not where this writer left it. Always false for shared producers, and where tools may
  // move the index (RingAccess::hsa_calls).
  bool has_intruder() const noexcept {
    return shared_ == nullptr && view_.write_index != nullptr && load_write_index() != next_;
  }

  // Continues after packets that other code has published, in turns with this writer: no slots are
  // reserved, and that code publishes no more. Not for a shared queue (SharedRing::follow()).
  void follow() noexcept { next_ = load_write_index(); }

  Room room() const noexcept;
  uint32_t ring_size() const noexcept { return mask_ + 1; }
  // The most slots that are certain to become free together. Some processors advance the read index
  // in groups of eight packets or not after every packet (ROCm/rocm-systems 9249; ROCr's
  // amd_aql_queue.cpp), so up to seven slots of taken packets may stay in use until more packets
  // follow. A ring of fewer than 16 packets needs a processor that does not.
  uint32_t longest_run() const noexcept {
    return ring_size() - (ring_size() < 16 ? ring_size() / 2 : 8);
  }
  // Index of the next packet (exclusive), or its index if it were claimed now (shared).
  uint64_t next_index() const noexcept { return shared_ == nullptr ? next_ : shared_->claimed(); }
  uint64_t read_index() const noexcept { return load_read_index(); }
  // Index of the first packet whose slot is in use.
  uint64_t free_below() const noexcept {
    const uint64_t read = load_read_index();
    SlotHolds* const held = holds();
    return held == nullptr ? read : held->free_below(read);
  }
  // True for a writer over a SharedRing.
  bool is_shared() const noexcept { return shared_ != nullptr; }
  hsa_queue_t* queue() const noexcept { return queue_; }
  // True if the ring is in a GPU's memory.
  bool has_device_ring() const noexcept { return has_device_ring_; }
  // True if doorbells are written directly; false if they use hsa_signal_store_screlease.
  bool direct_doorbell() const noexcept { return view_.doorbell != nullptr; }
  bool direct_indices() const noexcept { return view_.write_index != nullptr; }
  // The write index that others see; any thread.
  uint64_t visible_write_index() const noexcept { return load_write_index(); }

 private:
  AqlQueueWriter(hsa_queue_t* queue, const std::atomic<hsa_status_t>* error, RingAccess access,
                 SharedRing* shared);

  template <class Emit>
  // returns the number of doorbells
  uint64_t write_chunk(uint64_t first, uint64_t count, uint64_t done, Emit& emit) noexcept;

  void ring_doorbell(uint64_t last) noexcept { view_.ring_doorbell(last); }
  // Orders stores to a ring in device memory. No effect for other rings.
  void fence_ring() const noexcept {
    if (has_device_ring_) [[unlikely]]
      store_fence();
  }
  uint64_t load_read_index() const noexcept { return view_.load_read_index(); }
  uint64_t load_write_index() const noexcept { return view_.load_write_index(); }
  void store_write_index(uint64_t index) noexcept { view_.store_write_index(index); }

  hsa_status_t queue_error() const noexcept;
  bool has_room(uint64_t count) noexcept;
  bool claim(Slots& slots) noexcept;

  Packet64* ring_ = nullptr;
  uint32_t mask_ = 0;
  bool has_device_ring_ = false;
  uint64_t next_ = 0;       // exclusive: index of the next packet
  uint64_t read_seen_ = 0;  // last result of free_below(); the current one is not lower
  QueueView view_;
  hsa_queue_t* queue_ = nullptr;
  const std::atomic<hsa_status_t>* error_ = nullptr;
  const std::atomic<hsa_status_t>* second_error_ = nullptr;
  SharedRing* shared_ = nullptr;
  CollisionBackoff backoff_;            // shared producers only
  mutable SlotHolds* holds_ = nullptr;  // atomic; mutable only because atomic_ref needs it
};

inline hsa_status_t AqlQueueWriter::queue_error() const noexcept {
  const hsa_status_t first =
      error_ == nullptr ? HSA_STATUS_SUCCESS : error_->load(std::memory_order_acquire);
  if (first != HSA_STATUS_SUCCESS || second_error_ == nullptr) return first;
  return second_error_->load(std::memory_order_acquire);
}

inline bool AqlQueueWriter::has_room(uint64_t count) noexcept {
  if (next_ + count - read_seen_ <= ring_size()) return true;
  read_seen_ = free_below();
  return next_ + count - read_seen_ <= ring_size();
}

inline bool AqlQueueWriter::claim(Slots& slots) noexcept {
  slots.first = next_;
  if (shared_ == nullptr) return has_room(slots.count);
  backoff_.wait(slots.count);
  return shared_->claim(this, slots.count, read_seen_, slots.first);
}

template <class Emit>
inline uint64_t AqlQueueWriter::write_chunk(uint64_t first, uint64_t count, uint64_t done,
                                            Emit& emit) noexcept {
  // Local copies: otherwise the compiler must assume that a packet's stores change them.
  Packet64* const ring = ring_;
  const uint64_t mask = mask_;
  uint64_t one_by_one = count;
  if constexpr (RunEmitter<Emit>) {
    for (uint64_t i = 1; i < count;) {
      const uint64_t place = (first + i) & mask, to_the_end = mask + 1 - place;
      const uint64_t run = count - i < to_the_end ? count - i : to_the_end;
      emit(done + i, std::span(ring + place, run));
      i += run;
    }
    one_by_one = 1;
  }
  for (uint64_t i = 0; i < one_by_one; ++i) {
    Packet64* const slot = ring + ((first + i) & mask);
    const uint32_t word = emit(done + i, static_cast<void*>(slot));
    fence_ring();
    // Release: bytes 4..63 and the packets of a run are visible before the header that makes this
    // packet live and exposes the packets after it.
    std::atomic_ref(slot->word[0]).store(word, std::memory_order_release);
  }
  // Before the doorbell, and before another thread can commit these packets.
  fence_ring();
  if (shared_ != nullptr) {
    const uint32_t doorbells = shared_->commit(first, first + count);
    backoff_.published(count, doorbells != 0);
    return doorbells;
  }
  next_ = first + count;
  store_write_index(next_);
  ring_doorbell(first + count - 1);
  return 1;
}

template <Emitter Emit>
uint64_t AqlQueueWriter::commit(const Slots& slots, Emit&& emit, Chunking chunking) noexcept {
  uint64_t doorbells = 0, done = 0;
  for (uint64_t chunk = chunking.first(); done < slots.count; chunk = chunking.next()) {
    if (chunk > slots.count - done) chunk = slots.count - done;
    doorbells += write_chunk(slots.first + done, chunk, done, emit);
    done += chunk;
  }
  return doorbells;
}

template <Emitter Emit>
PublishResult AqlQueueWriter::publish(uint64_t count, Deadline deadline, Emit&& emit,
                                      Chunking chunking) {
  Slots slots{count};
  PublishResult result = reserve(slots, deadline);
  if (!result || count == 0) return result;
  result.last_index = slots.first + count - 1;
  result.doorbells = commit(slots, emit, chunking);
  return result;
}

}  // namespace uptempo::aql
