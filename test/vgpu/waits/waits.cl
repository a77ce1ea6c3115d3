// Kernels whose results a host waits for in several ways.

kernel void iota(global uint* out, uint first) { out[get_global_id(0)] = first + get_global_id(0); }

kernel void copy(global uint* out, const global uint* in) {
  out[get_global_id(0)] = in[get_global_id(0)];
}

// One work-item. Announces the data by a flag in memory instead of a signal.
kernel void produce(global uint* out, volatile global atomic_uint* flag, uint value) {
  *out = value;
  atomic_store_explicit(flag, value, memory_order_release, memory_scope_all_svm_devices);
}

// Ends when `flag` is not 0.
kernel void wait_for(volatile global atomic_uint* flag) {
  while (atomic_load_explicit(flag, memory_order_acquire, memory_scope_all_svm_devices) == 0)
    __builtin_amdgcn_s_sleep(1);
}
