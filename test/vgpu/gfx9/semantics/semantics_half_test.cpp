// Float16 instructions, single, packed and mixed, against exact arithmetic rounded once.
#include <algorithm>
#include <cmath>
#include <limits>

#include "test/support/catch.hpp"
#include "test/vgpu/gfx9/semantics/semantics.hpp"

namespace uptempo::vgpu::gfx9::test {
namespace {

using u64 = uint64_t;

constexpr u64 kKeep = 0xffff0000;

double ha(const Lane& x) { return f16(x.a & 0xffff); }
double hb(const Lane& x) { return f16(x.b & 0xffff); }
double high(u64 v) { return f16(v >> 16 & 0xffff); }
double low(u64 v) { return f16(v & 0xffff); }
u64 pair(u64 low_half, u64 high_half) { return (low_half & 0xffff) | (high_half & 0xffff) << 16; }
bool nan16(u64 v) { return (v & 0x7fff) > 0x7c00; }
bool any_nan16(const Lane& x) {
  return nan16(x.a & 0xffff) || nan16(x.a >> 16 & 0xffff) || nan16(x.b & 0xffff) ||
         nan16(x.b >> 16 & 0xffff) || nan16(x.c & 0xffff) || nan16(x.c >> 16 & 0xffff);
}
// The single forms test NaNs; packed results with a NaN in either half are not checked.
u64 numbers(const Lane& x, u64 result) {
  return any_nan16(x) || nan16(result & 0xffff) || nan16(result >> 16 & 0xffff) ? kOpen : result;
}

double lesser(double a, double b) {
  return a == 0 && b == 0 ? (std::signbit(a) ? a : b) : std::min(a, b);
}
double greater(double a, double b) {
  return a == 0 && b == 0 ? (std::signbit(a) ? b : a) : std::max(a, b);
}

// Rounds toward zero, so finite values stay finite.
u64 truncated_half(float v) {
  if (std::isnan(v)) return 0x7e00;
  const u64 nearest = half_bits(v);
  if (std::isinf(v)) return nearest;
  if ((nearest & 0x7fff) == 0x7c00) return nearest - 1;
  return std::abs(f16(nearest)) > std::abs(static_cast<double>(v)) ? nearest - 1 : nearest;
}

constexpr Fill kH = Fill::f16, kF = Fill::f32, kI = Fill::ints;
constexpr Match
    kExact = Match::exact,
    kNan = Match::ulp_f16;  // NaN payloads are free; rows without kOpen catch other differences

template <class F>
u64 estimate(const Lane& x, F f) {
  return half_bits(f(ha(x)));
}

// clang-format off
const Row kSingle[] = {
    {"v_add_f16 v6, v0, v2",            kH, 32, kExact, [](const Lane& x) { return numbers(x, half_bits(ha(x) + hb(x))); }},
    {"v_add_f16 v6, 1.0, v2",           kH, 32, kExact, [](const Lane& x) { return numbers(x, half_bits(1.0 + hb(x))); }},
    {"v_add_f16 v6, 0x4248, v2",        kH, 32, kExact, [](const Lane& x) { return numbers(x, half_bits(f16(0x4248) + hb(x))); }},
    {"v_sub_f16 v6, v0, v2",            kH, 32, kExact, [](const Lane& x) { return numbers(x, half_bits(ha(x) - hb(x))); }},
    {"v_subrev_f16 v6, v0, v2",         kH, 32, kExact, [](const Lane& x) { return numbers(x, half_bits(hb(x) - ha(x))); }},
    {"v_mul_f16 v6, v0, v2",            kH, 32, kExact, [](const Lane& x) { return numbers(x, half_bits(ha(x) * hb(x))); }},
    {"v_mul_f16 v6, -v0, |v2|",         kH, 32, kExact, [](const Lane& x) { return numbers(x, half_bits(-ha(x) * std::abs(hb(x)))); }},
    {"v_min_f16 v6, v0, v2",            kH, 32, kExact, [](const Lane& x) { return numbers(x, half_bits(lesser(ha(x), hb(x)))); }},
    {"v_max_f16 v6, v0, v2",            kH, 32, kExact, [](const Lane& x) { return numbers(x, half_bits(greater(ha(x), hb(x)))); }},
    {"v_fma_f16 v6, v0, v2, v4",        kH, 32, kExact, [](const Lane& x) { const u64 r = half_fma(x.a & 0xffff, x.b & 0xffff, x.c & 0xffff); return any_nan16(x) || nan16(r) ? kOpen : r | (x.old & kKeep); }},
    {"v_fma_legacy_f16 v6, v0, v2, v4", kH, 32, kExact, [](const Lane& x) { return numbers(x, half_fma(x.a & 0xffff, x.b & 0xffff, x.c & 0xffff)); }},
    {"v_fma_f16 v6, v0, v2, v4 op_sel:[1,0,1,1]", kH, 32, kExact, [](const Lane& x) { const u64 r = half_fma(x.a >> 16 & 0xffff, x.b & 0xffff, x.c >> 16 & 0xffff); return any_nan16(x) || nan16(r) ? kOpen : r << 16 | (x.old & 0xffff); }},
    {"v_floor_f16 v6, v0",              kH, 32, kExact, [](const Lane& x) { return numbers(x, half_bits(std::floor(ha(x)))); }},
    {"v_ceil_f16 v6, v0",               kH, 32, kExact, [](const Lane& x) { return numbers(x, half_bits(std::ceil(ha(x)))); }},
    {"v_trunc_f16 v6, v0",              kH, 32, kExact, [](const Lane& x) { return numbers(x, half_bits(std::trunc(ha(x)))); }},
    {"v_rndne_f16 v6, v0",              kH, 32, kExact, [](const Lane& x) { return numbers(x, half_bits(std::nearbyint(ha(x)))); }},
    {"v_fract_f16 v6, v0",              kH, 32, kExact, [](const Lane& x) { return std::isfinite(ha(x)) ? numbers(x, half_bits(std::min(ha(x) - std::floor(ha(x)), 0x1.ffcp-1))) : kOpen; }},
    {"v_ldexp_f16 v6, v0, v2",          kH, 32, kExact, [](const Lane& x) { const auto n = static_cast<int16_t>(x.b); return numbers(x, half_bits(std::ldexp(ha(x), std::clamp<int>(n, -100, 100)))); }},
    {"v_rcp_f16 v6, v0",                kH, 32, kNan,   [](const Lane& x) { return estimate(x, [](double v) { return 1 / v; }); }},
    {"v_sqrt_f16 v6, v0",               kH, 32, kNan,   [](const Lane& x) { return estimate(x, [](double v) { return std::sqrt(v); }); }},
    {"v_rsq_f16 v6, v0",                kH, 32, kNan,   [](const Lane& x) { return estimate(x, [](double v) { return 1 / std::sqrt(v); }); }},
    {"v_exp_f16 v6, v0",                kH, 32, kNan,   [](const Lane& x) { return estimate(x, [](double v) { return std::exp2(v); }); }},
    {"v_log_f16 v6, v0",                kH, 32, kNan,   [](const Lane& x) { return estimate(x, [](double v) { return std::log2(v); }); }},
};

const Row kConversions[] = {
    {"v_cvt_f32_f16 v6, v0",            kH, 32, Match::any_nan, [](const Lane& x) { return bits(static_cast<float>(ha(x))); }},
    {"v_cvt_f16_f32 v6, v0",            kF, 32, kExact, [](const Lane& x) { return std::isnan(f32(x.a)) ? kOpen : half_bits(f32(x.a)); }},
    {"v_cvt_pkrtz_f16_f32 v6, v0, v2",  kF, 32, kExact, [](const Lane& x) { return std::isnan(f32(x.a)) || std::isnan(f32(x.b)) ? kOpen : pair(truncated_half(f32(x.a)), truncated_half(f32(x.b))); }},
    {"v_cvt_u16_f16 v6, v0",            kH, 32, kExact, [](const Lane& x) { return std::isnan(ha(x)) ? u64{0} : static_cast<u64>(std::clamp(std::trunc(ha(x)), 0.0, 65535.0)); }},
    {"v_cvt_i16_f16 v6, v0",            kH, 32, kExact, [](const Lane& x) { return std::isnan(ha(x)) ? u64{0} : static_cast<u64>(static_cast<int64_t>(std::clamp(std::trunc(ha(x)), -32768.0, 32767.0))) & 0xffff; }},
    {"v_cvt_f16_u16 v6, v0",            kI, 32, kExact, [](const Lane& x) { return half_bits(static_cast<double>(x.a & 0xffff)); }},
    {"v_cvt_f16_i16 v6, v0",            kI, 32, kExact, [](const Lane& x) { return half_bits(static_cast<int16_t>(x.a)); }},
    {"v_pack_b32_f16 v6, v0, v2",       kH, 32, kExact, [](const Lane& x) { return numbers(x, pair(x.a, x.b)); }},
    {"v_pack_b32_f16 v6, v0, v2 op_sel:[1,1,0]", kH, 32, kExact, [](const Lane& x) { return numbers(x, pair(x.a >> 16, x.b >> 16)); }},
};

// v_dot2 flushes denormal halves on gfx90a (llvm/llvm_float_packed_test.cpp).
bool is_flushed(double half) { return std::fabs(half) < 0x1p-14; }

// LLVM 21 makes these words of the text beside them, and says which constant they are: it takes
// 1.0 of a packed integer for 0x3f800000, and 1.0 of a packed float16 for 0x3c00. LLVM 15 refuses
// the former.
const Row kPackedConstants[] = {
    {".long 0xd38a4006, 0x180204f2",    kI, 32, kExact, [](const Lane& x) { return pair(x.b, (x.b >> 16) + 0x3f80); }},  // v_pk_add_u16 v6, 1.0, v2
    {".long 0xd38a4006, 0x0801ed02",    kI, 32, kExact, [](const Lane& x) { return pair(x.b, x.b >> 16); }},             // v_pk_add_u16 v6, v2, 4.0 op_sel_hi:[1,0]
    {".long 0xd38a5006, 0x1801ed02",    kI, 32, kExact, [](const Lane& x) { return pair(x.b + 0x4080, (x.b >> 16) + 0x4080); }},  // v_pk_add_u16 v6, v2, 4.0 op_sel:[0,1]
    {".long 0xd3a64006, 0x1c1204f2",    kI, 32, kExact, [](const Lane& x) { return 0x3f80 * static_cast<u64>(static_cast<int16_t>(x.b >> 16)) + x.c; }},  // v_dot2_i32_i16 v6, 1.0, v2, v4
    {"v_pk_add_f16 v6, 1.0, v2",        kH, 32, kExact, [](const Lane& x) { return numbers(x, pair(half_bits(1.0 + low(x.b)), half_bits(0.0 + high(x.b)))); }},
    {"v_dot2_f32_f16 v6, 1.0, v2, 0",   kH, 32, kExact, [](const Lane& x) { return any_nan16(x) || std::isinf(high(x.b)) || is_flushed(low(x.b)) ? kOpen : bits(static_cast<float>(low(x.b))); }},
    {"v_dot2_f32_f16 v6, v2, -2.0, 0 op_sel_hi:[1,0,1]", kH, 32, kExact, [](const Lane& x) { const double sum = -2 * low(x.b) - 2 * high(x.b); return any_nan16(x) || !std::isfinite(sum) || sum == 0 || is_flushed(low(x.b)) || is_flushed(high(x.b)) ? kOpen : bits(static_cast<float>(sum)); }},
};

const Row kPacked[] = {
    {"v_pk_add_f16 v6, v0, v2",         kH, 32, kExact, [](const Lane& x) { return numbers(x, pair(half_bits(low(x.a) + low(x.b)), half_bits(high(x.a) + high(x.b)))); }},
    {"v_pk_mul_f16 v6, v0, v2",         kH, 32, kExact, [](const Lane& x) { return numbers(x, pair(half_bits(low(x.a) * low(x.b)), half_bits(high(x.a) * high(x.b)))); }},
    {"v_pk_add_f16 v6, v0, v2 neg_lo:[1,0] neg_hi:[0,1]", kH, 32, kExact, [](const Lane& x) { return numbers(x, pair(half_bits(-low(x.a) + low(x.b)), half_bits(high(x.a) - high(x.b)))); }},
    {"v_pk_mul_f16 v6, v0, v2 op_sel:[1,0] op_sel_hi:[0,0]", kH, 32, kExact, [](const Lane& x) { return numbers(x, pair(half_bits(high(x.a) * low(x.b)), half_bits(low(x.a) * low(x.b)))); }},
    {"v_pk_fma_f16 v6, v0, v2, v4",     kH, 32, kExact, [](const Lane& x) { return numbers(x, pair(half_fma(x.a & 0xffff, x.b & 0xffff, x.c & 0xffff), half_fma(x.a >> 16 & 0xffff, x.b >> 16 & 0xffff, x.c >> 16 & 0xffff))); }},
    {"v_pk_min_f16 v6, v0, v2",         kH, 32, kExact, [](const Lane& x) { return numbers(x, pair(half_bits(lesser(low(x.a), low(x.b))), half_bits(lesser(high(x.a), high(x.b))))); }},
    {"v_pk_max_f16 v6, v0, v2",         kH, 32, kExact, [](const Lane& x) { return numbers(x, pair(half_bits(greater(low(x.a), low(x.b))), half_bits(greater(high(x.a), high(x.b))))); }},
    {"v_fma_mix_f32 v6, v0, v2, v4 op_sel_hi:[1,1,0]", kH, 32, Match::any_nan, [](const Lane& x) { return bits(std::fma(static_cast<float>(low(x.a)), static_cast<float>(low(x.b)), f32(x.c))); }},
    {"v_fma_mix_f32 v6, v0, v2, v4 op_sel:[1,0,0] op_sel_hi:[1,0,0]", kH, 32, Match::any_nan, [](const Lane& x) { return bits(std::fma(static_cast<float>(high(x.a)), f32(x.b), f32(x.c))); }},
    {"v_fma_mixlo_f16 v6, v0, v2, v4 op_sel_hi:[1,1,1]", kH, 32, kExact, [](const Lane& x) {
       const float r = std::fma(static_cast<float>(low(x.a)), static_cast<float>(low(x.b)), static_cast<float>(low(x.c)));
       return std::isnan(r) ? kOpen : half_bits(r) == half_fma(x.a & 0xffff, x.b & 0xffff, x.c & 0xffff) ? half_bits(r) | (x.old & kKeep) : kOpen; }},
    {"v_fma_mixhi_f16 v6, v0, v2, v4 op_sel_hi:[1,1,1]", kH, 32, kExact, [](const Lane& x) {
       const float r = std::fma(static_cast<float>(low(x.a)), static_cast<float>(low(x.b)), static_cast<float>(low(x.c)));
       return std::isnan(r) ? kOpen : half_bits(r) == half_fma(x.a & 0xffff, x.b & 0xffff, x.c & 0xffff) ? half_bits(r) << 16 | (x.old & 0xffff) : kOpen; }},
    {"v_cmp_lt_f16 vcc, v0, v2",        kH, 1, kExact, [](const Lane& x) { return u64{ha(x) < hb(x)}; }},
    {"v_cmp_neq_f16 s[10:11], v0, v2",  kH, 1, kExact, [](const Lane& x) { return u64{!(ha(x) == hb(x))}; }},
    {"v_cmp_ge_f16 vcc, 0.5, v2",       kH, 1, kExact, [](const Lane& x) { return u64{0.5 >= hb(x)}; }},
};
// clang-format on

}  // namespace

TEST_CASE("float16 arithmetic agrees with the instruction set document") { check(kSingle); }
TEST_CASE("float16 conversions agree with the instruction set document") { check(kConversions); }
TEST_CASE("packed and mixed float16 instructions agree with the instruction set document") {
  check(kPacked);
}
TEST_CASE("a constant of a packed operand has its value in the low half, and integers read f32") {
  check(kPackedConstants);
}

}  // namespace uptempo::vgpu::gfx9::test
