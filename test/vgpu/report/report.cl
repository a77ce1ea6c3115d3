// Kernels that run until the host sets a word.

// Each work-item spins, then stores its number plus 1.
kernel void spin(global atomic_uint* release, global uint* out) {
  while (atomic_load_explicit(release, memory_order_relaxed, memory_scope_all_svm_devices) == 0)
    __builtin_amdgcn_s_sleep(1);
  out[get_global_id(0)] = (uint)get_global_id(0) + 1;
}

// The second wave spins before the barrier, at which the others wait for it.
kernel void late_wave(global atomic_uint* release, global uint* out) {
  if (get_local_id(0) / 64 == 1)
    while (atomic_load_explicit(release, memory_order_relaxed, memory_scope_all_svm_devices) == 0)
      __builtin_amdgcn_s_sleep(1);
  barrier(CLK_GLOBAL_MEM_FENCE);
  out[get_global_id(0)] = (uint)get_global_id(0) + 1;
}
