/* HIP as a peer: a shared library (hip_peer.hip), opened at run time, so that the benchmark also
 * runs without HIP.
 *
 * Thread safety: one thread.
 * Errors: a function that can fail returns null for success, or HIP's name of the error. */
#ifndef UPTEMPO_DISPATCH_BENCH_HIP_PEER_H
#define UPTEMPO_DISPATCH_BENCH_HIP_PEER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct uptempo_hip_peer {
  /* Creates a stream, runs one load on it and waits. With `graphs`, also creates a graph of `batch`
     kernel nodes in a row, the load's first batch, and keeps it for this batch length; `tallies`
     must stay the same. */
  const char* (*prepare)(uint32_t batch, uint32_t repeats, uint32_t* tallies, int graphs);
  /* Submit every dispatch by hipLaunchKernel, or every batch by hipGraphLaunch. */
  const char* (*launch)(void);
  const char* (*launch_graphs)(void);
  const char* (*wait)(void);
  /* The hipGraph_t of the last prepare() with `graphs`. It stays. */
  void* (*graph)(void);
  const char* (*version)(void);
};

/* Type of `uptempo_hip_peer_functions`, the library's only symbol. */
typedef const struct uptempo_hip_peer* (*uptempo_hip_peer_t)(void);

#ifdef __cplusplus
}
#endif

#endif
