// A kernel that reads its packet late: it waits until *gate is not zero, at most `polls` times, and
// then looks at its own packet through the dispatch pointer.
//
// out[0] = 1 once it has started. out[1] = the packet's grid_size_x. out[2] = 1 if the packet's
// kernarg address is that of this dispatch, else 2. Launch one workgroup.
kernel void late_packet(global volatile uint* gate, uint polls, global volatile uint* out) {
  if (get_local_id(0) != 0) return;
  __opencl_atomic_store((global volatile atomic_uint*)out, 1u, memory_order_release,
                        memory_scope_all_svm_devices);
  uint seen = 0;
  for (uint i = 0; i < polls && seen == 0; ++i) {
    seen = __opencl_atomic_load((global volatile atomic_uint*)gate, memory_order_acquire,
                                memory_scope_all_svm_devices);
  }
  // Through generic pointers to volatile: the compiler moves other loads of the packet before the
  // loop, since it takes packets for constant.
  const volatile uint* const packet = (const volatile uint*)(ulong)__builtin_amdgcn_dispatch_ptr();
  // hsa_kernel_dispatch_packet_t: grid_size_x at 12, kernarg_address at 40
  out[1] = packet[3];
  const ulong found = packet[10] | (ulong)packet[11] << 32;
  out[2] = found == (ulong)__builtin_amdgcn_kernarg_segment_ptr() ? 1u : 2u;
}
