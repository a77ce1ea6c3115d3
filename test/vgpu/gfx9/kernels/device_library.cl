// AMD's device libraries as test programs. They use the instructions that no C expression reaches
// (DPP, lane reads and writes, reciprocals, v_exp, v_log, v_sin, v_ldexp, v_frexp, v_trig_preop,
// v_cmp_class), and their results are defined independently of those instructions.
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_subgroups : enable

#define UNARY(T, function)                                                          \
  kernel void T##_##function(global const T* a, global const T* b, global T* out) { \
    const size_t i = get_global_id(0);                                              \
    (void)b;                                                                        \
    out[i] = function(a[i]);                                                        \
  }
#define BINARY(T, function)                                                         \
  kernel void T##_##function(global const T* a, global const T* b, global T* out) { \
    const size_t i = get_global_id(0);                                              \
    out[i] = function(a[i], b[i]);                                                  \
  }
#define FLOAT(function, error) UNARY(float, function)
#define FLOAT2(function, error) BINARY(float, function)
#define DOUBLE(function, error) UNARY(double, function)
#define DOUBLE2(function, error) BINARY(double, function)
#include "device_library.inc"

kernel void float_divide(global const float* a, global const float* b, global float* out) {
  const size_t i = get_global_id(0);
  out[i] = a[i] / b[i];
}
kernel void double_divide(global const double* a, global const double* b, global double* out) {
  const size_t i = get_global_id(0);
  out[i] = a[i] / b[i];
}
kernel void float_parts(global const float* a, global const int* by, global float* out,
                        global int* exponents) {
  const size_t i = get_global_id(0);
  int exponent;
  out[2 * i] = frexp(a[i], &exponent);
  out[2 * i + 1] = ldexp(a[i], by[i]);
  exponents[i] = exponent;
}
kernel void double_parts(global const double* a, global const int* by, global double* out,
                         global int* exponents) {
  const size_t i = get_global_id(0);
  int exponent;
  out[2 * i] = frexp(a[i], &exponent);
  out[2 * i + 1] = ldexp(a[i], by[i]);
  exponents[i] = exponent;
}
kernel void float_classes(global const float* a, global uint* out) {
  const size_t i = get_global_id(0);
  out[i] = (isnan(a[i]) != 0) | (isinf(a[i]) != 0) << 1 | (isnormal(a[i]) != 0) << 2 |
           (isfinite(a[i]) != 0) << 3 | (signbit(a[i]) != 0) << 4;
}

// Sums and extremes over the lanes of a wave. Ten rows of results.
#define LANES(T)                                               \
  kernel void lanes_##T(global const T* in, global T* out) {   \
    const size_t i = get_global_id(0), n = get_global_size(0); \
    const T v = in[i];                                         \
    out[i] = sub_group_reduce_add(v);                          \
    out[n + i] = sub_group_reduce_min(v);                      \
    out[2 * n + i] = sub_group_reduce_max(v);                  \
    out[3 * n + i] = sub_group_scan_inclusive_add(v);          \
    out[4 * n + i] = sub_group_scan_exclusive_add(v);          \
    out[5 * n + i] = sub_group_scan_inclusive_min(v);          \
    out[6 * n + i] = sub_group_scan_inclusive_max(v);          \
    out[7 * n + i] = sub_group_broadcast(v, 37);               \
    out[8 * n + i] = work_group_scan_inclusive_add(v);         \
    out[9 * n + i] = work_group_reduce_max(v);                 \
  }
LANES(int)
LANES(uint)
LANES(long)
LANES(ulong)
LANES(float)
LANES(double)

kernel void votes(global const uint* in, global uint* out) {
  const size_t i = get_global_id(0);
  out[3 * i] = sub_group_any(in[i] == 7) != 0;
  out[3 * i + 1] = sub_group_all(in[i] < 1000) != 0;
  out[3 * i + 2] = get_sub_group_local_id();
}

// Library functions below OpenCL's: the value of the lane at distance `offset`, and dot products.
// gfx900 has no dot product instructions, so the library computes them in plain arithmetic.
int __ockl_readuplane_i32(int value, int offset);
uint __ockl_activelane_u32(void);
int __ockl_sdot2(short2 a, short2 b, int c, bool saturates);
uint __ockl_udot2(ushort2 a, ushort2 b, uint c, bool saturates);
int __ockl_sdot4(char4 a, char4 b, int c, bool saturates);
uint __ockl_udot4(uchar4 a, uchar4 b, uint c, bool saturates);
int __ockl_sdot8(int a, int b, int c, bool saturates);
uint __ockl_udot8(uint a, uint b, uint c, bool saturates);
float __ockl_fdot2(half2 a, half2 b, float c, bool saturates);
// On targets with the instruction, the library's function sets the clamp bit and ignores
// `saturates`.
#ifdef __gfx900__
#define HALF_DOT(a, b, c, saturates) \
  ((saturates) ? clamp(__ockl_fdot2(a, b, c, false), 0.0f, 1.0f) : __ockl_fdot2(a, b, c, false))
#else
#define HALF_DOT __builtin_amdgcn_fdot2
#endif

kernel void shifted_lanes(global const int* in, global int* out) {
  const size_t i = get_global_id(0);
  out[4 * i] = __ockl_readuplane_i32(in[i], 1);
  out[4 * i + 1] = __ockl_readuplane_i32(in[i], 37);
  out[4 * i + 2] = __ockl_readuplane_i32(in[i], -5);
  out[4 * i + 3] = -1;
  if (in[i] & 1) out[4 * i + 3] = (int)__ockl_activelane_u32();
}
kernel void dots(global const uint* in, global uint* out) {
  const size_t i = get_global_id(0);
  const uint a = in[3 * i], b = in[3 * i + 1], c = in[3 * i + 2];
  global uint* row = out + 12 * i;
  row[0] = (uint)__ockl_sdot2(as_short2(a), as_short2(b), (int)c, false);
  row[1] = (uint)__ockl_sdot2(as_short2(a), as_short2(b), (int)c, true);
  row[2] = __ockl_udot2(as_ushort2(a), as_ushort2(b), c, false);
  row[3] = __ockl_udot2(as_ushort2(a), as_ushort2(b), c, true);
  row[4] = (uint)__ockl_sdot4(as_char4(a), as_char4(b), (int)c, false);
  row[5] = (uint)__ockl_sdot4(as_char4(a), as_char4(b), (int)c, true);
  row[6] = __ockl_udot4(as_uchar4(a), as_uchar4(b), c, false);
  row[7] = __ockl_udot4(as_uchar4(a), as_uchar4(b), c, true);
  row[8] = (uint)__ockl_sdot8((int)a, (int)b, (int)c, false);
  row[9] = (uint)__ockl_sdot8((int)a, (int)b, (int)c, true);
  row[10] = __ockl_udot8(a, b, c, false);
  row[11] = __ockl_udot8(a, b, c, true);
}
// Small integers of both signs, whose sums are exact in any order.
kernel void half_dots(global const int* in, global float* out) {
  const size_t i = get_global_id(0);
  const half2 a = (half2)((half)in[5 * i], (half)in[5 * i + 1]),
              b = (half2)((half)in[5 * i + 2], (half)in[5 * i + 3]);
  const float c = (float)in[5 * i + 4];
  out[4 * i] = HALF_DOT(a, b, c, false);
  out[4 * i + 1] = HALF_DOT(-a, b, c, false);
  out[4 * i + 2] = HALF_DOT(a, -b, -c, false);
  out[4 * i + 3] = HALF_DOT((half2)(-a.x, a.y), b.yx, c, true);
}
