// Integer and bit instructions against the instruction set document.
#include <bit>

#include "test/support/catch.hpp"
#include "test/vgpu/gfx9/semantics/semantics.hpp"

namespace uptempo::vgpu::gfx9::test {
namespace {

using u64 = uint64_t;
using u32 = uint32_t;
using i64 = int64_t;
using i32 = int32_t;

constexpr u32 u(u64 v) { return static_cast<u32>(v); }
constexpr i32 s(u64 v) { return static_cast<i32>(static_cast<u32>(v)); }
constexpr i64 sx(u64 v, unsigned width) {
  return static_cast<i64>(v << (64 - width)) >> (64 - width);
}
constexpr u64 low(u64 v, unsigned width) { return v & ((u64{1} << width) - 1); }
constexpr i64 clamp(i64 v, i64 from, i64 to) { return v < from ? from : v > to ? to : v; }
constexpr u64 byte(u64 v, unsigned i) { return v >> 8 * i & 0xff; }
constexpr u64 word(u64 v, unsigned i) { return v >> 16 * i & 0xffff; }
constexpr u64 distance(u64 a, u64 b) { return a > b ? a - b : b - a; }
constexpr u64 sad8(u64 a, u64 b) {
  u64 sum = 0;
  for (unsigned i = 0; i < 4; ++i) sum += distance(byte(a, i), byte(b, i));
  return sum;
}
constexpr u64 msad8(u64 a, u64 b) {
  u64 sum = 0;
  for (unsigned i = 0; i < 4; ++i) sum += byte(b, i) ? distance(byte(a, i), byte(b, i)) : 0;
  return sum;
}
constexpr u64 median(i64 a, i64 b, i64 c) {
  return static_cast<u64>(std::max(std::min(a, b), std::min(std::max(a, b), c)));
}
constexpr u64 permuted_byte(u64 both, u64 select) {
  if (select < 8) return byte(both, static_cast<unsigned>(select));
  if (select < 12) return both >> (16 * (select - 8) + 15) & 1 ? 0xff : 0;
  return select == 12 ? 0 : 0xff;
}
constexpr u64 permute(u64 a, u64 b, u64 select) {
  const u64 both = (a << 32) | u(b);
  u64 r = 0;
  for (unsigned i = 0; i < 4; ++i) r |= permuted_byte(both, byte(select, i)) << 8 * i;
  return r;
}
// Quad SAD: four overlapping windows of the 64-bit a, each a 16-bit sum.
template <bool kMasked>
u64 quad_sad(u64 a, u64 b, u64 c, bool saturates = false) {
  u64 r = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const u64 window = a >> 8 * i;
    const u64 sum = word(c, i) + (kMasked ? msad8(window, b) : sad8(window, b));
    r |= (saturates ? std::min<u64>(sum, 0xffff) : low(sum, 16)) << 16 * i;
  }
  return r;
}

// Two 16-bit halves, each computed by f.
template <class F>
u64 halves(const Lane& x, F f) {
  return low(static_cast<u64>(f(word(x.a, 0), word(x.b, 0), word(x.c, 0))), 16) |
         low(static_cast<u64>(f(word(x.a, 1), word(x.b, 1), word(x.c, 1))), 16) << 16;
}

constexpr Fill kI = Fill::ints, kL = Fill::longs;
constexpr Match kExact = Match::exact;

// clang-format off
const Row kArithmetic[] = {
    {"v_add_u32 v6, v0, v2",                     kI, 32, kExact, [](const Lane& x) { return x.a + x.b; }},
    {"v_add_u32 v6, v0, v2 clamp",               kI, 32, kExact, [](const Lane& x) { return std::min<u64>(u64{u(x.a)} + u(x.b), 0xffffffff); }},
    {"v_sub_u32 v6, v0, v2",                     kI, 32, kExact, [](const Lane& x) { return x.a - x.b; }},
    {"v_sub_u32_e64 v6, v0, v2 clamp",           kI, 32, kExact, [](const Lane& x) { return u(x.a) < u(x.b) ? u64{0} : x.a - x.b; }},
    {"v_subrev_u32 v6, v0, v2",                  kI, 32, kExact, [](const Lane& x) { return x.b - x.a; }},
    {"v_add_i32 v6, v0, v2",                     kI, 32, kExact, [](const Lane& x) { return x.a + x.b; }},
    {"v_add_i32 v6, v0, v2 clamp",               kI, 32, kExact, [](const Lane& x) { return u64(clamp(i64{s(x.a)} + s(x.b), INT32_MIN, INT32_MAX)); }},
    {"v_sub_i32 v6, v0, v2 clamp",               kI, 32, kExact, [](const Lane& x) { return u64(clamp(i64{s(x.a)} - s(x.b), INT32_MIN, INT32_MAX)); }},
    {"v_mul_u32_u24_e64 v6, v0, v2 clamp",       kI, 32, kExact, [](const Lane& x) { return std::min<u64>(low(x.a, 24) * low(x.b, 24), 0xffffffff); }},
    {"v_mul_i32_i24_e64 v6, v0, v2 clamp",       kI, 32, kExact, [](const Lane& x) { return u64(clamp(sx(x.a, 24) * sx(x.b, 24), INT32_MIN, INT32_MAX)); }},
    {"v_mad_u32_u24 v6, v0, v2, v4 clamp",       kI, 32, kExact, [](const Lane& x) { return std::min<u64>(low(x.a, 24) * low(x.b, 24) + u(x.c), 0xffffffff); }},
    {"v_mad_i32_i24 v6, v0, v2, v4 clamp",       kI, 32, kExact, [](const Lane& x) { return u64(clamp(sx(x.a, 24) * sx(x.b, 24) + s(x.c), INT32_MIN, INT32_MAX)); }},
    {"v_mad_u64_u32 v[6:7], s[10:11], v0, v2, v[4:5] clamp", kL, 64, kExact, [](const Lane& x) { u64 sum; return __builtin_add_overflow(u64{u(x.a)} * u(x.b), x.c, &sum) ? ~u64{0} : sum; }},
    {"v_mad_i64_i32 v[6:7], s[10:11], v0, v2, v[4:5] clamp", kL, 64, kExact, [](const Lane& x) { i64 sum; return __builtin_add_overflow(i64{s(x.a)} * s(x.b), i64(x.c), &sum) ? u64(i64(x.c) < 0 ? INT64_MIN : INT64_MAX) : u64(sum); }},
    {"v_sad_u8 v6, v0, v2, v4 clamp",            kI, 32, kExact, [](const Lane& x) { return std::min<u64>(sad8(x.a, x.b) + u(x.c), 0xffffffff); }},
    {"v_sad_hi_u8 v6, v0, v2, v4 clamp",         kI, 32, kExact, [](const Lane& x) { return std::min<u64>((sad8(x.a, x.b) << 16) + u(x.c), 0xffffffff); }},
    {"v_sad_u16 v6, v0, v2, v4 clamp",           kI, 32, kExact, [](const Lane& x) { return std::min<u64>(distance(word(x.a, 0), word(x.b, 0)) + distance(word(x.a, 1), word(x.b, 1)) + u(x.c), 0xffffffff); }},
    {"v_sad_u32 v6, v0, v2, v4 clamp",           kI, 32, kExact, [](const Lane& x) { return std::min<u64>(distance(u(x.a), u(x.b)) + u(x.c), 0xffffffff); }},
    {"v_msad_u8 v6, v0, v2, v4 clamp",           kI, 32, kExact, [](const Lane& x) { return std::min<u64>(msad8(x.a, x.b) + u(x.c), 0xffffffff); }},
    {"v_qsad_pk_u16_u8 v[6:7], v[0:1], v2, v[4:5] clamp",  kL, 64, kExact, [](const Lane& x) { return quad_sad<false>(x.a, x.b, x.c, true); }},
    {"v_mqsad_pk_u16_u8 v[6:7], v[0:1], v2, v[4:5] clamp", kL, 64, kExact, [](const Lane& x) { return quad_sad<true>(x.a, x.b, x.c, true); }},
    {"v_add_co_u32 v6, s[10:11], v0, v2",        kI, 32, kExact, [](const Lane& x) { return x.a + x.b; }},
    {"v_add_co_u32 v6, s[10:11], v0, v2",        kI, 1,  kExact, [](const Lane& x) { return (u64{u(x.a)} + u(x.b)) >> 32; }},
    {"v_add_co_u32 v6, vcc, v0, v2",             kI, 1,  kExact, [](const Lane& x) { return (u64{u(x.a)} + u(x.b)) >> 32; }},
    {"v_sub_co_u32 v6, vcc, v0, v2",             kI, 1,  kExact, [](const Lane& x) { return u64{u(x.a) < u(x.b)}; }},
    {"v_subrev_co_u32 v6, s[10:11], v0, v2",     kI, 1,  kExact, [](const Lane& x) { return u64{u(x.b) < u(x.a)}; }},
    {"v_subrev_co_u32 v6, s[10:11], v0, v2",     kI, 32, kExact, [](const Lane& x) { return x.b - x.a; }},
    {"v_addc_co_u32 v6, s[10:11], v0, v2, s[12:13]",    kI, 32, kExact, [](const Lane& x) { return x.a + x.b + x.bit; }},
    {"v_addc_co_u32 v6, s[10:11], v0, v2, s[12:13]",    kI, 1,  kExact, [](const Lane& x) { return (u64{u(x.a)} + u(x.b) + x.bit) >> 32; }},
    {"v_subb_co_u32 v6, s[10:11], v0, v2, s[12:13]",    kI, 32, kExact, [](const Lane& x) { return x.a - x.b - x.bit; }},
    {"v_subb_co_u32 v6, s[10:11], v0, v2, s[12:13]",    kI, 1,  kExact, [](const Lane& x) { return u64{u(x.a) < u64{u(x.b)} + x.bit}; }},
    {"v_subbrev_co_u32 v6, s[10:11], v0, v2, s[12:13]", kI, 32, kExact, [](const Lane& x) { return x.b - x.a - x.bit; }},
    {"v_subbrev_co_u32 v6, s[10:11], v0, v2, s[12:13]", kI, 1,  kExact, [](const Lane& x) { return u64{u(x.b) < u64{u(x.a)} + x.bit}; }},
    {"v_add3_u32 v6, v0, v2, v4",                kI, 32, kExact, [](const Lane& x) { return x.a + x.b + x.c; }},
    {"v_lshl_add_u32 v6, v0, v2, v4",            kI, 32, kExact, [](const Lane& x) { return (x.a << (x.b & 31)) + x.c; }},
    {"v_add_lshl_u32 v6, v0, v2, v4",            kI, 32, kExact, [](const Lane& x) { return u64{u(x.a + x.b)} << (x.c & 31); }},
    {"v_xad_u32 v6, v0, v2, v4",                 kI, 32, kExact, [](const Lane& x) { return (x.a ^ x.b) + x.c; }},
    {"v_mul_lo_u32 v6, v0, v2",                  kI, 32, kExact, [](const Lane& x) { return x.a * x.b; }},
    {"v_mul_hi_u32 v6, v0, v2",                  kI, 32, kExact, [](const Lane& x) { return u64{u(x.a)} * u(x.b) >> 32; }},
    {"v_mul_hi_i32 v6, v0, v2",                  kI, 32, kExact, [](const Lane& x) { return u64(i64{s(x.a)} * s(x.b) >> 32); }},
    {"v_mul_u32_u24 v6, v0, v2",                 kI, 32, kExact, [](const Lane& x) { return low(x.a, 24) * low(x.b, 24); }},
    {"v_mul_hi_u32_u24 v6, v0, v2",              kI, 32, kExact, [](const Lane& x) { return low(x.a, 24) * low(x.b, 24) >> 32; }},
    {"v_mul_i32_i24 v6, v0, v2",                 kI, 32, kExact, [](const Lane& x) { return u64(sx(x.a, 24) * sx(x.b, 24)); }},
    {"v_mul_hi_i32_i24 v6, v0, v2",              kI, 32, kExact, [](const Lane& x) { return u64(sx(x.a, 24) * sx(x.b, 24) >> 32); }},
    {"v_mad_u32_u24 v6, v0, v2, v4",             kI, 32, kExact, [](const Lane& x) { return low(x.a, 24) * low(x.b, 24) + x.c; }},
    {"v_mad_i32_i24 v6, v0, v2, v4",             kI, 32, kExact, [](const Lane& x) { return u64(sx(x.a, 24) * sx(x.b, 24)) + x.c; }},
    {"v_mad_u64_u32 v[6:7], s[10:11], v0, v2, v[4:5]", kL, 64, kExact, [](const Lane& x) { return u64{u(x.a)} * u(x.b) + x.c; }},
    {"v_mad_u64_u32 v[6:7], s[10:11], v0, v2, v[4:5]", kL, 1,  kExact, [](const Lane& x) { const u64 p = u64{u(x.a)} * u(x.b); return u64{p + x.c < p}; }},
    {"v_mad_i64_i32 v[6:7], s[10:11], v0, v2, v[4:5]", kL, 64, kExact, [](const Lane& x) { return u64(i64{s(x.a)} * s(x.b)) + x.c; }},
    {"v_mad_u16 v6, v0, v2, v4",                 kI, 32, kExact, [](const Lane& x) { return low(x.a * x.b + x.c, 16) | (x.old & 0xffff0000); }},
    {"v_mad_legacy_u16 v6, v0, v2, v4",          kI, 32, kExact, [](const Lane& x) { return low(x.a * x.b + x.c, 16); }},
    {"v_mad_u32_u16 v6, v0, v2, v4",             kI, 32, kExact, [](const Lane& x) { return word(x.a, 0) * word(x.b, 0) + x.c; }},
    {"v_mad_i32_i16 v6, v0, v2, v4",             kI, 32, kExact, [](const Lane& x) { return u64(sx(x.a, 16) * sx(x.b, 16)) + x.c; }},
    {"v_mad_u32_u16 v6, v0, v2, v4 op_sel:[1,0,0,0]", kI, 32, kExact, [](const Lane& x) { return word(x.a, 1) * word(x.b, 0) + x.c; }},
    {"v_add_u16 v6, v0, v2",                     kI, 32, kExact, [](const Lane& x) { return low(x.a + x.b, 16); }},
    {"v_sub_u16 v6, v0, v2",                     kI, 32, kExact, [](const Lane& x) { return low(x.a - x.b, 16); }},
    {"v_subrev_u16 v6, v0, v2",                  kI, 32, kExact, [](const Lane& x) { return low(x.b - x.a, 16); }},
    {"v_add_u16_e64 v6, v0, v2 clamp",           kI, 32, kExact, [](const Lane& x) { return std::min<u64>(word(x.a, 0) + word(x.b, 0), 0xffff); }},
    {"v_mul_lo_u16 v6, v0, v2",                  kI, 32, kExact, [](const Lane& x) { return low(x.a * x.b, 16); }},
};

const Row kOrder[] = {
    {"v_min_i32 v6, v0, v2",                     kI, 32, kExact, [](const Lane& x) { return u64(std::min(s(x.a), s(x.b))); }},
    {"v_max_i32 v6, v0, v2",                     kI, 32, kExact, [](const Lane& x) { return u64(std::max(s(x.a), s(x.b))); }},
    {"v_min_u32 v6, v0, v2",                     kI, 32, kExact, [](const Lane& x) { return u64{std::min(u(x.a), u(x.b))}; }},
    {"v_max_u32 v6, v0, v2",                     kI, 32, kExact, [](const Lane& x) { return u64{std::max(u(x.a), u(x.b))}; }},
    {"v_min_i16 v6, v0, v2",                     kI, 32, kExact, [](const Lane& x) { return low(u64(std::min(sx(x.a, 16), sx(x.b, 16))), 16); }},
    {"v_max_u16 v6, v0, v2",                     kI, 32, kExact, [](const Lane& x) { return std::max(word(x.a, 0), word(x.b, 0)); }},
    {"v_min3_i32 v6, v0, v2, v4",                kI, 32, kExact, [](const Lane& x) { return u64(std::min({s(x.a), s(x.b), s(x.c)})); }},
    {"v_max3_i32 v6, v0, v2, v4",                kI, 32, kExact, [](const Lane& x) { return u64(std::max({s(x.a), s(x.b), s(x.c)})); }},
    {"v_min3_u32 v6, v0, v2, v4",                kI, 32, kExact, [](const Lane& x) { return u64{std::min({u(x.a), u(x.b), u(x.c)})}; }},
    {"v_max3_u32 v6, v0, v2, v4",                kI, 32, kExact, [](const Lane& x) { return u64{std::max({u(x.a), u(x.b), u(x.c)})}; }},
    {"v_med3_i32 v6, v0, v2, v4",                kI, 32, kExact, [](const Lane& x) { return median(s(x.a), s(x.b), s(x.c)); }},
    {"v_med3_u32 v6, v0, v2, v4",                kI, 32, kExact, [](const Lane& x) { return median(u(x.a), u(x.b), u(x.c)); }},
    {"v_cndmask_b32 v6, v0, v2, s[12:13]",       kI, 32, kExact, [](const Lane& x) { return x.bit ? x.b : x.a; }},
    {"v_cndmask_b32 v6, 7, v2, s[12:13]",        kI, 32, kExact, [](const Lane& x) { return x.bit ? x.b : 7; }},
    {"v_cmp_lt_i32 vcc, v0, v2",                 kI, 1,  kExact, [](const Lane& x) { return u64{s(x.a) < s(x.b)}; }},
    {"v_cmp_lt_u32 vcc, v0, v2",                 kI, 1,  kExact, [](const Lane& x) { return u64{u(x.a) < u(x.b)}; }},
    {"v_cmp_ge_i32 s[10:11], v0, v2",            kI, 1,  kExact, [](const Lane& x) { return u64{s(x.a) >= s(x.b)}; }},
    {"v_cmp_gt_u32 s[10:11], v0, v2",            kI, 1,  kExact, [](const Lane& x) { return u64{u(x.a) > u(x.b)}; }},
    {"v_cmp_le_u32 s[10:11], 64, v2",            kI, 1,  kExact, [](const Lane& x) { return u64{64 <= u(x.b)}; }},
    {"v_cmp_eq_u32 vcc, 0x1000000, v2",          kI, 1,  kExact, [](const Lane& x) { return u64{u(x.b) == 0x1000000}; }},
    {"v_cmp_ne_u32 vcc, -1, v2",                 kI, 1,  kExact, [](const Lane& x) { return u64{u(x.b) != 0xffffffff}; }},
    {"v_cmp_t_u32 vcc, v0, v2",                  kI, 1,  kExact, [](const Lane&) { return u64{1}; }},
    {"v_cmp_f_i32 vcc, v0, v2",                  kI, 1,  kExact, [](const Lane&) { return u64{0}; }},
    {"v_cmp_lt_i64 vcc, v[0:1], v[2:3]",         kL, 1,  kExact, [](const Lane& x) { return u64{i64(x.a) < i64(x.b)}; }},
    {"v_cmp_gt_u64 s[10:11], v[0:1], v[2:3]",    kL, 1,  kExact, [](const Lane& x) { return u64{x.a > x.b}; }},
    {"v_cmp_eq_u64 vcc, 0, v[2:3]",              kL, 1,  kExact, [](const Lane& x) { return u64{x.b == 0}; }},
    {"v_cmp_ne_u64 vcc, -1, v[2:3]",             kL, 1,  kExact, [](const Lane& x) { return u64{x.b != ~u64{0}}; }},
    {"v_cmp_lt_i16 vcc, v0, v2",                 kI, 1,  kExact, [](const Lane& x) { return u64{sx(x.a, 16) < sx(x.b, 16)}; }},
    {"v_cmp_ge_u16 s[10:11], v0, v2",            kI, 1,  kExact, [](const Lane& x) { return u64{word(x.a, 0) >= word(x.b, 0)}; }},
};

const Row kBits[] = {
    {"v_and_b32 v6, v0, v2",                     kI, 32, kExact, [](const Lane& x) { return x.a & x.b; }},
    {"v_and_b32 v6, 0x12345678, v2",             kI, 32, kExact, [](const Lane& x) { return 0x12345678 & x.b; }},
    {"v_and_b32 v6, -16, v2",                    kI, 32, kExact, [](const Lane& x) { return ~u64{15} & x.b; }},
    {"v_and_b32 v6, 1.0, v2",                    kI, 32, kExact, [](const Lane& x) { return 0x3f800000 & x.b; }},
    {"v_or_b32 v6, v0, v2",                      kI, 32, kExact, [](const Lane& x) { return x.a | x.b; }},
    {"v_xor_b32 v6, v0, v2",                     kI, 32, kExact, [](const Lane& x) { return x.a ^ x.b; }},
    {"v_xnor_b32 v6, v0, v2",                    kI, 32, kExact, [](const Lane& x) { return ~(x.a ^ x.b); }},
    {"v_not_b32 v6, v0",                         kI, 32, kExact, [](const Lane& x) { return ~x.a; }},
    {"v_or3_b32 v6, v0, v2, v4",                 kI, 32, kExact, [](const Lane& x) { return x.a | x.b | x.c; }},
    {"v_and_or_b32 v6, v0, v2, v4",              kI, 32, kExact, [](const Lane& x) { return (x.a & x.b) | x.c; }},
    {"v_lshl_or_b32 v6, v0, v2, v4",             kI, 32, kExact, [](const Lane& x) { return x.a << (x.b & 31) | x.c; }},
    {"v_lshlrev_b32 v6, v0, v2",                 kI, 32, kExact, [](const Lane& x) { return x.b << (x.a & 31); }},
    {"v_lshrrev_b32 v6, v0, v2",                 kI, 32, kExact, [](const Lane& x) { return u64{u(x.b) >> (x.a & 31)}; }},
    {"v_ashrrev_i32 v6, v0, v2",                 kI, 32, kExact, [](const Lane& x) { return u64(s(x.b) >> (x.a & 31)); }},
    {"v_lshlrev_b16 v6, v0, v2",                 kI, 32, kExact, [](const Lane& x) { return low(x.b << (x.a & 15), 16); }},
    {"v_lshrrev_b16 v6, v0, v2",                 kI, 32, kExact, [](const Lane& x) { return word(x.b, 0) >> (x.a & 15); }},
    {"v_ashrrev_i16 v6, v0, v2",                 kI, 32, kExact, [](const Lane& x) { return low(u64(sx(x.b, 16) >> (x.a & 15)), 16); }},
    {"v_lshlrev_b64 v[6:7], v0, v[2:3]",         kL, 64, kExact, [](const Lane& x) { return x.b << (x.a & 63); }},
    {"v_lshrrev_b64 v[6:7], v0, v[2:3]",         kL, 64, kExact, [](const Lane& x) { return x.b >> (x.a & 63); }},
    {"v_ashrrev_i64 v[6:7], v0, v[2:3]",         kL, 64, kExact, [](const Lane& x) { return u64(i64(x.b) >> (x.a & 63)); }},
    {"v_ashrrev_i64 v[6:7], 31, v[2:3]",         kL, 64, kExact, [](const Lane& x) { return u64(i64(x.b) >> 31); }},
    {"v_bfe_u32 v6, v0, v2, v4",                 kI, 32, kExact, [](const Lane& x) { return low(u64{u(x.a)} >> (x.b & 31), x.c & 31); }},
    {"v_bfe_i32 v6, v0, v2, v4",                 kI, 32, kExact, [](const Lane& x) {
       const unsigned at = x.b & 31, width = x.c & 31;
       if (width == 0) return u64{0};
       return at + width >= 32 ? u64(s(x.a) >> at) : u64(sx(u64{u(x.a)} >> at, width)); }},
    {"v_bfi_b32 v6, v0, v2, v4",                 kI, 32, kExact, [](const Lane& x) { return (x.a & x.b) | (~x.a & x.c); }},
    {"v_bfm_b32 v6, v0, v2",                     kI, 32, kExact, [](const Lane& x) { return ((u64{1} << (x.a & 31)) - 1) << (x.b & 31); }},
    {"v_bfrev_b32 v6, v0",                       kI, 32, kExact, [](const Lane& x) { u64 r = 0; for (unsigned i = 0; i < 32; ++i) r |= (x.a >> i & 1) << (31 - i); return r; }},
    {"v_ffbh_u32 v6, v0",                        kI, 32, kExact, [](const Lane& x) { return u(x.a) ? u64(std::countl_zero(u(x.a))) : 0xffffffff; }},
    {"v_ffbl_b32 v6, v0",                        kI, 32, kExact, [](const Lane& x) { return u(x.a) ? u64(std::countr_zero(u(x.a))) : 0xffffffff; }},
    {"v_ffbh_i32 v6, v0",                        kI, 32, kExact, [](const Lane& x) {
       const u32 v = s(x.a) < 0 ? ~u(x.a) : u(x.a);
       return v ? u64(std::countl_zero(v)) : 0xffffffff; }},
    {"v_bcnt_u32_b32 v6, v0, v2",                kI, 32, kExact, [](const Lane& x) { return u64(std::popcount(u(x.a))) + x.b; }},
    {"v_alignbit_b32 v6, v0, v2, v4",            kI, 32, kExact, [](const Lane& x) { return (x.a << 32 | u(x.b)) >> (x.c & 31); }},
    {"v_alignbyte_b32 v6, v0, v2, v4",           kI, 32, kExact, [](const Lane& x) { return (x.a << 32 | u(x.b)) >> 8 * (x.c & 3); }},
    {"v_perm_b32 v6, v0, v2, v4",                kI, 32, kExact, [](const Lane& x) { return permute(x.a, x.b, x.c); }},
    {"v_lerp_u8 v6, v0, v2, v4",                 kI, 32, kExact, [](const Lane& x) { u64 r = 0; for (unsigned i = 0; i < 4; ++i) r |= ((byte(x.a, i) + byte(x.b, i) + (byte(x.c, i) & 1)) >> 1) << 8 * i; return r; }},
    {"v_mov_b32 v6, v0",                         kI, 32, kExact, [](const Lane& x) { return x.a; }},
    {"v_mov_b32 v6, 0xdeadbeef",                 kI, 32, kExact, [](const Lane&) { return u64{0xdeadbeef}; }},
    {"v_mov_b32 v6, -4.0",                       kI, 32, kExact, [](const Lane&) { return u64{0xc0800000}; }},
    {"v_cvt_pk_u16_u32 v6, v0, v2",              kI, 32, kExact, [](const Lane& x) { return std::min<u64>(u(x.a), 0xffff) | std::min<u64>(u(x.b), 0xffff) << 16; }},
    {"v_cvt_pk_i16_i32 v6, v0, v2",              kI, 32, kExact, [](const Lane& x) { return low(u64(clamp(s(x.a), -32768, 32767)), 16) | u64(clamp(s(x.b), -32768, 32767)) << 16; }},
    {"v_sat_pk_u8_i16 v6, v0",                   kI, 32, kExact, [](const Lane& x) { return u64(clamp(sx(x.a, 16), 0, 255) | clamp(sx(word(x.a, 1), 16), 0, 255) << 8); }},
    {"v_sad_u8 v6, v0, v2, v4",                  kI, 32, kExact, [](const Lane& x) { return sad8(x.a, x.b) + x.c; }},
    {"v_sad_hi_u8 v6, v0, v2, v4",               kI, 32, kExact, [](const Lane& x) { return (sad8(x.a, x.b) << 16) + x.c; }},
    {"v_sad_u16 v6, v0, v2, v4",                 kI, 32, kExact, [](const Lane& x) { return distance(word(x.a, 0), word(x.b, 0)) + distance(word(x.a, 1), word(x.b, 1)) + x.c; }},
    {"v_sad_u32 v6, v0, v2, v4",                 kI, 32, kExact, [](const Lane& x) { return distance(u(x.a), u(x.b)) + x.c; }},
    {"v_msad_u8 v6, v0, v2, v4",                 kI, 32, kExact, [](const Lane& x) { return msad8(x.a, x.b) + x.c; }},
    {"v_qsad_pk_u16_u8 v[6:7], v[0:1], v2, v[4:5]",  kL, 64, kExact, [](const Lane& x) { return quad_sad<false>(x.a, x.b, x.c); }},
    {"v_mqsad_pk_u16_u8 v[6:7], v[0:1], v2, v[4:5]", kL, 64, kExact, [](const Lane& x) { return quad_sad<true>(x.a, x.b, x.c); }},
};

const Row kPacked[] = {
    {"v_pk_add_u16 v6, v0, v2",                  kI, 32, kExact, [](const Lane& x) { return halves(x, [](u64 a, u64 b, u64) { return a + b; }); }},
    {"v_pk_add_u16 v6, v0, v2 clamp",            kI, 32, kExact, [](const Lane& x) { return halves(x, [](u64 a, u64 b, u64) { return std::min<u64>(a + b, 0xffff); }); }},
    {"v_pk_sub_i16 v6, v0, v2",                  kI, 32, kExact, [](const Lane& x) { return halves(x, [](u64 a, u64 b, u64) { return a - b; }); }},
    {"v_pk_add_i16 v6, v0, v2 clamp",            kI, 32, kExact, [](const Lane& x) { return halves(x, [](u64 a, u64 b, u64) { return clamp(sx(a, 16) + sx(b, 16), -32768, 32767); }); }},
    {"v_pk_mul_lo_u16 v6, v0, v2",               kI, 32, kExact, [](const Lane& x) { return halves(x, [](u64 a, u64 b, u64) { return a * b; }); }},
    {"v_pk_mad_u16 v6, v0, v2, v4",              kI, 32, kExact, [](const Lane& x) { return halves(x, [](u64 a, u64 b, u64 c) { return a * b + c; }); }},
    {"v_pk_min_i16 v6, v0, v2",                  kI, 32, kExact, [](const Lane& x) { return halves(x, [](u64 a, u64 b, u64) { return std::min(sx(a, 16), sx(b, 16)); }); }},
    {"v_pk_max_u16 v6, v0, v2",                  kI, 32, kExact, [](const Lane& x) { return halves(x, [](u64 a, u64 b, u64) { return std::max(a, b); }); }},
    {"v_pk_lshlrev_b16 v6, v0, v2",              kI, 32, kExact, [](const Lane& x) { return halves(x, [](u64 a, u64 b, u64) { return b << (a & 15); }); }},
    {"v_pk_ashrrev_i16 v6, v0, v2",              kI, 32, kExact, [](const Lane& x) { return halves(x, [](u64 a, u64 b, u64) { return sx(b, 16) >> (a & 15); }); }},
    {"v_pk_add_u16 v6, v0, v2 op_sel:[1,0] op_sel_hi:[0,1]", kI, 32, kExact, [](const Lane& x) { return low(word(x.a, 1) + word(x.b, 0), 16) | low(word(x.a, 0) + word(x.b, 1), 16) << 16; }},
    {"v_dot4_i32_i8 v6, v0, v2, v4",             kI, 32, kExact, [](const Lane& x) { i64 r = s(x.c); for (unsigned i = 0; i < 4; ++i) r += sx(byte(x.a, i), 8) * sx(byte(x.b, i), 8); return u64(r); }},
    {"v_dot4_u32_u8 v6, v0, v2, v4",             kI, 32, kExact, [](const Lane& x) { u64 r = x.c; for (unsigned i = 0; i < 4; ++i) r += byte(x.a, i) * byte(x.b, i); return r; }},
    {"v_dot8_u32_u4 v6, v0, v2, v4",             kI, 32, kExact, [](const Lane& x) { u64 r = x.c; for (unsigned i = 0; i < 8; ++i) r += (x.a >> 4 * i & 15) * (x.b >> 4 * i & 15); return r; }},
    {"v_dot2_i32_i16 v6, v0, v2, v4",            kI, 32, kExact, [](const Lane& x) { return u64(sx(word(x.a, 0), 16) * sx(word(x.b, 0), 16) + sx(word(x.a, 1), 16) * sx(word(x.b, 1), 16)) + x.c; }},
    {"v_dot2_u32_u16 v6, v0, v2, v4",            kI, 32, kExact, [](const Lane& x) { return word(x.a, 0) * word(x.b, 0) + word(x.a, 1) * word(x.b, 1) + x.c; }},
};
// clang-format on

}  // namespace

TEST_CASE("integer arithmetic agrees with the instruction set document") { check(kArithmetic); }
TEST_CASE("integer order and selection agree with the instruction set document") { check(kOrder); }
TEST_CASE("bit operations agree with the instruction set document") { check(kBits); }
TEST_CASE("packed and dot-product integers agree with the instruction set document") {
  check(kPacked);
}

}  // namespace uptempo::vgpu::gfx9::test
