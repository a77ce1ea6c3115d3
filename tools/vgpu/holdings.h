/* What the driver of the virtual GPU holds for this process at the moment: lets a test check from outside that everything was given back.
 *
 * The function is the preloaded library's: ask for it with dlsym(RTLD_DEFAULT, "uptempo_vgpu_holdings"). Null: the program does not run on the
 * virtual GPU. The runtime's own are counted, too: compare two moments, after hsa_shut_down for instance.
 *
 * Thread safety: any thread; each field is right at some moment of the call. */
#ifndef UPTEMPO_VGPU_HOLDINGS_H
#define UPTEMPO_VGPU_HOLDINGS_H

#include <stdint.h>

struct uptempo_vgpu_holding_counts {
  uint64_t queues;        /* compute and SDMA */
  uint64_t signal_events; /* of which a process may have 4,095 */
  uint64_t other_events;
  uint64_t buffers;       /* of all kinds of memory */
  uint64_t vram_bytes;    /* device memory */
  uint64_t gtt_bytes;     /* host memory of the driver's */
  uint64_t userptr_bytes; /* host memory of the program's, in which ROCT puts all that ROCr allocates */
};

/* 0 and *counts filled, or -1: this process has no device. */
typedef int (*uptempo_vgpu_holdings_t)(struct uptempo_vgpu_holding_counts* counts);

#endif
