/* PoCL as a peer: a shared library (pocl_peer.cpp), opened at run time, so that the benchmark also
 * runs without OpenCL.
 *
 * PoCL's device is the processor: its kernels always run, on the host's cores.
 *
 * Thread safety: one thread.
 * Errors: a function that can fail returns null for success, or the reason. */
#ifndef UPTEMPO_DISPATCH_BENCH_POCL_PEER_H
#define UPTEMPO_DISPATCH_BENCH_POCL_PEER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct uptempo_pocl_peer {
  /* At the first call: creates an in-order queue on PoCL's CPU device, whose kernels mark `count`
     tallies directly in that memory. */
  const char* (*prepare)(uint32_t* tallies, uint32_t count);
  /* clEnqueueNDRangeKernel for each dispatch, clFlush for each batch. */
  const char* (*launch)(uint32_t batch, uint32_t repeats);
  const char* (*wait)(void);
  const char* (*version)(void); /* and the device's; after prepare() */
};

/* Type of `uptempo_pocl_peer_functions`, the library's only symbol. */
typedef const struct uptempo_pocl_peer* (*uptempo_pocl_peer_t)(void);

#ifdef __cplusplus
}
#endif

#endif
