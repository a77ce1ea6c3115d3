/* How many AQL packets the virtual GPU has completed for this process so far, on all queues: lets a benchmark check that what it handed over
 * was carried out exactly once, also where kernels are not executed (--null-kernels).
 *
 * The function is the preloaded library's: ask for it with dlsym(RTLD_DEFAULT, "uptempo_vgpu_packets"). Null: the program does not
 * run on the virtual GPU. A packet is counted before its completion signal is sent; packets of the runtime's own queues count, too.
 *
 * Thread safety: any thread. */
#ifndef UPTEMPO_VGPU_COUNTS_H
#define UPTEMPO_VGPU_COUNTS_H

#include <stdint.h>

struct uptempo_vgpu_packet_counts {
  uint64_t dispatches; /* kernel dispatches */
  uint64_t others;     /* barrier and vendor packets */
};

/* 0 and *counts filled, or -1: this process has no device. */
typedef int (*uptempo_vgpu_packets_t)(struct uptempo_vgpu_packet_counts* counts);

#endif
