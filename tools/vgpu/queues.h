/* Which number traces and the fence checker's findings give to a queue of this program: "queue" in their lines. Queues are numbered in the order of
 * creation, the runtime's own among them, so a program cannot count along.
 *
 * The function is the preloaded library's: ask for it with dlsym(RTLD_DEFAULT, "uptempo_vgpu_queue"). Null: the program does not run on the
 * virtual GPU.
 *
 * Thread safety: any thread. */
#ifndef UPTEMPO_VGPU_QUEUES_H
#define UPTEMPO_VGPU_QUEUES_H

#include <stdint.h>

/* `ring`: hsa_queue_t::base_address of a queue that has not been destroyed. 0 and *number filled, or -1: this process has no such queue on the device. */
typedef int (*uptempo_vgpu_queue_t)(const void* ring, uint32_t* number);

#endif
