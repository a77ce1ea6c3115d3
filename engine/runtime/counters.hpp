// Counts of what costs time: the figures beside every measurement of this library.
//
//   const Counters before = Counters::now();
//   ...
//   const Counters spent = Counters::now() - before;     // spent.doorbells, spent.host_waits, ...
//
// The counts are of the whole process. Each thread adds to a block of its own with plain (relaxed, unlocked) stores, so that counting
// costs no more than the additions and never makes two threads meet. The block is allocated at a thread's first count.
//
// Thread safety: now() and count() from any thread. now() sums all threads' blocks under a lock, and never on a hot path; work that another
// thread is doing meanwhile may be counted partly. Work that happened before now() (in the C++ sense) is counted completely.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace uptempo {

// One line for each counter: name, then what is counted.
#define UPTEMPO_COUNTERS(X)                                                                   \
  X(signals_created, "HSA signals created")                                                   \
  X(signals_pooled, "signals taken from a pool")                                              \
  X(kernarg_allocations, "allocations of kernarg memory")                                     \
  X(kernarg_blocks, "kernarg blocks of a pool that were published")                           \
  X(spills, "kernarg blocks larger than a slab, in memory of their own")                      \
  X(spill_bytes, "bytes of these")                                                            \
  X(argument_hits, "launches of a launcher whose arguments lay ready")                        \
  X(argument_misses, "launches of a launcher that wrote their arguments")                     \
  X(argument_bytes_saved, "bytes of arguments that were not written, because they lay ready") \
  X(batches, "batches published")                                                             \
  X(packets, "packets published")                                                             \
  X(barrier_bits, "packets with their barrier bit set")                                       \
  X(system_acquires, "packets that acquire at system scope")                                  \
  X(system_releases, "packets that release at system scope")                                  \
  X(completion_signals, "packets that carry a completion signal")                             \
  X(doorbells, "doorbell stores")                                                             \
  X(markers, "barrier packets of streams that carry a completion signal")                     \
  X(markers_elided, "markers that were not needed: nothing new, or nothing unfinished")       \
  X(wait_packets, "barrier packets that wait for signals of other queues")                    \
  X(waits_elided, "waits of streams that took no signal: over, or implied by another")        \
  X(host_waits, "waits of the host for a completion")                                         \
  X(blocked_waits, "of these, waits that slept in the runtime")                               \
  X(completion_thread_wake_ups, "wake-ups of the drain thread that found something finished")             \
  X(completions_handed_back, "awaited completions that the drain thread handed back")                         \
  X(memory_allocations, "allocations from HSA memory pools, kernargs included")               \
  X(bytes_to_device, "bytes copied from host to device")                                      \
  X(bytes_to_host, "bytes copied from device to host")                                        \
  X(bytes_staged, "of these, bytes that passed through a staging buffer")                     \
  X(pins, "host ranges pinned for a copy")                                                    \
  X(unpins, "host ranges unpinned after a copy")                                              \
  X(copies_pinned, "copies to or from pinned host memory, by a copy engine")                  \
  X(copies_pinned_for_once, "copies of pageable host memory that was pinned for the copy")    \
  X(copies_staged, "copies of pageable host memory through a staging buffer")                 \
  X(copies_on_device, "copies between device buffers")                                        \
  X(fills, "device buffers filled with a pattern")                                            \
  X(copies_by_engine, "copies of streams that a copy engine carried out")                     \
  X(copies_by_kernel, "copies and fills of streams that a kernel carried out")                \
  X(copies_by_host, "copies and fills of streams that the host carried out at once")          \
  X(host_duties, "ends of copies that the host owed: out of staging, unpinned")               \
  X(frees_deferred, "buffers given back in the order of a stream")                            \
  X(late_faults, "GPU memory faults taken for those of work that had been given up")

struct Counters {
#define UPTEMPO_COUNTER_FIELD(name, text) uint64_t name = 0;
  UPTEMPO_COUNTERS(UPTEMPO_COUNTER_FIELD)
#undef UPTEMPO_COUNTER_FIELD

  static Counters now();

  Counters& operator+=(const Counters& other) noexcept;
  Counters& operator-=(const Counters& other) noexcept;
  friend Counters operator+(Counters a, const Counters& b) noexcept { return a += b; }
  friend Counters operator-(Counters a, const Counters& b) noexcept { return a -= b; }
  friend bool operator==(const Counters&, const Counters&) = default;

  // Calls visit(name, text, value) for every counter, in the order above.
  template <class Visit>
  void each(Visit&& visit) const {
#define UPTEMPO_COUNTER_VISIT(name, text) visit(#name, text, name);
    UPTEMPO_COUNTERS(UPTEMPO_COUNTER_VISIT)
#undef UPTEMPO_COUNTER_VISIT
  }
};

namespace detail {

// The calling thread's block. One writer; the reader is Counters::now(), hence atomics.
struct CounterBlock {
#define UPTEMPO_COUNTER_ATOMIC(name, text) std::atomic<uint64_t> name{0};
  UPTEMPO_COUNTERS(UPTEMPO_COUNTER_ATOMIC)
#undef UPTEMPO_COUNTER_ATOMIC
};

// The calling thread's block, once it has counted something.
inline constinit thread_local CounterBlock* block_of_this_thread = nullptr;
CounterBlock& make_block_of_this_thread() noexcept;

inline CounterBlock& counters_of_this_thread() noexcept {
  CounterBlock* const block = block_of_this_thread;
  return block != nullptr ? *block : make_block_of_this_thread();
}

// Relaxed load and store, not an atomic addition: nobody else writes a thread's block.
inline void count(std::atomic<uint64_t>& counter, uint64_t n) noexcept {
  counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}
inline void count(std::atomic<uint64_t> CounterBlock::*counter, uint64_t n = 1) noexcept {
  count(counters_of_this_thread().*counter, n);
}

}  // namespace detail
}  // namespace uptempo
