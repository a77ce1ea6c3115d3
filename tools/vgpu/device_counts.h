/* What the virtual GPU did for this process so far, on all queues: packets and what they asked for, doorbells, signals, interrupts, and the lines of
 * its caches that fences moved. The difference of two moments is what lies between them.
 *
 * The function is the preloaded library's: ask for it with dlsym(RTLD_DEFAULT, "uptempo_vgpu_device"). Null: the program does not run on the
 * virtual GPU. The runtime's own queues count, too. What belongs to a packet is counted before its completion signal is sent, its interrupt
 * included; the interrupt of a copy may be counted just after its signal.
 *
 * Thread safety: any thread; each field is right at some moment of the call. */
#ifndef UPTEMPO_VGPU_DEVICE_COUNTS_H
#define UPTEMPO_VGPU_DEVICE_COUNTS_H

#include <stdint.h>

struct uptempo_vgpu_device_counts {
  uint64_t packets;        /* completed ones of all types, of which */
  uint64_t barrier_bits;   /* had their barrier bit set, */
  uint64_t agent_acquires; /* acquired at that scope, */
  uint64_t system_acquires;
  uint64_t agent_releases; /* and released at that one */
  uint64_t system_releases;
  uint64_t doorbells;      /* of compute and SDMA queues, that the device noticed: two between two looks are one, as on hardware */
  uint64_t signal_updates; /* stores to signals' values */
  uint64_t interrupts;     /* events raised for signals */

  /* 0: the device keeps no caches (it does with --incoherent), and what follows is 0. A line in the L1 of each of two compute units is two. */
  uint64_t lines_counted;
  uint64_t vector_l1_lines_invalidated; /* by acquires of packets, of 64 bytes each */
  uint64_t scalar_l1_lines_invalidated;
  uint64_t l2_lines_invalidated;  /* by acquires of system scope: lines of 128 bytes that lost what was not dirty */
  uint64_t l2_lines_written_back; /* by releases of system scope */
};

/* 0 and *counts filled, or -1: this process has no device. */
typedef int (*uptempo_vgpu_device_t)(struct uptempo_vgpu_device_counts* counts);

#endif
