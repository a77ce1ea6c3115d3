// The position of a work-item in the grid. Kernels of this folder use it instead of
// get_global_id(0): the engine's grids have no offset, and a kernel with WORKGROUP reads no memory
// to find its position.
//
// WORKGROUP, if defined before this file: the number of work-items in each workgroup. Then the
// kernels accept no other size. Otherwise they accept any, and read it from hidden arguments.
#pragma once

#if defined(WORKGROUP)
#define KERNEL kernel __attribute__((reqd_work_group_size(WORKGROUP, 1, 1)))
static inline uint global_id(void) { return get_group_id(0) * WORKGROUP + get_local_id(0); }
static inline uint local_size(void) { return WORKGROUP; }
#else
#define KERNEL kernel
static inline uint global_id(void) {
  return get_group_id(0) * get_enqueued_local_size(0) + get_local_id(0);
}
static inline uint local_size(void) { return get_local_size(0); }
#endif
