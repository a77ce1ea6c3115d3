// Kernels of same_source.inc. Each expression has operands per lane, or operands that all lanes
// share.
uint sat_add_u32(uint a, uint b) { return add_sat(a, b); }
uint sat_sub_u32(uint a, uint b) { return sub_sat(a, b); }
int sat_add_i32(int a, int b) { return add_sat(a, b); }
int sat_sub_i32(int a, int b) { return sub_sat(a, b); }
ushort sat_add_u16(ushort a, ushort b) { return add_sat(a, b); }
ushort sat_sub_u16(ushort a, ushort b) { return sub_sat(a, b); }
short sat_add_i16(short a, short b) { return add_sat(a, b); }
short sat_sub_i16(short a, short b) { return sub_sat(a, b); }
uint min_u(uint a, uint b) { return min(a, b); }
uint max_u(uint a, uint b) { return max(a, b); }
int min_i(int a, int b) { return min(a, b); }
int max_i(int a, int b) { return max(a, b); }
ushort min_h(ushort a, ushort b) { return min(a, b); }
ushort max_h(ushort a, ushort b) { return max(a, b); }
short min_s(short a, short b) { return min(a, b); }
short max_s(short a, short b) { return max(a, b); }
uint reversed(uint a) { return __builtin_bitreverse32(a); }
uint leading_zeros(uint a) { return clz(a); }
uint leading_zeros_long(ulong a) { return (uint)clz(a); }
uint trailing_zeros(uint a) { return ctz(a); }
uint trailing_zeros_long(ulong a) { return (uint)ctz(a); }
uint ones(uint a) { return popcount(a); }
uint ones_long(ulong a) { return (uint)popcount(a); }
uint pack(ushort low, ushort high) { return as_uint((ushort2)(low, high)); }
// Selects one of sixteen numbers, and adds them up after one has been replaced.
uint16 numbers(uint a, uint b) {
  return (uint16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) * b + a;
}
uint element(uint a, uint b, uint at) { return numbers(a, b)[at & 15]; }
uint with_element(uint a, uint b, uint at) {
  uint16 v = numbers(a, b);
  v[at & 15] = a ^ b;
  return v.s0 + 3 * v.s1 + 5 * v.s7 + 7 * v.se + 9 * v.sf;
}
uint pk_add_swapped(uint a, uint b) { return as_uint(as_ushort2(a) + as_ushort2(b).yx); }

// Treats both halves of a, b, c as one vector; the conditional operator selects by component.
#define PK(type, expression)                                            \
  ({                                                                    \
    const type x0 = as_##type(a), y0 = as_##type(b), z0 = as_##type(c); \
    (void)z0;                                                           \
    as_uint((type)(expression));                                        \
  })
#define PK_U(expression) PK(ushort2, expression)
#define PK_I(expression) PK(short2, expression)

#define OPERANDS                                    \
  const uint a = (uint)x, b = (uint)y, c = (uint)z; \
  const int i = (int)a, j = (int)b, k = (int)c;     \
  (void)a, (void)b, (void)c, (void)i, (void)j, (void)k;
#define VECTOR(name, instruction, expression)                          \
  kernel void name(global const ulong* in, global ulong* out) {        \
    const size_t n = get_global_id(0);                                 \
    const ulong x = in[3 * n], y = in[3 * n + 1], z = in[3 * n + 2];   \
    OPERANDS*(global __typeof__(expression)*)(out + n) = (expression); \
  }
#define SCALAR(name, instruction, expression)                          \
  kernel void name(constant const ulong* in, global ulong* out) {      \
    const size_t n = get_group_id(0);                                  \
    const ulong x = in[3 * n], y = in[3 * n + 1], z = in[3 * n + 2];   \
    OPERANDS*(global __typeof__(expression)*)(out + n) = (expression); \
  }
#define GLOBAL SCALAR
#define DOT VECTOR
#include "same_source.inc"
