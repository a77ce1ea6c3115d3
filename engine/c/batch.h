// Batches in C: dispatches that are published together, with one doorbell and one completion
// (engine/dispatch/batch_submitter.hpp). Also the declarations of a dispatch
// (engine/fences/declarations.hpp), which recordings share.
#ifndef UPTEMPO_C_BATCH_H
#define UPTEMPO_C_BATCH_H

#include <uptempo/c/base.h>
#include <uptempo/c/completion.h>
#include <uptempo/c/program.h>
#include <uptempo/c/queue.h>

#ifdef __cplusplus
extern "C" {
#endif

// Packets that get a completion signal for their times (uptempo_completion_times).
typedef enum uptempo_timing UPTEMPO_ENUM_TYPE {
  UPTEMPO_TIMING_NONE = 0,
  UPTEMPO_TIMING_BATCH = 1,  // first and last packet
  UPTEMPO_TIMING_EACH = 2,
} uptempo_timing;

typedef enum uptempo_fence_policy UPTEMPO_ENUM_TYPE {
  UPTEMPO_FENCES_PLANNED = 0,            // only those that the declarations need
  UPTEMPO_FENCES_SYSTEM_EVERYWHERE = 1,  // as in most runtimes, for comparison
} uptempo_fence_policy;

typedef struct uptempo_batch_options {
  size_t size;
  uint64_t patience_ns;  // longest wait of uptempo_batch_dispatch(); 0: 30 s
  uptempo_timing timing;
  uptempo_fence_policy fences;
  uint32_t lead;   // packets before the first doorbell; 0: as `chunk`
  uint32_t chunk;  // packets of each further doorbell; 0: one doorbell
} uptempo_batch_options;

// One owner: the thread that owns the queue. This holds for all functions of a batch.
UPTEMPO_API uptempo_status uptempo_batch_create(uptempo_queue* queue,
                                                const uptempo_batch_options* options,
                                                uptempo_batch** batch);
// Drops what is not submitted. Submitted work continues.
UPTEMPO_API uptempo_status uptempo_batch_destroy(uptempo_batch* batch);

// Appends one dispatch. `grid` and `arguments` are read before the call returns. If no kernarg
// block is free, waits for one up to patience_ns. Fails for arguments that do not fit the kernel,
// for a grid or an amount of LDS that kernel or agent cannot run, for a kernel of another agent,
// and if no block became free. The batch is then unchanged. Kernels and memory must live until
// completion.
UPTEMPO_API uptempo_status uptempo_batch_dispatch(uptempo_batch* batch,
                                                  const uptempo_kernel* kernel,
                                                  const uptempo_grid* grid,
                                                  uptempo_arguments arguments);
// The same, but returns UPTEMPO_NOT_READY instead of waiting. If the batch itself holds all blocks,
// only its submission, or uptempo_batch_clear(), frees them.
UPTEMPO_API uptempo_status uptempo_batch_try_dispatch(uptempo_batch* batch,
                                                      const uptempo_kernel* kernel,
                                                      const uptempo_grid* grid,
                                                      uptempo_arguments arguments);
// Appends a finished AQL packet of 64 bytes. Header and completion signal stay as they are. Fails
// for a packet of type INVALID.
UPTEMPO_API uptempo_status uptempo_batch_raw(uptempo_batch* batch, const void* packet);

// Memory that a dispatch reads or writes. A dispatch that does both has two entries for it.
typedef struct uptempo_access {
  const void* data;
  size_t bytes;
  uint64_t writes;  // 0: reads, 1: writes
} uptempo_access;

// Parts of a declaration.
enum {
  // `accesses` are all that the dispatch does, except to its arguments. 0 of them: nothing.
  UPTEMPO_DECLARES_ACCESSES = 1,
  // The dispatch depends on the earlier packets `after`, and on no others. It may access any
  // memory. A packet is named by its number: how many were in the batch or recording before it.
  // uptempo_batch_size() before a dispatch returns the dispatch's number;
  // uptempo_recording_dispatch() and uptempo_recording_raw() return it.
  UPTEMPO_DECLARES_AFTER = 2,
  // The caller chooses `acquire` and `release`. The first packet of a batch still acquires at agent
  // scope, and the last one releases at system scope (engine/fences/fence_plan.hpp).
  UPTEMPO_DECLARES_SCOPES = 4,
  // No barrier bit. The last packet of a batch has it all the same.
  UPTEMPO_DECLARES_NO_BARRIER = 8,
};

// As in packets of HSA.
typedef enum uptempo_scope UPTEMPO_ENUM_TYPE {
  UPTEMPO_SCOPE_NONE = 0,
  UPTEMPO_SCOPE_AGENT = 1,
  UPTEMPO_SCOPE_SYSTEM = 2,
} uptempo_scope;

// A reader of results before the caller awaits the completion.
typedef enum uptempo_observer UPTEMPO_ENUM_TYPE {
  UPTEMPO_OBSERVER_NONE = 0,
  UPTEMPO_OBSERVER_AGENT = 1,   // another queue of the same agent
  UPTEMPO_OBSERVER_SYSTEM = 2,  // the host or another device
} uptempo_observer;

// A caller's declarations about a dispatch. Barrier bit and fences follow from it, with a reason
// for each (uptempo_batch_explain). Without declarations a dispatch may access everything.
typedef struct uptempo_declaration {
  size_t size;
  uint64_t parts;                  // UPTEMPO_DECLARES_..., added up; others must be 0
  const uptempo_access* accesses;  // read during the call, as `after`
  size_t access_count;
  const size_t* after;
  size_t after_count;
  uptempo_scope acquire;
  uptempo_scope release;
  uptempo_observer observer;
  uint32_t reserved;  // 0
} uptempo_declaration;

// Declares about the dispatch last appended; several calls add up. Fails if another packet, a
// submission or uptempo_batch_clear() has followed it, for `after` a packet that is not earlier,
// and for bytes at NULL or beyond the last address. Nothing is declared then.
UPTEMPO_API uptempo_status uptempo_batch_declare(uptempo_batch* batch,
                                                 const uptempo_declaration* declaration);

// HSA signals of the caller's, by hsa_signal_t::handle (BatchSubmitter::after, complete_with). They
// must live until the batch is complete.

// Later packets of the batch begin when the signal is 0. The host or submitted work must set it;
// otherwise the hardware queue stops. Appends one packet.
UPTEMPO_API uptempo_status uptempo_batch_after_signal(uptempo_batch* batch, uint64_t hsa_signal);
// The next submission sets the signal to 1, and to 0 when it is complete. It must have no other use
// until every waiting thread has returned.
UPTEMPO_API uptempo_status uptempo_batch_complete_with(uptempo_batch* batch, uint64_t hsa_signal);

// Publishes the batch, which is then empty and can be used again. An empty batch with a signal of
// uptempo_batch_complete_with() is published as a barrier packet; another one returns the
// completion of the queue's last submission. With a time limit of 0, returns UPTEMPO_NOT_READY if
// there is no room, and fails for a batch longer than the ring less eight packets. Otherwise waits
// for room and fails with the resource that was exhausted; the batch keeps its packets, and may be
// submitted again.
// A batch longer than the ring is published in parts. If the time limit passes between two of them,
// the batch refuses further packets, and the next submission publishes the rest, as far as there is
// room with a time limit of 0. uptempo_batch_clear() and uptempo_batch_destroy() drop the rest; the
// published parts run. A queue that has failed drops what is not published.
// `completion` is unchanged if the call does not return UPTEMPO_OK.
UPTEMPO_API uptempo_status uptempo_batch_submit(uptempo_batch* batch, uint64_t timeout_ns,
                                                const char* site, uptempo_completion* completion);
// Drops everything that is not submitted.
UPTEMPO_API uptempo_status uptempo_batch_clear(uptempo_batch* batch);
// Returns the number of packets that are not submitted: the number of the next one.
UPTEMPO_API uptempo_status uptempo_batch_size(const uptempo_batch* batch, size_t* size);
// Returns the fence plan of the last submission, one line a packet, with a reason for each barrier
// bit and scope.
UPTEMPO_API uptempo_status uptempo_batch_explain(uptempo_batch* batch, char** text);

#ifdef __cplusplus
}
#endif

#endif
