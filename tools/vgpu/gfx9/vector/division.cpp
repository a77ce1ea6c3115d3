// v_div_scale, v_div_fmas, v_div_fixup: compilers use them around a reciprocal for IEEE division.
//
// v_div_scale moves numerator and denominator out of the range where the Newton steps would lose
// bits or overflow. VCC records that the quotient must be scaled back, which v_div_fmas does in its
// last step. v_div_fixup inserts the special values.
//
// Where AMD's published pseudocode cannot match hardware, this code follows the arithmetic:
// - A denominator whose reciprocal is denormal is scaled down in every case, since scaling it up
//   overflows.
// - A quotient that became NaN in the steps between is an overflow.
// - v_div_fmas scales by 2^64 or 2^-64 (2^128, 2^-128), as in the RDNA 3 manual.
#include <limits>

#include "gfx9/vector/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gfx9/vector/division.cpp"
#include <hwy/foreach_target.h>

#include "gfx9/vector/float-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace uptempo::vgpu::gfx9::vector::HWY_NAMESPACE {
namespace {

template <class T>
struct Layout;
template <>
struct Layout<float> {
  static constexpr int kMantissa = 23, kFar = 96, kTiny = 23, kUnderflow = -150;
  static constexpr float kUp = 0x1p64f, kDown = 0x1p-64f, kMinNormal = 0x1p-126f,
                         kReciprocalDenormal = 0x1p126f,
                         kHalfDenormalUp = 0x1p-86f;  // 2^-150 * kUp
};
template <>
struct Layout<double> {
  static constexpr int kMantissa = 52, kFar = 768, kTiny = 53, kUnderflow = -1075;
  static constexpr double kUp = 0x1p128, kDown = 0x1p-128, kMinNormal = 0x1p-1022,
                          kReciprocalDenormal = 0x1p1022,
                          kHalfDenormalUp = 0x1p-947;  // 2^-1075 * kUp
};

// The biased exponent, as signed lanes.
template <class V>
HWY_INLINE auto exponent(V v) {
  using T = hn::TFromV<V>;
  const hn::RebindToSigned<hn::DFromV<V>> di;
  const auto field = hn::ShiftRight<Layout<T>::kMantissa>(bits(hn::Abs(v)));
  return hn::BitCast(di, field);
}

constexpr auto div_scale = [](auto value, auto denominator, auto numerator) HWY_ATTR {
  using V = decltype(value);
  using T = hn::TFromV<V>;
  using Of = Layout<T>;
  const hn::DFromV<V> d;
  const hn::RebindToSigned<decltype(d)> di;
  using I = hn::TFromD<decltype(di)>;
  const auto zero = hn::Zero(d);
  const auto min_normal = hn::Set(d, Of::kMinNormal);
  const auto is_denormal = [&](auto v) HWY_ATTR {
    return hn::And(hn::Lt(hn::Abs(v), min_normal), hn::Ne(v, zero));
  };
  const auto is_denominator = hn::Eq(value, denominator);
  const auto is_numerator = hn::Eq(value, numerator);

  const auto distance = hn::Sub(exponent(numerator), exponent(denominator));
  const auto far = hn::RebindMask(d, hn::Gt(distance, hn::Set(di, I{Of::kFar - 1})));
  const auto denominator_denormal = is_denormal(denominator);
  const auto reciprocal_denormal = hn::And(
      hn::Gt(hn::Abs(denominator), hn::Set(d, Of::kReciprocalDenormal)), hn::IsFinite(denominator));
  const auto quotient_denormal = is_denormal(hn::Div(numerator, denominator));
  const auto numerator_tiny =
      hn::RebindMask(d, hn::Lt(exponent(numerator), hn::Set(di, I{Of::kTiny + 1})));

  const auto up = hn::Mul(value, hn::Set(d, Of::kUp));
  const auto down = hn::Mul(value, hn::Set(d, Of::kDown));
  // In ascending priority: the last rule that holds wins.
  auto result = hn::IfThenElse(numerator_tiny, up, value);
  result = hn::IfThenElse(quotient_denormal, hn::IfThenElse(is_numerator, up, value), result);
  result = hn::IfThenElse(reciprocal_denormal, down, result);
  result = hn::IfThenElse(hn::And(reciprocal_denormal, quotient_denormal),
                          hn::IfThenElse(is_denominator, down, value), result);
  result = hn::IfThenElse(denominator_denormal, up, result);
  result = hn::IfThenElse(far, hn::IfThenElse(is_denominator, up, value), result);
  const auto any_zero = hn::Or(hn::Eq(denominator, zero), hn::Eq(numerator, zero));
  result = hn::IfThenElse(any_zero, hn::NaN(d), result);

  const auto scaled_back = hn::Or(far, hn::AndNot(denominator_denormal, quotient_denormal));
  return Carried{result, hn::AndNot(any_zero, scaled_back)};
};

constexpr auto div_fmas = [](auto a, auto b, auto c, auto scale) HWY_ATTR {
  using V = decltype(a);
  using Of = Layout<hn::TFromV<V>>;
  const hn::DFromV<V> d;
  const auto quotient = fused(a, b, c);
  // An estimate of at least 2 means that the denominator was scaled up.
  const auto large = hn::Not(hn::Lt(hn::Abs(c), hn::Set(d, hn::TFromV<V>{2})));
  const auto factor = hn::IfThenElse(large, hn::Set(d, Of::kUp), hn::Set(d, Of::kDown));
  const auto inverse = hn::IfThenElse(large, hn::Set(d, Of::kDown), hn::Set(d, Of::kUp));
  const auto scaled = hn::Mul(quotient, factor);
  // Rounds once. If the first rounding put the quotient halfway between two denormals, its error
  // decides the direction.
  const auto rest = hn::Sub(quotient, hn::Mul(scaled, inverse));
  const auto error = fused(a, b, hn::Sub(c, quotient));
  const auto half = hn::Mul(hn::Set(d, Of::kHalfDenormalUp),
                            hn::IfThenElse(large, hn::Zero(d), hn::Set(d, hn::TFromV<V>{1})));
  const auto misled = hn::And(
      hn::Eq(hn::Abs(rest), half),
      hn::Gt(hn::Mul(hn::CopySign(hn::Set(d, hn::TFromV<V>{1}), rest), error), hn::Zero(d)));
  const auto step =
      hn::CopySign(hn::Set(d, std::numeric_limits<hn::TFromV<V>>::denorm_min()), rest);
  return hn::IfThenElse(scale, hn::IfThenElse(misled, hn::Add(scaled, step), scaled), quotient);
};

constexpr auto div_fixup = [](auto quotient, auto denominator, auto numerator) HWY_ATTR {
  using V = decltype(quotient);
  const hn::DFromV<V> d;
  const hn::RebindToSigned<decltype(d)> di;
  using I = hn::TFromD<decltype(di)>;
  const auto zero = hn::Zero(d);
  const auto sign =
      hn::And(hn::Xor(numerator, denominator), hn::BitCast(d, hn::Set(Bits<V>{}, kSignBit<V>)));
  const auto with_sign = [&](auto magnitude) HWY_ATTR { return hn::Or(magnitude, sign); };
  const auto infinity = hn::Inf(d);
  const auto n_zero = hn::Eq(numerator, zero);
  const auto d_zero = hn::Eq(denominator, zero);
  const auto n_infinite = hn::IsInf(numerator);
  const auto d_infinite = hn::IsInf(denominator);
  const auto distance = hn::Sub(exponent(numerator), exponent(denominator));
  const auto underflow =
      hn::RebindMask(d, hn::Lt(distance, hn::Set(di, I{Layout<hn::TFromV<V>>::kUnderflow})));

  // Special values are handled below, so a NaN here comes from steps that overflowed.
  auto result = with_sign(hn::IfThenElse(hn::IsNaN(quotient), infinity, hn::Abs(quotient)));
  result = hn::IfThenElse(underflow, with_sign(zero), result);
  result = hn::IfThenElse(hn::Or(d_infinite, n_zero), with_sign(zero), result);
  result = hn::IfThenElse(hn::Or(d_zero, n_infinite), with_sign(infinity), result);
  const auto undefined = hn::Or(hn::And(n_zero, d_zero), hn::And(n_infinite, d_infinite));
  const auto invalid =
      hn::BitCast(d, hn::Or(bits(infinity), hn::Set(Bits<V>{}, kSignBit<V> | kQuietBit<V>)));
  result = hn::IfThenElse(undefined, invalid, result);
  result = hn::IfThenElse(hn::IsNaN(denominator), quieted(denominator), result);
  return hn::IfThenElse(hn::IsNaN(numerator), quieted(numerator), result);
};

constexpr Entry kEntries[] = {
    op<WithCarry<F32>(F32, F32, F32)>(Opcode::v_div_scale_f32, div_scale),
    op<WithCarry<F64>(F64, F64, F64)>(Opcode::v_div_scale_f64, div_scale),
    op<F32(F32, F32, F32, Bit)>(Opcode::v_div_fmas_f32, div_fmas),
    op<F64(F64, F64, F64, Bit)>(Opcode::v_div_fmas_f64, div_fmas),
    op<F32(F32, F32, F32)>(Opcode::v_div_fixup_f32, div_fixup),
    op<F64(F64, F64, F64)>(Opcode::v_div_fixup_f64, div_fixup),
    op<F16(F16, F16, F16), kKeepsHigh | kDivides>(Opcode::v_div_fixup_f16, div_fixup),
    op<F16(F16, F16, F16), kCold | kDivides>(Opcode::v_div_fixup_legacy_f16, div_fixup),
};

}  // namespace

std::span<const Entry> division_entries() { return kEntries; }

}  // namespace uptempo::vgpu::gfx9::vector::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
