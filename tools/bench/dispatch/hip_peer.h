/* HIP as a peer: a shared library of its own (hip_peer.hip), opened at run time, so that the benchmark runs without HIP as well.
 *
 * Thread safety: one thread. A function that can fail returns null, or what HIP calls the error. */
#ifndef UPTEMPO_DISPATCH_BENCH_HIP_PEER_H
#define UPTEMPO_DISPATCH_BENCH_HIP_PEER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct uptempo_hip_peer {
  /* A stream, which at first runs one load and waits for it; and with `graphs` one graph of `batch` kernel nodes in a row, the load's first batch. It is kept for
     this length of batch: `tallies` stays the same. */
  const char* (*prepare)(uint32_t batch, uint32_t repeats, uint32_t* tallies, int graphs);
  /* Every dispatch by hipLaunchKernel; or every batch by hipGraphLaunch. */
  const char* (*launch)(void);
  const char* (*launch_graphs)(void);
  const char* (*wait)(void);
  const char* (*version)(void);
};

/* Of `uptempo_hip_peer_functions`, the only symbol. */
typedef const struct uptempo_hip_peer* (*uptempo_hip_peer_t)(void);

#ifdef __cplusplus
}
#endif

#endif
