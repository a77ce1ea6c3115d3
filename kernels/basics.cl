// General kernels for tests, tools and samples in which the dispatch matters and the arithmetic
// does not.
#pragma OPENCL EXTENSION cl_khr_global_int32_base_atomics : enable

// Does nothing: measures the cost of the dispatch.
kernel void empty(void) {}

kernel void fill(global uint* out, uint value) { out[get_global_id(0)] = value; }

// out[i] = first + i * step: a pattern that reveals a misplaced element.
kernel void iota(global uint* out, uint first, uint step) {
  out[get_global_id(0)] = first + (uint)get_global_id(0) * step;
}

kernel void copy(global uint* out, global const uint* in) {
  out[get_global_id(0)] = in[get_global_id(0)];
}

kernel void vector_add(global float* out, global const float* a, global const float* b,
                       uint length) {
  const size_t i = get_global_id(0);
  if (i < length) out[i] = a[i] + b[i];
}

// Always two roundings, so that results equal the same expression on the host bit for bit.
#pragma OPENCL FP_CONTRACT OFF
kernel void saxpy(global float* y, global const float* x, float a, uint length) {
  const size_t i = get_global_id(0);
  if (i < length) y[i] = a * x[i] + y[i];
}

// A link of a chain: n launches in order apply 3 x + addend to x n times. Any swap or loss changes
// the result.
kernel void chain_increment(global uint* values, uint addend) {
  const size_t i = get_global_id(0);
  values[i] = values[i] * 3u + addend;
}

// Each work-item adds one: the final count is the number of work-items that ran.
kernel void count_work_items(global uint* counter) { atomic_inc(counter); }

// Sums each workgroup's keys through LDS and adds the result to *total. For workgroups of up to 256
// work-items.
kernel void reduce_lds(global uint* total, global const uint* in, uint length) {
  local uint partial[256];
  const uint item = get_local_id(0);
  const size_t i = get_global_id(0);
  partial[item] = i < length ? in[i] : 0u;
  for (uint width = get_local_size(0); width > 1;) {
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
kernel void tally(global uint* tallies, uint dispatch) {
  if (get_local_id(0) == 0) atomic_inc(&tallies[dispatch]);
}
