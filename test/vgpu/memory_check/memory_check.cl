kernel void store(global uint* out, uint offset) {
  out[get_global_id(0) + offset] = 1;  // line 2
}

kernel void copy(global const uint* in, global uint* out) {
  out[get_global_id(0)] = in[get_global_id(0)];  // line 6
}

// Runs until the host stores to the first flag, and sets the second.
kernel void hold(global uint* data, global volatile atomic_uint* flags) {
  atomic_store_explicit(flags + 1, 1, memory_order_relaxed, memory_scope_all_svm_devices);
  while (atomic_load_explicit(flags, memory_order_relaxed, memory_scope_all_svm_devices) == 0)
    ;
  data[get_global_id(0)] = 1;
}
