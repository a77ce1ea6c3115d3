// Reciprocals, roots, exp2, log2, sine and cosine of revolutions.
//
// exp2, log2, sin and cos are computed in float64 by polynomials whose error is below 2^-34.
// Multiplications and additions are separate, so that every SIMD target gives the same bits. The
// result is within 0.51 ulp of float32.
#include "gfx9/vector/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gfx9/vector/transcendental.cpp"
#include <hwy/foreach_target.h>

#include "gfx9/vector/float-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace uptempo::vgpu::gfx9::vector::HWY_NAMESPACE {
namespace {

template <size_t kN>
HWY_INLINE hn::Vec<DF64> polynomial(hn::Vec<DF64> x, const double (&coefficients)[kN]) {
  auto sum = hn::Set(DF64{}, coefficients[kN - 1]);
  for (size_t i = kN - 1; i-- > 0;)
    sum = hn::Add(hn::Mul(sum, x), hn::Set(DF64{}, coefficients[i]));
  return sum;
}

// ln(2)^k / k!
constexpr double kExp2[] = {1.0,
                            0.69314718055994530942,
                            0.24022650695910071233,
                            0.055504108664821579953,
                            0.0096181291076284771620,
                            0.0013333558146428443423,
                            0.00015403530393381609954,
                            0.000015252733804059840280,
                            0.0000013215486790144309488,
                            0.00000010178086009239699727};
constexpr auto exp2_of = [](auto v) HWY_ATTR {
  const auto set = [](double x) HWY_ATTR { return hn::Set(DF64{}, x); };
  const auto x = hn::Max(hn::Min(v, set(1000)), set(-1000));
  const auto n = hn::Round(x);
  const auto power = hn::BitCast(DF64{}, hn::ShiftLeft<52>(bits(hn::Add(n, set(0x1p52 + 1023)))));
  const auto result = hn::Mul(polynomial(hn::Sub(x, n), kExp2), power);
  return hn::IfThenElse(hn::IsNaN(v), v, result);
};

// 2 / (ln(2) (2k + 1)): log2((1 + s) / (1 - s)) = s * sum of c_k s^2k.
constexpr double kLog2[] = {2.88539008177792681472, 0.96179669392597560491, 0.57707801635558536294,
                            0.41219858311113240210, 0.32059889797532520164, 0.26230818925253880134,
                            0.22195308321368667806};
constexpr auto log2_of = [](auto v) HWY_ATTR {
  const auto set = [](double x) HWY_ATTR { return hn::Set(DF64{}, x); };
  const auto field = hn::And(hn::ShiftRight<52>(bits(v)), hn::Set(D64{}, 0x7ffu));
  const auto raw = hn::BitCast(DF64{}, hn::Or(hn::And(bits(v), hn::Set(D64{}, 0xfffffffffffffu)),
                                              hn::Set(D64{}, 0x3ff0000000000000u)));
  const auto high = hn::Gt(raw, set(1.4142135623730951));
  const auto m = hn::IfThenElse(high, hn::Mul(raw, set(0.5)), raw);
  const auto whole =
      hn::Sub(hn::BitCast(DF64{}, hn::Or(field, bits(set(0x1p52)))), set(0x1p52 + 1023));
  const auto exponent = hn::Add(whole, hn::IfThenElseZero(high, set(1)));
  const auto s = hn::Div(hn::Sub(m, set(1)), hn::Add(m, set(1)));
  auto result = hn::Add(hn::Mul(polynomial(hn::Mul(s, s), kLog2), s), exponent);
  const auto infinity = hn::BitCast(DF64{}, hn::Set(D64{}, 0x7ff0000000000000u));
  result = hn::IfThenElse(hn::Eq(v, hn::Zero(DF64{})), hn::Neg(infinity), result);
  result = hn::IfThenElse(hn::Lt(v, hn::Zero(DF64{})),
                          hn::BitCast(DF64{}, hn::Set(D64{}, 0x7ff8000000000000u)), result);
  // The logarithm of infinity is infinity, that of NaN is NaN.
  return hn::IfThenElse(hn::Or(hn::Eq(v, infinity), hn::IsNaN(v)), v, result);
};

// sin(2 pi r) = r * sum of c_k r^2k for |r| <= 1/4: (-1)^k (2 pi)^(2k+1) / (2k+1)!
constexpr double kSin[] = {6.2831853071795864769,  -41.341702240399760234,  81.605249276075054203,
                           -76.705859753061385842, 42.058693944897653145,   -15.094642576822990392,
                           3.8199525848482821277,  -0.71812230177850051223, 0.10422916220813984117};
constexpr auto sine_of_quarter = [](auto r) HWY_ATTR {
  return hn::Mul(polynomial(hn::Mul(r, r), kSin), r);
};
constexpr auto outside = [](auto v) HWY_ATTR {
  return hn::And(hn::Gt(hn::Abs(v), hn::Set(DF64{}, 256)), hn::IsFinite(v));
};
constexpr auto sin_of = [](auto v) HWY_ATTR {
  const auto set = [](double x) HWY_ATTR { return hn::Set(DF64{}, x); };
  const auto r = hn::Sub(v, hn::Round(v));
  const auto folded = hn::Sub(hn::CopySign(set(0.5), r), r);
  const auto result = sine_of_quarter(hn::IfThenElse(hn::Gt(hn::Abs(r), set(0.25)), folded, r));
  // An exact zero keeps its sign.
  return hn::IfThenZeroElse(outside(v), hn::IfThenElse(hn::Eq(v, hn::Zero(DF64{})), v, result));
};
constexpr auto cos_of = [](auto v) HWY_ATTR {
  const auto set = [](double x) HWY_ATTR { return hn::Set(DF64{}, x); };
  const auto r = hn::Sub(v, hn::Round(v));
  return hn::IfThenElse(outside(v), set(1), sine_of_quarter(hn::Sub(set(0.25), hn::Abs(r))));
};

constexpr auto exp2_narrow = [](auto v) HWY_ATTR { return narrowed(exp2_of(widened(v))); };
constexpr auto log2_narrow = [](auto v) HWY_ATTR { return narrowed(log2_of(widened(v))); };
constexpr auto sin_narrow = [](auto v) HWY_ATTR { return narrowed(sin_of(widened(v))); };
constexpr auto cos_narrow = [](auto v) HWY_ATTR { return narrowed(cos_of(widened(v))); };

// "1ULP accuracy, denormals are flushed" (CDNA3 ISA manual, VOP1), in every MODE. LLVM scales
// operands of these instructions for that reason. v_sin and v_cos keep denormals, and so do the
// other widths.
constexpr auto rsq_narrow = [](auto v) HWY_ATTR { return narrowed(float_rsq(widened(v))); };
template <unsigned kFlags = 0, class F>
constexpr Entry estimate(Opcode opcode, F) {
  return op<F32(F32), kFlags>(opcode, [](auto v) HWY_ATTR { return flushed(F{}(flushed(v))); });
}

constexpr Entry kEntries[] = {
    estimate(Opcode::v_rcp_f32, float_rcp),
    estimate(Opcode::v_rcp_iflag_f32, float_rcp),
    estimate<kWide>(Opcode::v_rsq_f32, rsq_narrow),
    estimate(Opcode::v_sqrt_f32, float_sqrt),
    op<F64(F64)>(Opcode::v_rcp_f64, float_rcp),
    op<F64(F64)>(Opcode::v_rsq_f64, float_rsq),
    op<F64(F64)>(Opcode::v_sqrt_f64, float_sqrt),
    op<F16(F16), kCold | kDivides>(Opcode::v_rcp_f16, float_rcp),
    op<F16(F16), kCold | kDivides>(Opcode::v_rsq_f16, float_rsq),
    op<F16(F16), kCold>(Opcode::v_sqrt_f16, float_sqrt),
    estimate<kWide>(Opcode::v_exp_f32, exp2_narrow),
    estimate<kWide | kCold>(Opcode::v_exp_legacy_f32, exp2_narrow),
    op<F16(F16), kWide | kCold>(Opcode::v_exp_f16, exp2_narrow),
    estimate<kWide>(Opcode::v_log_f32, log2_narrow),
    estimate<kWide | kCold>(Opcode::v_log_legacy_f32, log2_narrow),
    op<F16(F16), kWide | kCold | kDivides>(Opcode::v_log_f16, log2_narrow),
    op<F32(F32), kWide>(Opcode::v_sin_f32, sin_narrow),
    op<F16(F16), kWide | kCold>(Opcode::v_sin_f16, sin_narrow),
    op<F32(F32), kWide>(Opcode::v_cos_f32, cos_narrow),
    op<F16(F16), kWide | kCold>(Opcode::v_cos_f16, cos_narrow),
};

}  // namespace

std::span<const Entry> transcendental_entries() { return kEntries; }

}  // namespace uptempo::vgpu::gfx9::vector::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
