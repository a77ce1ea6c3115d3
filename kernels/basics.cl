// General kernels for tests, tools and samples in which the dispatch matters and the arithmetic
// does not.
#include "geometry.h"

#pragma OPENCL EXTENSION cl_khr_global_int32_base_atomics : enable

// Does nothing: measures the cost of the dispatch.
KERNEL void empty(void) {}

KERNEL void fill(global uint* out, uint value) { out[global_id()] = value; }

// out[i] = first + i * step: a pattern that reveals a misplaced element.
KERNEL void iota(global uint* out, uint first, uint step) {
  out[global_id()] = first + global_id() * step;
}

KERNEL void copy(global uint* out, global const uint* in) { out[global_id()] = in[global_id()]; }

KERNEL void vector_add(global float* out, global const float* a, global const float* b,
                       uint length) {
  const uint i = global_id();
  if (i < length) out[i] = a[i] + b[i];
}

// Always two roundings, so that results equal the same expression on the host bit for bit.
#pragma OPENCL FP_CONTRACT OFF
KERNEL void saxpy(global float* y, global const float* x, float a, uint length) {
  const uint i = global_id();
  if (i < length) y[i] = a * x[i] + y[i];
}

// A link of a chain: n launches in order apply 3 x + addend to x n times. Any swap or loss changes
// the result.
KERNEL void chain_increment(global uint* values, uint addend) {
  const uint i = global_id();
  values[i] = values[i] * 3u + addend;
}

// Each work-item adds one: the final count is the number of work-items that ran.
KERNEL void count_work_items(global uint* counter) { atomic_inc(counter); }

// Sums each workgroup's keys through LDS and adds the result to *total. For workgroups of up to 256
// work-items.
KERNEL void reduce_lds(global uint* total, global const uint* in, uint length) {
  local uint partial[256];
  const uint item = get_local_id(0);
  const uint i = global_id();
  partial[item] = i < length ? in[i] : 0u;
  for (uint width = local_size(); width > 1;) {
    const uint half_width = (width + 1) / 2;
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint other = item + half_width < width ? partial[item + half_width] : 0u;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < half_width) partial[item] += other;
    width = half_width;
  }
  if (item == 0) atomic_add(total, partial[0]);
}

// Counts executions per dispatch: at the end, tallies[dispatch] is the number of workgroups of that
// dispatch that ran.
KERNEL void tally(global uint* tallies, uint dispatch) {
  if (get_local_id(0) == 0) atomic_inc(&tallies[dispatch]);
}
