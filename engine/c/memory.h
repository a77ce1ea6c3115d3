// Memory, copies and fills in C (engine/memory/buffer.hpp, engine/stream/copy/copy_memory.hpp).
#ifndef UPTEMPO_C_MEMORY_H
#define UPTEMPO_C_MEMORY_H

#include <uptempo/c/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum uptempo_memory_kind UPTEMPO_ENUM_TYPE {
  UPTEMPO_MEMORY_DEVICE = 0,  // the GPU's own, coarse-grained; the host does not access it
  UPTEMPO_MEMORY_PINNED = 1,  // host memory that GPU and copy engines reach directly, fine-grained
  UPTEMPO_MEMORY_PINNED_COARSE = 2,  // the same, coherent at system-scope fences only
  UPTEMPO_MEMORY_KERNARG = 3,        // host memory for kernel arguments
} uptempo_memory_kind;

typedef struct uptempo_buffer_options {
  size_t size;
  // Further GPUs that may access the memory.
  const uptempo_agent* const* more_gpus;
  size_t more_gpu_count;
} uptempo_buffer_options;

// Allocates memory of a GPU. Contents are undefined. Takes one or more system calls. Fails for 0
// bytes, for an exhausted pool, and for a further GPU that cannot reach the memory. Any thread.
UPTEMPO_API uptempo_status uptempo_buffer_create(const uptempo_agent* gpu, uptempo_memory_kind kind,
                                                 size_t bytes,
                                                 const uptempo_buffer_options* options,
                                                 uptempo_buffer** buffer);
// Frees the memory. Kernels and copies that use it must have completed.
UPTEMPO_API uptempo_status uptempo_buffer_destroy(uptempo_buffer* buffer);

typedef struct uptempo_buffer_info {
  size_t size;
  void* data;  // at least 64-byte aligned
  size_t bytes;
} uptempo_buffer_info;

// Any thread.
UPTEMPO_API uptempo_status uptempo_buffer_get_info(const uptempo_buffer* buffer,
                                                   uptempo_buffer_info* info);
// Returns the address: for kernels and copies, and of host memory also for the host. NULL, with an
// error, for no handle, and after the end of the Runtime. Any thread.
UPTEMPO_API void* uptempo_buffer_data(const uptempo_buffer* buffer);

// Where memory of a copy is.
typedef enum uptempo_place UPTEMPO_ENUM_TYPE {
  UPTEMPO_PLACE_DEVICE = 0,    // of the stream's agent
  UPTEMPO_PLACE_PINNED = 1,    // host memory that the agent can access
  UPTEMPO_PLACE_PAGEABLE = 2,  // any other host memory
  UPTEMPO_PLACE_PEER = 3,      // of another agent, to which the stream's has access
} uptempo_place;

// One side of a copy, by value. The bytes of a source are only read.
typedef struct uptempo_range {
  void* data;
  size_t bytes;
  const uptempo_agent* owner;  // of PEER; else NULL
  uptempo_place place;
  uint32_t host_writes;  // not 0: as a target, device memory that the host may write itself
} uptempo_range;

// Memory of the stream's agent.
static inline uptempo_range uptempo_device(const void* data, size_t bytes) {
  uptempo_range range = {(void*)data, bytes, NULL, UPTEMPO_PLACE_DEVICE, 0};
  return range;
}
// Host memory that the agent can access, such as a buffer of UPTEMPO_MEMORY_PINNED.
static inline uptempo_range uptempo_pinned(const void* data, size_t bytes) {
  uptempo_range range = {(void*)data, bytes, NULL, UPTEMPO_PLACE_PINNED, 0};
  return range;
}
// Any other host memory.
static inline uptempo_range uptempo_pageable(const void* data, size_t bytes) {
  uptempo_range range = {(void*)data, bytes, NULL, UPTEMPO_PLACE_PAGEABLE, 0};
  return range;
}
// Memory of another agent, to which the stream's agent has access.
static inline uptempo_range uptempo_peer(const uptempo_agent* owner, const void* data,
                                         size_t bytes) {
  uptempo_range range = {(void*)data, bytes, owner, UPTEMPO_PLACE_PEER, 0};
  return range;
}

// Copier: copies and fills that are complete when the call returns, for programs without streams.

// One owner. Takes a hardware queue with its first fill only.
UPTEMPO_API uptempo_status uptempo_copier_create(const uptempo_agent* gpu, uptempo_copier** copier);
UPTEMPO_API uptempo_status uptempo_copier_destroy(uptempo_copier* copier);
// Sees what the device wrote before a completion that the caller has observed. Fails if the sizes
// differ, and if the device fails.
UPTEMPO_API uptempo_status uptempo_copier_copy(uptempo_copier* copier, uptempo_range to,
                                               uptempo_range from);
// Fills the target with a pattern of 1, 2, 4, 8 or 16 bytes, a whole number of times.
UPTEMPO_API uptempo_status uptempo_copier_fill(uptempo_copier* copier, uptempo_range to,
                                               const void* pattern, size_t pattern_bytes);

#ifdef __cplusplus
}
#endif

#endif
