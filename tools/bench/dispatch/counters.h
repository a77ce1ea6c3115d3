/* What code costs, counted from outside: a shared library of its own (counters.cpp), preloaded into the run that counts and named in HSA_TOOLS_LIB, so that
 * the run that is timed has nothing of it.
 *
 * Allocations and system calls are tools/support/cost_meter.hpp's. HSA calls are those that arrive at ROCr's table of functions, which is where the library puts
 * itself as any tool does; what ROCr calls within itself does not pass there.
 *
 * Thread safety: counts are those of the calling thread; one measurement of the process at a time. */
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

/* Runs work(argument) and adds what it cost to *counts. */
typedef void (*uptempo_count_t)(void (*work)(void*), void* argument, struct uptempo_counts* counts);
#define UPTEMPO_COUNT_SYMBOL "uptempo_dispatch_bench_count"

#ifdef __cplusplus
}
#endif

#endif
