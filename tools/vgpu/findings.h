/* What the fence checker of the virtual GPU has found so far, for programs and their tests.
 *
 * The function is the preloaded library's: ask for it with dlsym(RTLD_DEFAULT, "uptempo_vgpu_findings"). Null: the program does not
 * run on the virtual GPU. A dispatch is judged before its completion signal is sent, so what a wait has waited for is counted; what the host
 * has loaded and stored since is judged when the device does something next. `unreleased` is counted when memory is unmapped.
 *
 * Thread safety: any thread. */
#ifndef UPTEMPO_VGPU_FINDINGS_H
#define UPTEMPO_VGPU_FINDINGS_H

#include <stdint.h>

struct uptempo_vgpu_finding_counts {
  uint64_t unordered;  /* two accesses without order between them */
  uint64_t stale;      /* ordered, but a fence between them is too narrow */
  uint64_t unreleased; /* announced to the host and never released to the system */
};

/* 0 and *counts filled, or -1: this process has no device, or fences are not checked (--check fences). */
typedef int (*uptempo_vgpu_findings_t)(struct uptempo_vgpu_finding_counts* counts);

#endif
