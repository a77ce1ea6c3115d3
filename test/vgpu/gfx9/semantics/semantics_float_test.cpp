// Float32 and float64 instructions against the instruction set document and the host's IEEE
// arithmetic.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "test/support/catch.hpp"
#include "test/vgpu/gfx9/semantics/semantics.hpp"

namespace uptempo::vgpu::gfx9::test {
namespace {

using u64 = uint64_t;
using u32 = uint32_t;
using i32 = int32_t;

float fa(const Lane& x) { return f32(x.a); }
float fb(const Lane& x) { return f32(x.b); }
float fc(const Lane& x) { return f32(x.c); }
double da(const Lane& x) { return f64(x.a); }
double db(const Lane& x) { return f64(x.b); }
double dc(const Lane& x) { return f64(x.c); }

bool signalling(float v) { return std::isnan(v) && !(bits(v) >> 22 & 1); }
bool signalling(double v) { return std::isnan(v) && !(bits(v) >> 51 & 1); }

// MODE.ieee is on: a signalling NaN becomes quiet, a number wins over one quiet NaN, and -0 is
// below +0.
template <class T>
T lesser(T a, T b) {
  if (signalling(a) || signalling(b)) return std::numeric_limits<T>::quiet_NaN();
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  if (a == 0 && b == 0) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
template <class T>
T greater(T a, T b) {
  if (signalling(a) || signalling(b)) return std::numeric_limits<T>::quiet_NaN();
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  if (a == 0 && b == 0) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

template <class Int, class T>
u64 to_int(T v) {
  if (std::isnan(v)) return 0;
  const double t = std::trunc(static_cast<double>(v));
  const double lowest = std::numeric_limits<Int>::min(), highest = std::numeric_limits<Int>::max();
  return static_cast<u64>(static_cast<int64_t>(std::clamp(t, lowest, highest)));
}

bool subnormal(float v) { return v != 0 && std::abs(v) < 0x1p-126f; }

// Estimates treat denormal inputs and results as zeros.
template <class F>
u64 estimate(const Lane& x, F f) {
  const auto flushed = [](float v) { return subnormal(v) ? std::copysign(0.0f, v) : v; };
  return bits(flushed(static_cast<float>(f(static_cast<double>(flushed(fa(x)))))));
}

u64 class_of(double v, bool signalling_nan, bool is_subnormal) {
  const bool negative = std::signbit(v);
  if (std::isnan(v)) return signalling_nan ? 1 : 2;
  if (std::isinf(v)) return negative ? 4 : 0x200;
  if (v == 0) return negative ? 0x20 : 0x40;
  if (is_subnormal) return negative ? 0x10 : 0x80;
  return negative ? 8 : 0x100;
}

int exponent_of(double v) {
  int e = 0;
  std::frexp(v, &e);
  return e;
}

template <class T>
T fraction_of(T v, T largest) {
  const T f = v - std::floor(v);
  return std::isnan(f) ? f : std::min(f, largest);
}

float cube_major(float x, float y, float z) {
  if (std::abs(z) >= std::abs(x) && std::abs(z) >= std::abs(y)) return 2 * z;
  return std::abs(y) >= std::abs(x) ? 2 * y : 2 * x;
}

constexpr Fill kF = Fill::f32, kD = Fill::f64, kI = Fill::ints;
constexpr Match kExact = Match::exact, kNan = Match::any_nan;

// clang-format off
const Row kFloat32[] = {
    {"v_add_f32 v6, v0, v2",                  kF, 32, kNan, [](const Lane& x) { return bits(fa(x) + fb(x)); }},
    {"v_add_f32 v6, 0.5, v2",                 kF, 32, kNan, [](const Lane& x) { return bits(0.5f + fb(x)); }},
    {"v_add_f32 v6, 0x40490fdb, v2",          kF, 32, kNan, [](const Lane& x) { return bits(f32(0x40490fdb) + fb(x)); }},
    {"v_add_f32 v6, 3, v2",                   kF, 32, kNan, [](const Lane& x) { return bits(f32(3) + fb(x)); }},
    {"v_add_f32 v6, -v0, v2",                 kF, 32, kNan, [](const Lane& x) { return bits(-fa(x) + fb(x)); }},
    {"v_add_f32 v6, |v0|, -|v2|",             kF, 32, kNan, [](const Lane& x) { return bits(std::abs(fa(x)) - std::abs(fb(x))); }},
    {"v_add_f32 v6, v0, v2 clamp",            kF, 32, kNan, [](const Lane& x) { const float r = fa(x) + fb(x); return std::isnan(r) ? u64{0} : bits(r > 0 ? std::min(r, 1.0f) : 0.0f); }},
    {"v_sub_f32 v6, v0, v2",                  kF, 32, kNan, [](const Lane& x) { return bits(fa(x) - fb(x)); }},
    {"v_subrev_f32 v6, v0, v2",               kF, 32, kNan, [](const Lane& x) { return bits(fb(x) - fa(x)); }},
    {"v_mul_f32 v6, v0, v2",                  kF, 32, kNan, [](const Lane& x) { return bits(fa(x) * fb(x)); }},
    {"v_mul_legacy_f32 v6, v0, v2",           kF, 32, kNan, [](const Lane& x) { return fa(x) == 0 || fb(x) == 0 ? u64{0} : bits(fa(x) * fb(x)); }},
    {"v_fma_f32 v6, v0, v2, v4",              kF, 32, kNan, [](const Lane& x) { return bits(std::fma(fa(x), fb(x), fc(x))); }},
    {"v_fma_f32 v6, -v0, |v2|, 1.0",          kF, 32, kNan, [](const Lane& x) { return bits(std::fma(-fa(x), std::abs(fb(x)), 1.0f)); }},
    {"v_fmac_f32 v6, v0, v2",                 kF, 32, kNan, [](const Lane& x) { return bits(std::fma(fa(x), fb(x), f32(x.old))); }},
    {"v_min_f32 v6, v0, v2",                  kF, 32, kNan, [](const Lane& x) { return bits(lesser(fa(x), fb(x))); }},
    {"v_max_f32 v6, v0, v2",                  kF, 32, kNan, [](const Lane& x) { return bits(greater(fa(x), fb(x))); }},
    {"v_floor_f32 v6, v0",                    kF, 32, kNan, [](const Lane& x) { return bits(std::floor(fa(x))); }},
    {"v_ceil_f32 v6, v0",                     kF, 32, kNan, [](const Lane& x) { return bits(std::ceil(fa(x))); }},
    {"v_trunc_f32 v6, v0",                    kF, 32, kNan, [](const Lane& x) { return bits(std::trunc(fa(x))); }},
    {"v_rndne_f32 v6, v0",                    kF, 32, kNan, [](const Lane& x) { return bits(std::nearbyint(fa(x))); }},
    {"v_fract_f32 v6, v0",                    kF, 32, kNan, [](const Lane& x) { return bits(fraction_of(fa(x), 0x1.fffffep-1f)); }},
    {"v_ldexp_f32 v6, v0, v2",                kI, 32, kNan, [](const Lane& x) { return bits(static_cast<float>(std::ldexp(static_cast<long double>(fa(x)), std::clamp(static_cast<i32>(x.b), -4000, 4000)))); }},
    {"v_ldexp_f32 v6, v0, -3",                kF, 32, kNan, [](const Lane& x) { return bits(static_cast<float>(std::ldexp(static_cast<double>(fa(x)), -3))); }},
    {"v_frexp_exp_i32_f32 v6, v0",            kF, 32, kExact, [](const Lane& x) { return std::isfinite(fa(x)) && fa(x) != 0 ? static_cast<u64>(exponent_of(fa(x))) : 0; }},
    {"v_frexp_mant_f32 v6, v0",               kF, 32, kNan, [](const Lane& x) { int e; return std::isfinite(fa(x)) ? bits(std::frexp(fa(x), &e)) : bits(fa(x)); }},
    {"v_cubema_f32 v6, v0, v2, v4",           kF, 32, kNan, [](const Lane& x) { return std::isnan(fa(x) + fb(x) + fc(x)) ? kOpen : bits(cube_major(fa(x), fb(x), fc(x))); }},
    {"v_mov_b32 v6, v0",                      kF, 32, kExact, [](const Lane& x) { return x.a; }},
    {"v_cndmask_b32 v6, -v0, |v2|, s[12:13]", kF, 32, kExact, [](const Lane& x) { return x.bit ? x.b & 0x7fffffff : x.a ^ 0x80000000; }},
};

const Row kEstimates[] = {
    {"v_rcp_f32 v6, v0",       kF, 32, Match::ulp1, [](const Lane& x) { return estimate(x, [](double v) { return 1 / v; }); }},
    {"v_rcp_iflag_f32 v6, v0", kF, 32, Match::ulp1, [](const Lane& x) { return estimate(x, [](double v) { return 1 / v; }); }},
    {"v_rsq_f32 v6, v0",       kF, 32, Match::ulp1, [](const Lane& x) { return estimate(x, [](double v) { return 1 / std::sqrt(v); }); }},
    {"v_sqrt_f32 v6, v0",      kF, 32, Match::ulp1, [](const Lane& x) { return estimate(x, [](double v) { return std::sqrt(v); }); }},
    {"v_exp_f32 v6, v0",       kF, 32, Match::ulp1, [](const Lane& x) { return estimate(x, [](double v) { return std::exp2(v); }); }},
    {"v_log_f32 v6, v0",       kF, 32, Match::ulp1, [](const Lane& x) { return estimate(x, [](double v) { return std::log2(v); }); }},
    {"v_rcp_f64 v[6:7], v[0:1]",  kD, 64, Match::ulp_f64, [](const Lane& x) { return std::abs(da(x)) < 0x1p-1022 || std::abs(da(x)) > 0x1p1021 ? kOpen : bits(1 / da(x)); }},
    {"v_rsq_f64 v[6:7], v[0:1]",  kD, 64, Match::ulp_f64, [](const Lane& x) { return std::abs(da(x)) < 0x1p-1022 ? kOpen : bits(1 / std::sqrt(da(x))); }},
    {"v_sqrt_f64 v[6:7], v[0:1]", kD, 64, Match::ulp_f64, [](const Lane& x) { return std::abs(da(x)) < 0x1p-1022 ? kOpen : bits(std::sqrt(da(x))); }},
};

const Row kFloat64[] = {
    {"v_add_f64 v[6:7], v[0:1], v[2:3]",             kD, 64, kNan, [](const Lane& x) { return bits(da(x) + db(x)); }},
    {"v_add_f64 v[6:7], -v[0:1], |v[2:3]|",          kD, 64, kNan, [](const Lane& x) { return bits(-da(x) + std::abs(db(x))); }},
    {"v_add_f64 v[6:7], v[0:1], 1.0",                kD, 64, kNan, [](const Lane& x) { return bits(da(x) + 1.0); }},
    {"v_add_f64 v[6:7], v[0:1], 5",                  kD, 64, kNan, [](const Lane& x) { return bits(da(x) + f64(5)); }},
    {"v_mul_f64 v[6:7], v[0:1], v[2:3]",             kD, 64, kNan, [](const Lane& x) { return bits(da(x) * db(x)); }},
    {"v_mul_f64 v[6:7], v[0:1], 0.5",                kD, 64, kNan, [](const Lane& x) { return bits(da(x) * 0.5); }},
    {"v_fma_f64 v[6:7], v[0:1], v[2:3], v[4:5]",     kD, 64, kNan, [](const Lane& x) { return bits(std::fma(da(x), db(x), dc(x))); }},
    {"v_fmac_f64 v[6:7], v[0:1], v[2:3]",            kD, 64, kNan, [](const Lane& x) { return bits(std::fma(da(x), db(x), f64(x.old))); }},
    {"v_min_f64 v[6:7], v[0:1], v[2:3]",             kD, 64, kNan, [](const Lane& x) { return bits(lesser(da(x), db(x))); }},
    {"v_max_f64 v[6:7], v[0:1], v[2:3]",             kD, 64, kNan, [](const Lane& x) { return bits(greater(da(x), db(x))); }},
    {"v_floor_f64 v[6:7], v[0:1]",                   kD, 64, kNan, [](const Lane& x) { return bits(std::floor(da(x))); }},
    {"v_ceil_f64 v[6:7], v[0:1]",                    kD, 64, kNan, [](const Lane& x) { return bits(std::ceil(da(x))); }},
    {"v_trunc_f64 v[6:7], v[0:1]",                   kD, 64, kNan, [](const Lane& x) { return bits(std::trunc(da(x))); }},
    {"v_rndne_f64 v[6:7], v[0:1]",                   kD, 64, kNan, [](const Lane& x) { return bits(std::nearbyint(da(x))); }},
    {"v_fract_f64 v[6:7], v[0:1]",                   kD, 64, kNan, [](const Lane& x) { return bits(fraction_of(da(x), 0x1.fffffffffffffp-1)); }},
    {"v_ldexp_f64 v[6:7], v[0:1], v2",               kD, 64, kNan, [](const Lane& x) { return bits(static_cast<double>(std::ldexp(static_cast<long double>(da(x)), std::clamp(static_cast<i32>(x.b), -4000, 4000)))); }},
    {"v_frexp_exp_i32_f64 v6, v[0:1]",               kD, 32, kExact, [](const Lane& x) { return std::isfinite(da(x)) && da(x) != 0 ? static_cast<u64>(exponent_of(da(x))) : 0; }},
    {"v_frexp_mant_f64 v[6:7], v[0:1]",              kD, 64, kNan, [](const Lane& x) { int e; return std::isfinite(da(x)) ? bits(std::frexp(da(x), &e)) : bits(da(x)); }},
    {"v_pk_fma_f32 v[6:7], v[0:1], v[2:3], v[4:5]",  kF, 32, kNan, [](const Lane& x) { return bits(std::fma(fa(x), fb(x), fc(x))); }},
    {"v_pk_mul_f32 v[6:7], v[0:1], v[2:3] op_sel:[1,0] op_sel_hi:[0,1]", kF, 32, kNan, [](const Lane& x) { return bits(f32(x.a >> 32) * fb(x)); }},
    {"v_pk_add_f32 v[6:7], v[0:1], v[2:3] neg_lo:[1,0]", kF, 32, kNan, [](const Lane& x) { return bits(-fa(x) + fb(x)); }},
    {"v_pk_mov_b32 v[6:7], v[0:1], v[2:3] op_sel:[1,0]", kF, 32, kExact, [](const Lane& x) { return x.a >> 32; }},
};

const Row kConversions[] = {
    {"v_cvt_i32_f32 v6, v0",          kF, 32, kExact, [](const Lane& x) { return to_int<i32>(fa(x)); }},
    {"v_cvt_u32_f32 v6, v0",          kF, 32, kExact, [](const Lane& x) { return to_int<u32>(fa(x)); }},
    {"v_cvt_i32_f32 v6, -v0",         kF, 32, kExact, [](const Lane& x) { return to_int<i32>(-fa(x)); }},
    {"v_cvt_flr_i32_f32 v6, v0",      kF, 32, kExact, [](const Lane& x) { return to_int<i32>(std::floor(fa(x))); }},
    {"v_cvt_rpi_i32_f32 v6, v0",      kF, 32, kExact, [](const Lane& x) { return std::abs(fa(x)) == 0x1.fffffep-2f || std::abs(fa(x)) > 0x1p22f ? kOpen : to_int<i32>(std::floor(fa(x) + 0.5f)); }},
    {"v_cvt_f32_i32 v6, v0",          kI, 32, kExact, [](const Lane& x) { return bits(static_cast<float>(static_cast<i32>(x.a))); }},
    {"v_cvt_f32_u32 v6, v0",          kI, 32, kExact, [](const Lane& x) { return bits(static_cast<float>(static_cast<u32>(x.a))); }},
    {"v_cvt_f32_ubyte0 v6, v0",       kI, 32, kExact, [](const Lane& x) { return bits(static_cast<float>(x.a & 0xff)); }},
    {"v_cvt_f32_ubyte3 v6, v0",       kI, 32, kExact, [](const Lane& x) { return bits(static_cast<float>(x.a >> 24 & 0xff)); }},
    {"v_cvt_off_f32_i4 v6, v0",       kI, 32, kExact, [](const Lane& x) { return bits(static_cast<float>(static_cast<int>(x.a & 7) - static_cast<int>(x.a & 8)) / 16); }},
    {"v_cvt_f64_f32 v[6:7], v0",      kF, 64, kNan,   [](const Lane& x) { return bits(static_cast<double>(fa(x))); }},
    {"v_cvt_f32_f64 v6, v[0:1]",      kD, 32, kNan,   [](const Lane& x) { return bits(static_cast<float>(da(x))); }},
    {"v_cvt_i32_f64 v6, v[0:1]",      kD, 32, kExact, [](const Lane& x) { return to_int<i32>(da(x)); }},
    {"v_cvt_u32_f64 v6, v[0:1]",      kD, 32, kExact, [](const Lane& x) { return to_int<u32>(da(x)); }},
    {"v_cvt_f64_i32 v[6:7], v0",      kI, 64, kExact, [](const Lane& x) { return bits(static_cast<double>(static_cast<i32>(x.a))); }},
    {"v_cvt_f64_u32 v[6:7], v0",      kI, 64, kExact, [](const Lane& x) { return bits(static_cast<double>(static_cast<u32>(x.a))); }},
    {"v_cvt_f64_i32 v[6:7], 64",      kI, 64, kExact, [](const Lane&) { return bits(64.0); }},
};

const Row kCompares[] = {
    {"v_cmp_lt_f32 vcc, v0, v2",             kF, 1, kExact, [](const Lane& x) { return u64{fa(x) < fb(x)}; }},
    {"v_cmp_eq_f32 s[10:11], v0, v2",        kF, 1, kExact, [](const Lane& x) { return u64{fa(x) == fb(x)}; }},
    {"v_cmp_le_f32 vcc, v0, v2",             kF, 1, kExact, [](const Lane& x) { return u64{fa(x) <= fb(x)}; }},
    {"v_cmp_gt_f32 s[10:11], |v0|, v2",      kF, 1, kExact, [](const Lane& x) { return u64{std::abs(fa(x)) > fb(x)}; }},
    {"v_cmp_lg_f32 vcc, v0, v2",             kF, 1, kExact, [](const Lane& x) { return u64{fa(x) < fb(x) || fa(x) > fb(x)}; }},
    {"v_cmp_ge_f32 vcc, 0, v2",              kF, 1, kExact, [](const Lane& x) { return u64{0 >= fb(x)}; }},
    {"v_cmp_o_f32 vcc, v0, v2",              kF, 1, kExact, [](const Lane& x) { return u64{!std::isnan(fa(x)) && !std::isnan(fb(x))}; }},
    {"v_cmp_u_f32 vcc, v0, v2",              kF, 1, kExact, [](const Lane& x) { return u64{std::isnan(fa(x)) || std::isnan(fb(x))}; }},
    {"v_cmp_nge_f32 vcc, v0, v2",            kF, 1, kExact, [](const Lane& x) { return u64{!(fa(x) >= fb(x))}; }},
    {"v_cmp_nlg_f32 vcc, v0, v2",            kF, 1, kExact, [](const Lane& x) { return u64{!(fa(x) < fb(x) || fa(x) > fb(x))}; }},
    {"v_cmp_ngt_f32 vcc, v0, v2",            kF, 1, kExact, [](const Lane& x) { return u64{!(fa(x) > fb(x))}; }},
    {"v_cmp_nle_f32 vcc, v0, v2",            kF, 1, kExact, [](const Lane& x) { return u64{!(fa(x) <= fb(x))}; }},
    {"v_cmp_neq_f32 vcc, v0, v2",            kF, 1, kExact, [](const Lane& x) { return u64{!(fa(x) == fb(x))}; }},
    {"v_cmp_nlt_f32 vcc, v0, v2",            kF, 1, kExact, [](const Lane& x) { return u64{!(fa(x) < fb(x))}; }},
    {"v_cmp_tru_f32 vcc, v0, v2",            kF, 1, kExact, [](const Lane&) { return u64{1}; }},
    {"v_cmp_class_f32 vcc, v0, v2",          kI, 1, kExact, [](const Lane& x) { return u64{(class_of(fa(x), signalling(fa(x)), subnormal(fa(x))) & x.b & 0x3ff) != 0}; }},
    {"v_cmp_class_f32 s[10:11], v0, 3",      kF, 1, kExact, [](const Lane& x) { return u64{std::isnan(fa(x))}; }},
    {"v_cmp_lt_f64 vcc, v[0:1], v[2:3]",     kD, 1, kExact, [](const Lane& x) { return u64{da(x) < db(x)}; }},
    {"v_cmp_eq_f64 s[10:11], v[0:1], 1.0",   kD, 1, kExact, [](const Lane& x) { return u64{da(x) == 1.0}; }},
    {"v_cmp_neq_f64 vcc, 0x40000000, v[2:3]", kD, 1, kExact, [](const Lane& x) { return u64{!(2.0 == db(x))}; }},
    {"v_cmp_nge_f64 vcc, v[0:1], v[2:3]",    kD, 1, kExact, [](const Lane& x) { return u64{!(da(x) >= db(x))}; }},
    {"v_cmp_u_f64 vcc, v[0:1], v[2:3]",      kD, 1, kExact, [](const Lane& x) { return u64{std::isnan(da(x)) || std::isnan(db(x))}; }},
    {"v_cmp_class_f64 vcc, v[0:1], v2",      kD, 1, kExact, [](const Lane& x) { return u64{(class_of(da(x), signalling(da(x)), std::abs(da(x)) < 0x1p-1022) & x.b & 0x3ff) != 0}; }},
};

// The sequences that compilers emit for a division: exact if the scale, multiply-add and fix-up
// steps are.
constexpr const char* kDivide32 =
    "v_div_scale_f32 v10, s[14:15], v2, v2, v0\n"
    "v_div_scale_f32 v11, vcc, v0, v2, v0\n"
    "v_rcp_f32 v12, v10\n"
    "v_fma_f32 v13, -v10, v12, 1.0\n"
    "v_fma_f32 v12, v13, v12, v12\n"
    "v_mul_f32 v13, v11, v12\n"
    "v_fma_f32 v14, -v10, v13, v11\n"
    "v_fma_f32 v13, v14, v12, v13\n"
    "v_fma_f32 v10, -v10, v13, v11\n"
    "v_div_fmas_f32 v10, v10, v12, v13\n"
    "v_div_fixup_f32 v6, v10, v2, v0\n";
constexpr const char* kDivide64 =
    "v_div_scale_f64 v[10:11], s[14:15], v[2:3], v[2:3], v[0:1]\n"
    "v_rcp_f64 v[12:13], v[10:11]\n"
    "v_fma_f64 v[14:15], -v[10:11], v[12:13], 1.0\n"
    "v_fma_f64 v[12:13], v[12:13], v[14:15], v[12:13]\n"
    "v_fma_f64 v[14:15], -v[10:11], v[12:13], 1.0\n"
    "v_fma_f64 v[12:13], v[12:13], v[14:15], v[12:13]\n"
    "v_div_scale_f64 v[14:15], vcc, v[0:1], v[2:3], v[0:1]\n"
    "v_mul_f64 v[16:17], v[14:15], v[12:13]\n"
    "v_fma_f64 v[10:11], -v[10:11], v[16:17], v[14:15]\n"
    "v_div_fmas_f64 v[10:11], v[10:11], v[12:13], v[16:17]\n"
    "v_div_fixup_f64 v[6:7], v[10:11], v[2:3], v[0:1]\n";
// sqrt of a double as compilers emit it, for arguments that need no scaling.
constexpr const char* kSquareRoot64 =
    "v_rsq_f64 v[10:11], v[0:1]\n"
    "v_mul_f64 v[12:13], v[0:1], v[10:11]\n"
    "v_mul_f64 v[10:11], v[10:11], 0.5\n"
    "v_fma_f64 v[14:15], -v[10:11], v[12:13], 0.5\n"
    "v_fma_f64 v[12:13], v[12:13], v[14:15], v[12:13]\n"
    "v_fma_f64 v[10:11], v[10:11], v[14:15], v[10:11]\n"
    "v_fma_f64 v[14:15], -v[12:13], v[12:13], v[0:1]\n"
    "v_fma_f64 v[12:13], v[14:15], v[10:11], v[12:13]\n"
    "v_fma_f64 v[14:15], -v[12:13], v[12:13], v[0:1]\n"
    "v_fma_f64 v[6:7], v[14:15], v[10:11], v[12:13]\n";

const Row kDivision[] = {
    {kDivide32,     kF, 32, kNan, [](const Lane& x) { return bits(fa(x) / fb(x)); }},
    {kDivide64,     kD, 64, kNan, [](const Lane& x) { return bits(da(x) / db(x)); }},
    {kSquareRoot64, kD, 64, kNan, [](const Lane& x) { return da(x) > 0x1p-700 && da(x) < 0x1p1000 ? bits(std::sqrt(da(x))) : kOpen; }},
};

// Arguments are in revolutions. The documents give no bound; mathematical libraries rely on 2^-20
// for small arguments.
void check_wave(const char* text, double (*function)(double)) {
  LaneBench bench;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    bench.registers[0].lane[lane] = static_cast<u32>(bits(static_cast<float>(lane) / 16 - 2 + static_cast<float>(lane) / 1000));
  }
  bench.run(text);
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const double in = f32(bench.registers[0].lane[lane]);
    CAPTURE(text, in);
    CHECK(std::abs(f32(bench.registers[6].lane[lane]) - function(in * 2 * std::numbers::pi)) < 0x1p-20);
  }
}
// clang-format on

}  // namespace

TEST_CASE("float32 arithmetic agrees with the instruction set document") { check(kFloat32); }
TEST_CASE("float64 and packed float32 arithmetic agree with the instruction set document") {
  check(kFloat64);
}
TEST_CASE("conversions agree with the instruction set document") { check(kConversions); }
TEST_CASE("float compares order NaN, zeros and infinities as the instruction set document says") {
  check(kCompares);
}
TEST_CASE("estimates are within their stated precision") { check(kEstimates); }
TEST_CASE("sine and cosine take revolutions") {
  check_wave("v_sin_f32 v6, v0", [](double v) { return std::sin(v); });
  check_wave("v_cos_f32 v6, v0", [](double v) { return std::cos(v); });
}
TEST_CASE("divisions and square roots, as compilers emit them, round correctly") {
  check(kDivision);
}

TEST_CASE("with denormals off, float32 inputs and results are flushed to zero") {
  static const Row kRows[] = {
      {"v_add_f32 v6, v0, v2", Fill::f32, 32, Match::any_nan,
       [](const Lane& x) {
         const auto flushed = [](float v) { return subnormal(v) ? std::copysign(0.0f, v) : v; };
         return bits(flushed(flushed(fa(x)) + flushed(fb(x))));
       }},
      {"v_mul_f32 v6, v0, v2", Fill::f32, 32, Match::any_nan,
       [](const Lane& x) {
         const auto flushed = [](float v) { return subnormal(v) ? std::copysign(0.0f, v) : v; };
         return bits(flushed(flushed(fa(x)) * flushed(fb(x))));
       }},
  };
  check(kRows, 0x3c0);
}

}  // namespace uptempo::vgpu::gfx9::test
