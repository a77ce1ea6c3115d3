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

// Loops that end under different conditions on the word.
#define WORD(word) atomic_load_explicit(word, memory_order_relaxed, memory_scope_all_svm_devices)

kernel void until_7(global atomic_uint* word, global uint* out) {
  while (WORD(word) != 7) __builtin_amdgcn_s_sleep(1);
  out[get_global_id(0)] = (uint)get_global_id(0) + 1;
}

// The operand is in a register: 96 for workgroups of 96.
kernel void until_size(global atomic_uint* word, global uint* out) {
  while (WORD(word) < get_local_size(0))
    ;
  out[get_global_id(0)] = (uint)get_global_id(0) + 1;
}

// Each lane waits for another value.
kernel void until_lane(global atomic_uint* word, global uint* out) {
  while (WORD(word) <= get_local_id(0) + 100)
    ;
  out[get_global_id(0)] = (uint)get_global_id(0) + 1;
}

kernel void until_negative(global atomic_int* word, global uint* out) {
  while (WORD(word) > -5) __builtin_amdgcn_s_sleep(1);
  out[get_global_id(0)] = (uint)get_global_id(0) + 1;
}

kernel void until_bit(global atomic_uint* word, global uint* out) {
  while ((WORD(word) & 0x40) == 0) __builtin_amdgcn_s_sleep(1);
  out[get_global_id(0)] = (uint)get_global_id(0) + 1;
}

kernel void until_wide(global atomic_ulong* word, global uint* out) {
  while (WORD(word) < 0x900000000ul) __builtin_amdgcn_s_sleep(1);
  out[get_global_id(0)] = (uint)get_global_id(0) + 1;
}

kernel void until_taken(global atomic_uint* word, global uint* out) {
  for (uint free = 3;
       !atomic_compare_exchange_strong_explicit(word, &free, 3u, memory_order_relaxed,
                                                memory_order_relaxed, memory_scope_all_svm_devices);
       free = 3)
    __builtin_amdgcn_s_sleep(1);
  out[get_global_id(0)] = (uint)get_global_id(0) + 1;
}
