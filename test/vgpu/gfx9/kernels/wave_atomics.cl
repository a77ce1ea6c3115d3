// Atomics that LLVM combines into one per wave (CMakeLists.txt has the option). It computes each
// lane's part with DPP and whole-wave mode.
kernel void sums(global const uint* in, global uint* out, global uint* total) {
  const size_t i = get_global_id(0);
  out[i] = atomic_add(total, in[i]);
}
// Only some lanes take part.
kernel void sums_of_odd(global const uint* in, global uint* out, global uint* total) {
  const size_t i = get_global_id(0);
  if (in[i] & 1) out[i] = atomic_add(total, in[i]);
}
kernel void extremes(global const int* in, global int* out, global int* extreme) {
  const size_t i = get_global_id(0);
  out[i] = atomic_max(&extreme[0], in[i]);
  atomic_min(&extreme[1], in[i]);
}
kernel void local_masks(global const uint* in, global uint* out) {
  local uint all, any;
  if (get_local_id(0) == 0) all = ~0u, any = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  const uint v = in[get_global_id(0)];
  atomic_and(&all, v | 0x0f0f0f0f);
  if (v & 2) atomic_or(&any, v);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (get_local_id(0) == 0) out[2 * get_group_id(0)] = all, out[2 * get_group_id(0) + 1] = any;
}
