// A kernel that calls the host: rocm-device-libs' entry for services such as printf.
ulong2 __ockl_hostcall_preview(uint service, ulong a, ulong b, ulong c, ulong d, ulong e, ulong f,
                               ulong g, ulong h);
kernel void host_call(global ulong* out, uint n) {
  if (n == 7) out[0] = __ockl_hostcall_preview(2, 1, 2, 3, 4, 5, 6, 7, 8).x;
}
