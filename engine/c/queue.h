// Queues in C (engine/dispatch/queue.hpp).
#ifndef UPTEMPO_C_QUEUE_H
#define UPTEMPO_C_QUEUE_H

#include <uptempo/c/base.h>
#include <uptempo/c/completion.h>

#ifdef __cplusplus
extern "C" {
#endif

// Where the kernel arguments of a queue are (engine/memory/kernarg_placement.hpp).
typedef enum uptempo_kernargs UPTEMPO_ENUM_TYPE {
  UPTEMPO_KERNARGS_HOST = 0,
  UPTEMPO_KERNARGS_DEVICE = 1,  // if the host reaches the GPU's memory; else as HOST
  UPTEMPO_KERNARGS_AUTOMATIC = 2,
} uptempo_kernargs;

// How packets are published (engine/runtime/ring_access.hpp).
typedef enum uptempo_ring_access UPTEMPO_ENUM_TYPE {
  UPTEMPO_RING_AUTOMATIC = 0,  // directly, unless a tool interposes
  UPTEMPO_RING_DIRECT = 1,
  UPTEMPO_RING_HSA_CALLS = 2,
} uptempo_ring_access;

typedef struct uptempo_queue_options {
  size_t size;
  uint64_t drain_timeout_ns;  // of uptempo_queue_destroy(); 0: 10 s
  // Ring size, a power of two; 0: 4,096. Raised to 256, and to the agent's limits, or lowered to
  // them.
  uint32_t packets;
  uint32_t publications;        // unfinished ones at a time, 1 to 65,536; 0: 64
  uint32_t timing_signals;      // for uptempo_timing, at most 1,048,576; 0: 256
  uint32_t kernarg_bytes;       // for all unfinished and unsubmitted work; 0: 2 MiB
  uint32_t kernarg_slab_bytes;  // largest block of a dispatch; 0: 16 KiB
  uptempo_kernargs kernargs;
  uptempo_ring_access access;
  uint32_t reserved;  // 0
} uptempo_queue_options;

// Creates an HSA queue. All resources are allocated here; none grows later. Any thread.
UPTEMPO_API uptempo_status uptempo_queue_create(const uptempo_agent* agent,
                                                const uptempo_queue_options* options,
                                                uptempo_queue** queue);

struct hsa_queue_s;  // hsa_queue_t of <hsa/hsa.h>

// Uses an HSA queue of the caller's, who creates and destroys it. Until uptempo_queue_destroy(), no
// other code may publish to it. If the HSA queue fails, its error callback must call
// uptempo_queue_fail(); otherwise only time limits and memory faults reveal it.
// uptempo_queue_options::packets is ignored. Any thread.
// Lifetime: uptempo_queue_destroy() cannot stop the HSA queue. Packets of unfinished work may still
// execute after it. Kernels and buffers in use must live until the owner has destroyed the HSA
// queue.
UPTEMPO_API uptempo_status uptempo_queue_borrow(const uptempo_agent* agent,
                                                struct hsa_queue_s* hsa_queue,
                                                const uptempo_queue_options* options,
                                                uptempo_queue** queue);
// Reports the error of a borrowed HSA queue, an hsa_status_t other than 0: all unfinished work ends
// with it, and later submissions are refused. Any thread, also ROCr's. The handle must live: the
// callback must not call this once uptempo_queue_destroy() has begun.
UPTEMPO_API uptempo_status uptempo_queue_fail(uptempo_queue* queue, int32_t hsa_status);

// Waits for the queue's work up to drain_timeout_ns. Work that is unfinished then ends with an
// error, and stderr says what is lost. Batches of the queue may be destroyed later. The packets of
// a borrowed queue may still execute (uptempo_queue_borrow).
UPTEMPO_API uptempo_status uptempo_queue_destroy(uptempo_queue* queue);

// One owner: the queue, its batches, and replays on it. The functions below say so where any thread
// may call them.

// Returns the completion of everything submitted so far.
UPTEMPO_API uptempo_status uptempo_queue_last_submitted(const uptempo_queue* queue,
                                                        uptempo_completion* completion);
// Waits for that. If the time limit passes, fails with an error that names the first unfinished
// submission, its site and its kernels.
UPTEMPO_API uptempo_status uptempo_queue_drain(const uptempo_queue* queue, uint64_t timeout_ns);
// Returns the resources of finished work to their pools, as submissions do.
UPTEMPO_API uptempo_status uptempo_queue_reclaim(uptempo_queue* queue);
// Returns the flight report: the submissions that may run, and the last 60 or so, with sites,
// kernels, grids, and what the device has done with them. For a person; lines may change. Any
// thread.
UPTEMPO_API uptempo_status uptempo_queue_report(const uptempo_queue* queue, char** text);
// Returns every choice made for this queue, with its reason. As uptempo_runtime_describe(). Any
// thread.
UPTEMPO_API uptempo_status uptempo_queue_describe(const uptempo_queue* queue, char** text);

typedef struct uptempo_queue_info {
  size_t size;
  // Not to be used after uptempo_queue_destroy().
  struct hsa_queue_s* hsa_queue;
  uint32_t ring_packets;
  uint32_t kernargs_on_device;
} uptempo_queue_info;

// Fails after the end of the Runtime.
UPTEMPO_API uptempo_status uptempo_queue_get_info(const uptempo_queue* queue,
                                                  uptempo_queue_info* info);

// Use of a resource (engine/dispatch/pools/pressure.hpp).
typedef struct uptempo_level {
  uint32_t capacity;  // 0: the queue has none
  uint32_t in_use;
  uint32_t peak;
  uint32_t high;  // from three quarters of the capacity on, until half
} uptempo_level;

typedef struct uptempo_pressure {
  size_t size;
  uptempo_level ring;            // packets
  uptempo_level publications;    // unfinished, or not yet reclaimed
  uptempo_level signals;         // for completion
  uptempo_level timing_signals;  // event-less
  uptempo_level kernarg_slabs;
} uptempo_pressure;

// Returns how full the queue's resources are, for programs that slow down before they have to wait.
// Any thread.
UPTEMPO_API uptempo_status uptempo_queue_pressure(const uptempo_queue* queue,
                                                  uptempo_pressure* pressure);

#ifdef __cplusplus
}
#endif

#endif
