/* Counts what code costs. A shared library (counters.cpp), preloaded into the counting run and
 * named in HSA_TOOLS_LIB; the timed run does not load it.
 *
 * Allocations and system calls are counted by tools/support/cost_meter.hpp. HSA calls are counted
 * in ROCr's table of functions, where the library installs itself as any tool does; calls inside
 * ROCr are not counted.
 *
 * Thread safety: counts are the calling thread's; one measurement at a time in a process. */
#ifndef UPTEMPO_DISPATCH_BENCH_COUNTERS_H
#define UPTEMPO_DISPATCH_BENCH_COUNTERS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct uptempo_counts {
  uint64_t allocations;
  uint64_t system_calls;
  uint64_t hsa_calls;
};

/* Runs work(argument) and adds its cost to *counts. */
typedef void (*uptempo_count_t)(void (*work)(void*), void* argument, struct uptempo_counts* counts);
#define UPTEMPO_COUNT_SYMBOL "uptempo_dispatch_bench_count"

#ifdef __cplusplus
}
#endif

#endif
