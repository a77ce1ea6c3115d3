// Counters of expensive operations in this process.
//
//   const Counters before = Counters::now();
//   ...
//   const Counters spent = Counters::now() - before;     // spent.doorbells, spent.host_waits, ...
//
// Each thread counts in its own block with plain (relaxed, unlocked) stores, so counting costs only
// the additions and never synchronizes threads.
//
// Thread safety: now() and count() may be called from any thread. Work that happens before now()
// (in the C++ sense) is counted completely; concurrent work of other threads may be counted in
// part.
// Cost: the first count of a thread allocates its block. now() takes a lock and sums the blocks of
// all threads; do not call it on a hot path.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace uptempo {

// One line per counter: name and description.
#define UPTEMPO_COUNTERS(X)                                                                \
  X(signals_created, "HSA signals created")                                                \
  X(signals_pooled, "signals taken from a pool")                                           \
  X(kernarg_allocations, "allocations of kernarg memory")                                  \
  X(kernarg_blocks, "pooled kernarg blocks published")                                     \
  X(hdp_flushes, "flushes of the HDP after arguments were written to device memory")       \
  X(kernarg_read_backs, "reads of device memory for the same purpose")                     \
  X(argument_hits, "launches of a launcher whose arguments were already written")          \
  X(argument_misses, "launches of a launcher that wrote their arguments")                  \
  X(argument_bytes_saved, "bytes of arguments that did not have to be written again")      \
  X(batches, "batches published")                                                          \
  X(packets, "packets published")                                                          \
  X(barrier_bits, "packets with their barrier bit set")                                    \
  X(system_acquires, "packets that acquire at system scope")                               \
  X(system_releases, "packets that release at system scope")                               \
  X(completion_signals, "packets that carry a completion signal")                          \
  X(doorbells, "doorbell stores")                                                          \
  X(markers, "barrier packets of streams that carry a completion signal")                  \
  X(markers_elided, "markers omitted: nothing new, or nothing unfinished")                 \
  X(wait_packets, "barrier packets that wait for signals of other queues")                 \
  X(waits_elided, "waits of streams without a signal: complete, or implied by another")    \
  X(host_waits, "waits of the host for a completion")                                      \
  X(blocked_waits, "of these, waits that slept in the runtime")                            \
  X(completion_thread_wake_ups, "completion thread wake-ups that found finished work")     \
  X(completions_handed_back, "awaited completions that the completion thread reported")    \
  X(memory_allocations, "allocations from HSA memory pools, kernargs included")            \
  X(bytes_to_device, "bytes copied from host to device")                                   \
  X(bytes_to_host, "bytes copied from device to host")                                     \
  X(bytes_staged, "of these, bytes that passed through a staging buffer")                  \
  X(pins, "host ranges pinned for a copy")                                                 \
  X(unpins, "host ranges unpinned after a copy")                                           \
  X(copies_pinned, "copies to or from pinned host memory, by a copy engine")               \
  X(copies_pinned_for_once, "copies of pageable host memory that was pinned for the copy") \
  X(copies_staged, "copies of pageable host memory through a staging buffer")              \
  X(copies_on_device, "copies between device buffers")                                     \
  X(fills, "device buffers filled with a pattern")                                         \
  X(copies_by_engine, "copies of streams by a copy engine")                                \
  X(copies_by_kernel, "copies and fills of streams by a kernel")                           \
  X(copies_by_host, "copies and fills of streams by the host, at once")                    \
  X(retired, "resources released after stream work: staging, pins, freed buffers")         \
  X(frees_deferred, "buffers freed in the order of a stream")                              \
  X(late_faults, "GPU memory faults attributed to work that was given up")                 \
  X(queues_given_up, "queues whose unfinished work was lost in a destructor")

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
};

namespace detail {

// The counters of one thread. Only that thread writes; Counters::now() reads, hence atomics.
struct CounterBlock {
#define UPTEMPO_COUNTER_ATOMIC(name, text) std::atomic<uint64_t> name{0};
  UPTEMPO_COUNTERS(UPTEMPO_COUNTER_ATOMIC)
#undef UPTEMPO_COUNTER_ATOMIC
};

// Null until the calling thread first counts.
inline constinit thread_local CounterBlock* block_of_this_thread = nullptr;
CounterBlock& make_block_of_this_thread() noexcept;

inline CounterBlock& counters_of_this_thread() noexcept {
  CounterBlock* const block = block_of_this_thread;
  return block != nullptr ? *block : make_block_of_this_thread();
}

// Relaxed load and store instead of an atomic addition: no other thread writes this block.
inline void count(std::atomic<uint64_t>& counter, uint64_t n) noexcept {
  counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}
inline void count(std::atomic<uint64_t> CounterBlock::*counter, uint64_t n = 1) noexcept {
  count(counters_of_this_thread().*counter, n);
}

}  // namespace detail
}  // namespace uptempo
