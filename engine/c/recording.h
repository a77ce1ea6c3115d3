// Recordings in C: a batch that is recorded once and replayed any number of times
// (engine/recording/recording.hpp, recording_file.hpp).
#ifndef UPTEMPO_C_RECORDING_H
#define UPTEMPO_C_RECORDING_H

#include <uptempo/c/base.h>
#include <uptempo/c/batch.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct uptempo_recording_options {
  size_t size;
  uint64_t patience_ns;  // longest wait of a patch; 0: 30 s
  // For blocks of nodes that are patched while replays are in flight; at most 256 MiB,
  // 0: 160 KiB.
  uint64_t spare_kernarg_bytes;
  uptempo_timing timing;
  uptempo_fence_policy fences;
  uint32_t lead;   // packets before the first doorbell; 0: 8
  uint32_t chunk;  // packets of each further doorbell; 0: 1,024
} uptempo_recording_options;

// For queues of this queue's agent. One owner, which must also own the queue of a replay. This
// holds for all functions of a recording.
UPTEMPO_API uptempo_status uptempo_recording_create(uptempo_queue* queue,
                                                    const uptempo_recording_options* options,
                                                    uptempo_recording** recording);
// Waits for replays in flight, up to 10 s.
UPTEMPO_API uptempo_status uptempo_recording_destroy(uptempo_recording* recording);

// A node is named by its number: how many were recorded before it. Changes apply from the next
// replay on; replays in flight keep their values.

// Records one dispatch. `node` gets its number, and may be NULL. Fails as uptempo_batch_dispatch().
// Keeps the kernel loaded; memory must live until the last replay has completed.
UPTEMPO_API uptempo_status uptempo_recording_dispatch(uptempo_recording* recording,
                                                      const uptempo_kernel* kernel,
                                                      const uptempo_grid* grid,
                                                      uptempo_arguments arguments, size_t* node);
// Records a finished AQL packet of 64 bytes, as uptempo_batch_raw(). `node` gets its number, for
// later dispatches that are declared after it, and may be NULL.
UPTEMPO_API uptempo_status uptempo_recording_raw(uptempo_recording* recording, const void* packet,
                                                 size_t* node);
// Declares about a node, as uptempo_batch_declare().
UPTEMPO_API uptempo_status uptempo_recording_declare(uptempo_recording* recording, size_t node,
                                                     const uptempo_declaration* declaration);

// Changes one argument. An address moves the node's declared accesses that start at it, as
// Recording::set(), and the next replay plans its fences again. Fails, and changes nothing, for a
// number or a size that the kernel does not have, for an LDS array, and for an address if accesses
// are declared, unless each starts at an address argument and contains no other, and one starts at
// each address that is not NULL. If all spare blocks are in use, waits up to patience_ns.
UPTEMPO_API uptempo_status uptempo_recording_set(uptempo_recording* recording, size_t node,
                                                 size_t argument, const void* value,
                                                 size_t value_bytes);
// Changes all arguments. Equal values change nothing. Otherwise as uptempo_recording_set().
UPTEMPO_API uptempo_status uptempo_recording_set_all(uptempo_recording* recording, size_t node,
                                                     uptempo_arguments arguments);
// Changes the grid. Declared accesses must hold for the new one, too.
UPTEMPO_API uptempo_status uptempo_recording_set_grid(uptempo_recording* recording, size_t node,
                                                      const uptempo_grid* grid);
// Makes the node another dispatch, without declarations.
UPTEMPO_API uptempo_status uptempo_recording_replace(uptempo_recording* recording, size_t node,
                                                     const uptempo_kernel* kernel,
                                                     const uptempo_grid* grid,
                                                     uptempo_arguments arguments);

// Publishes a replay. Time limit, room and results as uptempo_batch_submit(). A replay that its
// time limit cuts off is continued by the next one on the same queue. Also fails for a queue of
// another agent.
UPTEMPO_API uptempo_status uptempo_recording_replay(uptempo_recording* recording,
                                                    uptempo_queue* queue, uint64_t timeout_ns,
                                                    const char* site,
                                                    uptempo_completion* completion);
// Drops the rest of a replay that was cut off.
UPTEMPO_API uptempo_status uptempo_recording_abandon(uptempo_recording* recording);
// Returns the number of nodes.
UPTEMPO_API uptempo_status uptempo_recording_size(const uptempo_recording* recording, size_t* size);
// Returns the fence plan of the last replay, as uptempo_batch_explain().
UPTEMPO_API uptempo_status uptempo_recording_explain(uptempo_recording* recording, char** text);

// A name for memory, in files.
typedef struct uptempo_binding {
  const char* name;
  const void* data;
  size_t bytes;
} uptempo_binding;

// Saves the recording to a file, which is replaced as a whole, or to bytes with their size.
// Addresses become offsets into the bindings; one outside of them is an error that names node,
// kernel and argument. Fails for a finished packet other than a barrier without signals.
UPTEMPO_API uptempo_status uptempo_recording_save(const uptempo_recording* recording,
                                                  const char* path, const uptempo_binding* bindings,
                                                  size_t binding_count);
UPTEMPO_API uptempo_status uptempo_recording_save_bytes(const uptempo_recording* recording,
                                                        const uptempo_binding* bindings,
                                                        size_t binding_count, void** bytes,
                                                        size_t* byte_count);

// The source from which a recording is loaded.
typedef struct uptempo_recording_source {
  size_t size;
  const char* path;   // a file, or
  const void* bytes;  // bytes
  size_t byte_count;
  // Where kernels are found by name. They must come from the code objects of the saved ones.
  const uptempo_program* const* programs;
  size_t program_count;
  const uptempo_kernel* const* kernels;
  size_t kernel_count;
  // Memory of the saved names, at least as large.
  const uptempo_binding* bindings;
  size_t binding_count;
} uptempo_recording_source;

// Loads a recording. Fails for missing kernels and names, and for contents that are foreign, newer,
// truncated or damaged; the error names the defect. A file is trusted like the program that
// recorded it.
UPTEMPO_API uptempo_status uptempo_recording_load(uptempo_queue* queue,
                                                  const uptempo_recording_source* source,
                                                  const uptempo_recording_options* options,
                                                  uptempo_recording** recording);

#ifdef __cplusplus
}
#endif

#endif
