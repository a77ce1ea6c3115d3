// Kernels that exercise the core as compiled code does. Each is small, and the CPU computes its
// result in a few lines.
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable

kernel void vector_add(global const uint* a, global const uint* b, global uint* out, uint count) {
  const uint i = get_global_id(0);
  if (i < count) out[i] = a[i] + b[i];
}

kernel void float_axpy(global const float* x, global float* y, float a) {
  const uint i = get_global_id(0);
  y[i] = fma(a, x[i], y[i]);
}

// Divergent: each work-item loops as often as its number says.
kernel void collatz(global const uint* in, global uint* steps) {
  const uint i = get_global_id(0);
  uint n = in[i], count = 0;
  while (n != 1) {
    if (n & 1)
      n = 3 * n + 1;
    else
      n >>= 1;
    if (++count == 500) break;
  }
  steps[i] = count;
}

kernel void reduce(global const uint* in, global uint* out, local uint* partial) {
  const uint l = get_local_id(0);
  partial[l] = in[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint stride = get_local_size(0) / 2; stride > 0; stride /= 2) {
    if (l < stride) partial[l] += partial[l + stride];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (l == 0) out[get_group_id(0)] = partial[0];
}

kernel void histogram(global const uint* in, global uint* bins, global ulong* sum,
                      global int* extremes) {
  const uint value = in[get_global_id(0)];
  atomic_inc(&bins[value % 16]);
  atom_add(sum, (ulong)value);
  atomic_min(&extremes[0], (int)value);
  atomic_max(&extremes[1], (int)value);
  uint expected = bins[16], seen;
  while ((seen = atomic_cmpxchg(&bins[16], expected, expected + 2)) != expected) expected = seen;
}

// An array too large, and indexed too irregularly, for registers.
kernel void private_array(global const uint* in, global uint* out, uint rounds) {
  const uint i = get_global_id(0);
  uint table[61];
  for (uint k = 0; k < 61; ++k) table[k] = in[i] + k * k;
  for (uint r = 0; r < rounds; ++r) {
    const uint from = (in[i] + r * 7) % 61, to = (i + r * 13) % 61;
    table[to] ^= table[from] + r;
  }
  uint result = 0;
  for (uint k = 0; k < 61; ++k) result = result * 31 + table[k];
  out[i] = result;
}

kernel void private_bytes(global const uchar* in, global uint* out) {
  const uint i = get_global_id(0);
  uchar text[40];
  for (uint k = 0; k < 40; ++k) text[(k * 7 + in[i]) % 40] = (uchar)(in[i] * k);
  uint result = 0;
  for (uint k = 0; k < 40; ++k) result = result * 17 + text[k];
  out[i] = result;
}

kernel void long_math(global const ulong* a, global const ulong* b, global ulong* out) {
  const uint i = get_global_id(0);
  const ulong x = a[i], y = b[i] | 1;
  out[8 * i + 0] = x + y;
  out[8 * i + 1] = x * y;
  out[8 * i + 2] = x / y;
  out[8 * i + 3] = x % y;
  out[8 * i + 4] = (ulong)((long)x / (long)y);
  out[8 * i + 5] = x >> (y & 63);
  out[8 * i + 6] = mul_hi(x, y);
  out[8 * i + 7] = clz(x) + popcount(y);
}

kernel void int_division(global const int* a, global const int* b, global int* out) {
  const uint i = get_global_id(0);
  out[4 * i + 0] = a[i] / b[i];
  out[4 * i + 1] = a[i] % b[i];
  out[4 * i + 2] = (int)((uint)a[i] / (uint)b[i]);
  out[4 * i + 3] = (int)((uint)a[i] % (uint)b[i]);
}

kernel void float_division(global const float* a, global const float* b, global float* out) {
  const uint i = get_global_id(0);
  out[i] = a[i] / b[i];
}

kernel void double_math(global const double* a, global const double* b, global double* out) {
  const uint i = get_global_id(0);
  out[4 * i + 0] = a[i] + b[i];
  out[4 * i + 1] = a[i] * b[i];
  out[4 * i + 2] = a[i] / b[i];
  out[4 * i + 3] = fma(a[i], b[i], a[i]);
}

kernel void sub_dword(global const char* c, global const ushort* s, global char* c_out,
                      global short* s_out) {
  const uint i = get_global_id(0);
  c_out[i] = (char)(c[i] - s[i]);
  s_out[i] = (short)(c[i] * 3 + s[i]);
}

kernel void wide(global const uint4* in, global uint4* out, global const uint2* pairs,
                 global uint* triples) {
  const uint i = get_global_id(0);
  out[i] = in[i].wzyx + (uint4)(pairs[i].x, pairs[i].y, i, 7);
  vstore3(in[i].xyz, i, triples);
}

kernel void ids(global uint* out) {
  const uint linear =
      (get_global_id(2) * get_global_size(1) + get_global_id(1)) * get_global_size(0) +
      get_global_id(0);
  global uint* row = out + 12 * linear;
  for (uint d = 0; d < 3; ++d) {
    row[d] = get_local_id(d);
    row[3 + d] = get_group_id(d);
    row[6 + d] = get_num_groups(d);
    row[9 + d] = get_local_size(d);
  }
}

// A real call: the compiler must not inline it.
__attribute__((noinline)) uint mix(uint a, uint b) {
  return (a ^ (b << 3)) * 2654435761u + (b >> 5);
}
__attribute__((noinline)) uint twice(uint a, uint b) { return mix(mix(a, b), mix(b, a)); }
kernel void calls(global const uint* in, global uint* out) {
  const uint i = get_global_id(0);
  out[i] = in[i] & 1 ? twice(in[i], i) : mix(in[i], i);
}

// Accesses LDS and private memory through generic pointers: flat instructions with apertures.
uint sum_generic(const uint* p, uint n) {
  uint sum = 0;
  for (uint k = 0; k < n; ++k) sum += p[k];
  return sum;
}
__attribute__((noinline)) uint sum_of(const uint* p, uint n) { return sum_generic(p, n); }
kernel void generic_pointers(global const uint* in, global uint* out) {
  local uint shared[64];
  uint own[8];
  const uint i = get_global_id(0), l = get_local_id(0);
  shared[l] = in[i];
  for (uint k = 0; k < 8; ++k) own[k] = in[i] * k;
  barrier(CLK_LOCAL_MEM_FENCE);
  out[3 * i + 0] = sum_of(shared, 64);
  out[3 * i + 1] = sum_of(own, 8);
  out[3 * i + 2] = sum_of((const uint*)(in + i / 64 * 64), 64);
}

kernel void local_atomics(global const uint* in, global uint* out) {
  local uint bins[32];
  const uint l = get_local_id(0);
  if (l < 32) bins[l] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  atomic_add(&bins[in[get_global_id(0)] % 32], l);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (l < 32) out[get_group_id(0) * 32 + l] = bins[l];
}

// Waits for another workgroup. It only progresses if workgroups are preempted.
kernel void spin(global volatile uint* flags, global uint* out) {
  const uint group = get_group_id(0);
  if (get_local_id(0) == 0) {
    if (group == 0) {
      while (atomic_add(&flags[0], 0) == 0) {
      }
      out[0] = flags[1];
    } else {
      flags[1] = 42;
      atomic_xchg(&flags[0], 1);
    }
  }
}

kernel void scatter(global const uint* index, global uint* out) {
  const uint i = get_global_id(0);
  out[index[i]] = i;
}

// A dynamically indexed vector in registers: VGPR indexing.
kernel void indexed(global const uint* in, global uint* out, uint at) {
  const uint i = get_global_id(0);
  uint16 v = vload16(i, in);
  v[at & 15] = v[(at + 5) & 15] + 1;
  vstore16(v, i, out);
}
