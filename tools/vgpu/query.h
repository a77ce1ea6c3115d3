/* What a program that runs on the virtual GPU may ask it. C and C++.
 *
 * Each function is the preloaded library's. Look it up by name:
 *
 *   uptempo_vgpu_device_t device =
 *       (uptempo_vgpu_device_t)dlsym(RTLD_DEFAULT, "uptempo_vgpu_device");
 *
 * A null pointer means that the program does not run on the virtual GPU. Each function returns 0
 * and fills its result, or returns -1 and leaves the result alone. Counters include the runtime's
 * own queues and packets; take the difference of two calls. With several GPUs (--gpus), counters
 * are sums over them.
 *
 * Thread safety: any thread. Each field is correct at some moment of the call. */
#ifndef UPTEMPO_VGPU_QUERY_H
#define UPTEMPO_VGPU_QUERY_H

#include <stdint.h>

/* "uptempo_vgpu_packets": AQL packets completed on all queues. The device counts a packet before
 * it sends the packet's completion signal. A benchmark checks with it that the device completed
 * each packet exactly once, also with --null-kernels. -1: this process has no device. */
struct uptempo_vgpu_packet_counts {
  uint64_t dispatches; /* kernel dispatches */
  uint64_t others;     /* barrier and vendor packets */
};
typedef int (*uptempo_vgpu_packets_t)(struct uptempo_vgpu_packet_counts* counts);

/* "uptempo_vgpu_device": what the device did on all queues. The device counts a packet or a copy,
 * its interrupt included, before it sends the completion signal. -1: this process has no device. */
struct uptempo_vgpu_device_counts {
  uint64_t packets;        /* completed packets of all types; of these: */
  uint64_t barrier_bits;   /* packets with their barrier bit set */
  uint64_t agent_acquires; /* packets by acquire scope */
  uint64_t system_acquires;
  uint64_t agent_releases; /* packets by release scope */
  uint64_t system_releases;
  uint64_t doorbells;      /* rings of compute and SDMA doorbells that the device saw; as on
                              hardware, it sees several rings between two looks as one */
  uint64_t signal_updates; /* stores to signal values */
  uint64_t interrupts;     /* events raised for signals */

  /* 1 with --incoherent. 0: the device keeps no caches, and the following fields are 0. A line held
   * in the L1 of two compute units counts twice. */
  uint64_t lines_counted;
  uint64_t vector_l1_lines_invalidated; /* by acquires of packets; lines of 64 bytes */
  uint64_t scalar_l1_lines_invalidated;
  uint64_t
      l2_lines_invalidated; /* by acquires at system scope; clean parts of lines of 128 bytes */
  uint64_t l2_lines_written_back; /* by releases at system scope */
};
typedef int (*uptempo_vgpu_device_t)(struct uptempo_vgpu_device_counts* counts);

/* "uptempo_vgpu_copy_engine": what one SDMA engine has copied, counted before the device sends the
 * copy's completion signal. Engines count from 0 in KFD's order: those for the host link first,
 * then those for XGMI links; those of a second GPU follow the last of the first. -1: this process
 * has no device, or the device no such engine. */
struct uptempo_vgpu_copy_engine_counts {
  uint64_t copies; /* packets that copy; the runtime divides a large copy into several */
  uint64_t bytes;
};
typedef int (*uptempo_vgpu_copy_engine_t)(uint32_t engine,
                                          struct uptempo_vgpu_copy_engine_counts* counts);
/* "uptempo_vgpu_bar": the host's accesses to device memory and HDP registers. -1: this process has no
 * device, or --bar lazy is off. */
struct uptempo_vgpu_bar_counts {
  uint64_t host_reads_of_device_memory; /* instructions and system calls; not those that also store,
                                           of rings too */
  uint64_t hdp_flushes;                 /* stores to HDP_MEM_FLUSH_CNTL */
};
typedef int (*uptempo_vgpu_bar_t)(struct uptempo_vgpu_bar_counts* counts);

/* "uptempo_vgpu_findings": what the fence checker has found. The checker judges a dispatch
 * before the device sends its completion signal, so everything that a wait has waited for is
 * counted. It judges later loads and stores of the host when the device next does something. It
 * counts `unreleased` when memory is unmapped. -1: this process has no device, or --check fences
 * is off. */
struct uptempo_vgpu_finding_counts {
  uint64_t unordered;  /* two accesses without order between them */
  uint64_t stale;      /* ordered, but a fence between them is too narrow */
  uint64_t unreleased; /* announced to the host, never released to system scope */
};
typedef int (*uptempo_vgpu_findings_t)(struct uptempo_vgpu_finding_counts* counts);

/* "uptempo_vgpu_holdings": what the driver holds for this process. A test compares two moments,
 * for example after hsa_shut_down. -1: this process has no device. */
struct uptempo_vgpu_holding_counts {
  uint64_t queues;        /* compute and SDMA */
  uint64_t signal_events; /* a process has at most 4,095 */
  uint64_t other_events;
  uint64_t buffers;       /* of all kinds of memory */
  uint64_t vram_bytes;    /* device memory */
  uint64_t gtt_bytes;     /* the driver's host memory */
  uint64_t userptr_bytes; /* the program's host memory; ROCT puts all of ROCr's allocations there */
};
typedef int (*uptempo_vgpu_holdings_t)(struct uptempo_vgpu_holding_counts* counts);

/* "uptempo_vgpu_injected": what a rule of --inject has done; rules count from 0. -1: this process has
 * no device, or no such rule. */
struct uptempo_vgpu_injection_counts {
  uint64_t matched;  /* events that the rule's place and filters describe */
  uint64_t injected; /* of these, those to which it applied */
};
typedef int (*uptempo_vgpu_injected_t)(uint32_t rule, struct uptempo_vgpu_injection_counts* counts);

/* "uptempo_vgpu_queue": the number of a queue in traces and findings. Queues are numbered in
 * order of creation, the runtime's own included. `ring` is hsa_queue_t::base_address of a live
 * queue. -1: this process has no such queue on the device. */
typedef int (*uptempo_vgpu_queue_t)(const void* ring, uint32_t* number);

/* "uptempo_vgpu_reset_gpu": resets a GPU, as the kernel driver does after a hang: for all processes
 * of the machine (--join). Each process's queues on the GPU stop for good, and its HW_EXCEPTION
 * events are set. A process that opens the device later has a working GPU. Returns when this
 * process's queues have stopped. `index` counts from 0. -1: this process has no device, or the
 * machine no such GPU. */
typedef int (*uptempo_vgpu_reset_gpu_t)(uint32_t index);

/* "uptempo_vgpu_report": writes a hang report to a file descriptor, as SIGQUIT and --watchdog do to
 * stderr: the queues of this process, what they wait for, who would end the wait, and the resident
 * waves. The program and the device continue. Do not call it in a signal handler. Cost: some
 * milliseconds, or a few seconds if the device does not answer. -1: this process has no device, or
 * the descriptor cannot be written. */
typedef int (*uptempo_vgpu_report_t)(int descriptor);

#endif
