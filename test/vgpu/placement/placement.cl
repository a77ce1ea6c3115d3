// Kernels that report where their waves run. HW_ID is hardware register 4, XCC_ID (gfx942) is 20:
// id [5:0], offset [10:6], width - 1 [15:11] of the operand.
#define HW_ID __builtin_amdgcn_s_getreg(4 | 0 << 6 | 31 << 11)
#ifdef __gfx942__
#define XCC_ID __builtin_amdgcn_s_getreg(20 | 0 << 6 | 31 << 11)
#else
#define XCC_ID 0
#endif

// Each wave stores HW_ID and XCC_ID at its number in the grid. `groups` waits until that many
// workgroups have arrived, so all of them are resident at once. 0: none waits.
kernel void where(global uint2* ids, volatile global atomic_uint* arrived, uint groups) {
  const uint waves = (get_local_size(0) + 63) / 64;
  const uint wave = get_local_id(0) / 64;
  if (get_local_id(0) % 64 == 0) ids[get_group_id(0) * waves + wave] = (uint2)(HW_ID, XCC_ID);
  if (groups == 0) return;
  barrier(CLK_GLOBAL_MEM_FENCE);
  if (get_local_id(0) != 0) return;
  atomic_fetch_add_explicit(arrived, 1u, memory_order_relaxed, memory_scope_all_svm_devices);
  while (atomic_load_explicit(arrived, memory_order_relaxed, memory_scope_all_svm_devices) < groups)
    __builtin_amdgcn_s_sleep(1);
}

// Each workgroup stores `name` at the next place of `order`.
kernel void sign(global uint* order, volatile global atomic_uint* count, uint name) {
  if (get_local_id(0) != 0) return;
  order[atomic_fetch_add_explicit(count, 1u, memory_order_relaxed, memory_scope_all_svm_devices)] =
      name;
}
