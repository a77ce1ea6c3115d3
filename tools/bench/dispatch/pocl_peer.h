/* PoCL as a peer: a shared library of its own (pocl_peer.cpp), opened at run time, so that the benchmark runs without OpenCL as well.
 *
 * PoCL's device is the processor: its kernels run on the host's cores whatever the GPU does.
 *
 * Thread safety: one thread. A function that can fail returns null, or what went wrong. */
#ifndef UPTEMPO_DISPATCH_BENCH_POCL_PEER_H
#define UPTEMPO_DISPATCH_BENCH_POCL_PEER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct uptempo_pocl_peer {
  /* An in-order queue on PoCL's CPU device, whose kernels mark `count` tallies, in that memory itself. At the first call. */
  const char* (*prepare)(uint32_t* tallies, uint32_t count);
  /* clEnqueueNDRangeKernel for each dispatch, clFlush for each batch. */
  const char* (*launch)(uint32_t batch, uint32_t repeats);
  const char* (*wait)(void);
  const char* (*version)(void); /* and device, after prepare() */
};

/* Of `uptempo_pocl_peer_functions`, the only symbol. */
typedef const struct uptempo_pocl_peer* (*uptempo_pocl_peer_t)(void);

#ifdef __cplusplus
}
#endif

#endif
