// Kernels that report the values a dispatch passes to them, or that occupy the device for a known
// time.
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

// Spins for `iterations` rounds of dependent arithmetic, then stores the result and, last, `flag`.
// The argument bounds it: no input makes it run forever.
kernel void spin(global volatile uint* out, uint iterations, uint flag) {
  uint x = (uint)get_global_id(0) + 1u;
  for (uint i = 0; i < iterations; ++i) {
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
  }
  if (get_global_id(0) == 0) {
    out[1] = x;
    out[0] = flag;
  }
}

// Polls until *gate is not zero, at most `rounds` times. out[0] = 1 if it opened, 2 if not.
kernel void wait_for_gate(global volatile uint* gate, uint rounds, global uint* out) {
  uint seen = 0;
  for (uint i = 0; i < rounds && seen == 0; ++i) {
    seen = __opencl_atomic_load((global volatile atomic_uint*)gate, memory_order_acquire,
                                memory_scope_all_svm_devices);
  }
  out[0] = seen != 0 ? 1u : 2u;
}

// One side of a handshake. Sets *mine to `round`, then polls until *theirs is `round`, at most
// `polls` times. *met = 1 if it was, 2 if not. Two launches with exchanged flags, in one queue or
// two, prove overlap: both report 1 if and only if each began before the other ended. A single 1
// proves nothing, because the partner may have ended long ago. Flags are never reset: use another
// number for each round.
kernel void meet(global volatile uint* mine, global volatile uint* theirs, uint round, uint polls,
                 global uint* met) {
  __opencl_atomic_store((global volatile atomic_uint*)mine, round, memory_order_release,
                        memory_scope_all_svm_devices);
  bool seen = false;
  for (uint i = 0; i < polls && !seen; ++i) {
    seen = __opencl_atomic_load((global volatile atomic_uint*)theirs, memory_order_acquire,
                                memory_scope_all_svm_devices) == round;
  }
  *met = seen ? 1u : 2u;
}

// A step of a calculation that is correct only if each input was complete and none was overwritten
// too early. Odd factors lose no information. Elements move to the opposite end, so work-items read
// what others have written.
kernel void combine(global uint* out, global const uint* a, global const uint* b, uint addend) {
  const size_t i = get_global_id(0), mirrored = get_global_size(0) - 1 - i;
  out[i] = out[i] * 7u + a[mirrored] * 3u + b[i] * 5u + addend;
}

typedef struct {
  uint first;
  uchar second;
  ulong third;
} ProbeStruct;

// One argument of each size and alignment class, written back widened to 64 bits.
kernel void probe_arguments(global ulong* out, char c, short s, int i, long l, uchar uc, float f,
                            double d, float4 v, ProbeStruct p, global const uint* in) {
  if (get_global_id(0) != 0) return;
  out[0] = (ulong)(long)c;
  out[1] = (ulong)(long)s;
  out[2] = (ulong)(long)i;
  out[3] = (ulong)l;
  out[4] = uc;
  out[5] = as_uint(f);
  out[6] = as_ulong(d);
  out[7] = as_uint(v.x);
  out[8] = as_uint(v.w);
  out[9] = p.first;
  out[10] = p.second;
  out[11] = p.third;
  out[12] = in[0];
}

// Geometry according to the hidden arguments and the packet: one record of 16 words, by work-item
// 0.
kernel void probe_geometry(global uint* out) {
  if (get_global_linear_id() != 0) return;
  for (uint d = 0; d < 3; ++d) {
    out[d] = (uint)get_global_size(d);
    out[3 + d] = (uint)get_local_size(d);
    out[6 + d] = (uint)get_num_groups(d);
    out[9 + d] = (uint)get_global_offset(d);
    out[12 + d] = (uint)get_enqueued_local_size(d);
  }
  out[15] = get_work_dim();
}

// A private array that is indexed at run time is in scratch memory: launching this kernel grows the
// queue's scratch.
kernel void probe_private(global uint* out, uint rotate) {
  uint values[96];
  const uint item = (uint)get_global_id(0);
  for (uint i = 0; i < 96; ++i) values[i] = item * 97u + i;
  uint sum = 0;
  for (uint i = 0; i < 96; ++i) {
    const uint j = (i * 7u + rotate) % 96u;
    values[j] ^= sum;
    sum += values[(j + rotate) % 96u];
  }
  out[item] = sum;
}
