// Kernels that touch memory of their own GPU, of the host and of a peer.

kernel void fill(global uint* out, uint seed) {
  const uint i = get_global_id(0);
  out[i] = i * 2654435761u + seed;
}

kernel void add(global uint* sum, const global uint* one, const global uint* other) {
  const uint i = get_global_id(0);
  sum[i] = one[i] + other[i];
}

// Ends when `flag` is not 0.
kernel void wait_for(volatile global atomic_uint* flag) {
  if (get_global_id(0) != 0) return;
  while (atomic_load_explicit(flag, memory_order_acquire, memory_scope_all_svm_devices) == 0)
    __builtin_amdgcn_s_sleep(1);
}

// Each work item adds 1.
kernel void count(volatile global atomic_uint* counter) {
  atomic_fetch_add_explicit(counter, 1u, memory_order_relaxed, memory_scope_all_svm_devices);
}

kernel void ring(volatile global ulong* doorbell, ulong value) {
  if (get_global_id(0) == 0) *doorbell = value;
}

kernel void trap(void) { __builtin_trap(); }
