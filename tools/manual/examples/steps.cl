// Kernels of the examples.
kernel void advance(global uint* values, uint addend) {
  const uint i = get_global_id(0);
  values[i] = 3 * values[i] + addend;
}

kernel void add(global uint* sums, global const uint* a, global const uint* b) {
  const uint i = get_global_id(0);
  sums[i] = a[i] + b[i];
}

//! [wait]
kernel void wait_until_set(global volatile uint* flag) {
  while (*flag == 0) {
  }
}
//! [wait]

//! [race]
kernel void reverse(global uint* values) {
  local uint copy[256];
  const uint i = get_local_id(0);
  copy[i] = values[i];
  values[i] = copy[255 - i];  // mistake: no barrier(CLK_LOCAL_MEM_FENCE) before it
}
//! [race]

kernel void spread(global uint* next, global const uint* now) {
  const uint i = get_global_id(0), last = get_global_size(0) - 1;
  next[i] = now[i == 0 ? last : i - 1] + now[i == last ? 0 : i + 1];
}
