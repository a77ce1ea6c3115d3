// Float16 arithmetic, single and packed, computed in float32.
//
// For +, -, *, / and sqrt, one float32 operation on float16 values, rounded to float16, equals the
// correctly rounded float16 operation: 24 bits are at least 2 * 11 + 2. A fused multiply-add goes
// through float64 and is rounded to odd in between.
#include "gfx9/vector/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gfx9/vector/float16.cpp"
#include <hwy/foreach_target.h>

#include "gfx9/vector/float-inl.hpp"
#include "gfx9/vector/packed-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace uptempo::vgpu::gfx9::vector::HWY_NAMESPACE {
namespace {

constexpr auto rounded = [](auto v) HWY_ATTR {
  const D32<false> d;
  return half_to_float(d, float_to_half(d, v));
};
constexpr auto fract = [](auto a) HWY_ATTR {
  const auto largest = hn::Set(hn::DFromV<decltype(a)>{}, 0x1.ffcp-1f);
  const auto fraction = hn::Sub(a, hn::Floor(a));
  return hn::IfThenElse(hn::Gt(fraction, largest), largest, fraction);
};
constexpr auto mad = [](auto a, auto b, auto c)
                         HWY_ATTR { return hn::Add(rounded(hn::Mul(a, b)), c); };
constexpr auto fma = [](auto a, auto b, auto c) HWY_ATTR {
  return narrowed_to_odd(hn::Add(hn::Mul(widened(a), widened(b)), widened(c)));
};

// The same in float32, exact only in the usual rounding mode. The error of the sum decides which
// neighbour is odd.
constexpr auto fma_nearest = [](auto a, auto b, auto c) HWY_ATTR {
  const D32<false> d;
  const hn::DFromV<decltype(a)> df;
  const auto product = hn::Mul(a, b);  // exact
  const auto sum = hn::Add(product, c);
  const auto back = hn::Sub(sum, product);
  const auto error = hn::Add(hn::Sub(product, hn::Sub(sum, back)), hn::Sub(c, back));
  const auto inexact = hn::Or(hn::Lt(error, hn::Zero(df)), hn::Gt(error, hn::Zero(df)));
  const auto even = hn::Eq(hn::And(bits(sum), hn::Set(d, 1u)), hn::Zero(d));
  // One step away from zero when the error has the sum's sign, else toward zero: -1 or +1.
  const auto opposite = hn::ShiftRight<31>(hn::Xor(bits(sum), bits(error)));
  const auto step = hn::Sub(hn::Set(d, 1u), hn::Add(opposite, opposite));
  const auto moved = hn::IfThenElseZero(hn::And(hn::RebindMask(d, inexact), even), step);
  return hn::BitCast(df, hn::Add(bits(sum), moved));
};

// min and max work on the bits, where signalling NaNs can be recognised. As two's complement the
// values have the order of integers, with -0 below +0.
constexpr auto ordered = [](auto v) HWY_ATTR {
  const hn::DFromV<decltype(v)> d;
  return hn::Xor(v, hn::And(hn::BroadcastSignBit(v), hn::Set(d, 0x7fff)));
};
constexpr auto magnitude = [](auto v) HWY_ATTR {
  return hn::And(v, hn::Set(hn::DFromV<decltype(v)>{}, 0x7fff));
};
constexpr auto is_nan = [](auto v) HWY_ATTR {
  return hn::Gt(magnitude(v), hn::Set(hn::DFromV<decltype(v)>{}, 0x7c00));
};
constexpr auto choose = [](auto a, auto b, auto chosen) HWY_ATTR {
  const hn::DFromV<decltype(a)> d;
  const auto quiet = hn::Set(d, 0x200);
  const auto signalling = [&](auto v) HWY_ATTR {
    return hn::And(is_nan(v), hn::Eq(hn::And(v, quiet), hn::Zero(d)));
  };
  auto result = hn::IfThenElse(is_nan(a), b, hn::IfThenElse(is_nan(b), a, chosen));
  result = hn::IfThenElse(signalling(b), hn::Or(b, quiet), result);
  return hn::IfThenElse(signalling(a), hn::Or(a, quiet), result);
};
constexpr auto min = [](auto a, auto b) HWY_ATTR {
  return choose(a, b, hn::IfThenElse(hn::Lt(ordered(a), ordered(b)), a, b));
};
constexpr auto max = [](auto a, auto b) HWY_ATTR {
  return choose(a, b, hn::IfThenElse(hn::Gt(ordered(a), ordered(b)), a, b));
};
constexpr auto min3 = [](auto a, auto b, auto c) HWY_ATTR { return min(min(a, b), c); };
constexpr auto max3 = [](auto a, auto b, auto c) HWY_ATTR { return max(max(a, b), c); };
constexpr auto med3 = [](auto a, auto b, auto c) HWY_ATTR {
  const auto nan = hn::Or(hn::Or(is_nan(a), is_nan(b)), is_nan(c));
  // As for float32: the greater of the other two beside the largest. Zeros compare equal there, so
  // the median of three zeros is +0 if one of them is +0.
  const auto equal = [](auto x, auto y) HWY_ATTR {
    const auto zero = hn::Zero(hn::DFromV<decltype(x)>{});
    return hn::Or(hn::Eq(x, y), hn::Eq(hn::Or(magnitude(x), magnitude(y)), zero));
  };
  const auto largest = max3(a, b, c);
  const auto middle = hn::IfThenElse(equal(largest, a), max(b, c),
                                     hn::IfThenElse(equal(largest, b), max(a, c), max(a, b)));
  return hn::IfThenElse(nan, min3(a, b, c), middle);
};
// Computed as integers; staged and written as floats.
constexpr Entry as_float(Entry e) {
  for (Type& type : e.source) {
    if (type != Type::none) type = Type::f16;
  }
  e.result = Type::f16;
  return e;
}

constexpr Entry packed_fma(Opcode opcode) {
  using Signature = F16(F16, F16, F16);
  return as_packed<Signature, 0, decltype(fma_nearest)>(op<Signature, kWide | kCold>(opcode, fma));
}

constexpr Entry kEntries[] = {
    op<F16(F16, F16)>(Opcode::v_add_f16, float_add),
    op<F16(F16, F16)>(Opcode::v_sub_f16, float_sub),
    op<F16(F16, F16)>(Opcode::v_subrev_f16, float_subrev),
    op<F16(F16, F16)>(Opcode::v_mul_f16, float_mul),
    op<F16(F16, F16, F16), kCold>(Opcode::v_mac_f16, mad),
    op<F16(F16, F16, F16), kCold>(Opcode::v_madmk_f16, mad),
    op<F16(F16, F16, F16), kCold>(Opcode::v_madak_f16, mad),
    op<F16(F16, F16, F16), kKeepsHigh>(Opcode::v_mad_f16, mad),
    op<F16(F16, F16, F16), kCold>(Opcode::v_mad_legacy_f16, mad),
    op<F16(F16, F16, F16), kWide | kKeepsHigh>(Opcode::v_fma_f16, fma),
    op<F16(F16, F16, F16), kWide | kCold>(Opcode::v_fma_legacy_f16, fma),
    as_float(op<I16(I16, I16), kIeee | kCold>(Opcode::v_min_f16, min)),
    as_float(op<I16(I16, I16), kIeee | kCold>(Opcode::v_max_f16, max)),
    as_float(op<I16(I16, I16, I16), kIeee | kKeepsHigh>(Opcode::v_min3_f16, min3)),
    as_float(op<I16(I16, I16, I16), kIeee | kKeepsHigh>(Opcode::v_max3_f16, max3)),
    as_float(op<I16(I16, I16, I16), kIeee | kKeepsHigh>(Opcode::v_med3_f16, med3)),
    op<F16(F16), kCold>(Opcode::v_trunc_f16, float_trunc),
    op<F16(F16), kCold>(Opcode::v_ceil_f16, float_ceil),
    op<F16(F16), kCold>(Opcode::v_floor_f16, float_floor),
    op<F16(F16), kCold>(Opcode::v_rndne_f16, float_rndne),
    op<F16(F16), kCold>(Opcode::v_fract_f16, fract),
    op<F16(F16, I16), kWide | kCold>(
        Opcode::v_ldexp_f16,
        [](auto a, auto n) HWY_ATTR {
          return narrowed_to_odd(scaled(widened(a), hn::PromoteTo(hn::RebindToSigned<D64>{}, n)));
        }),

    pk<F16(F16, F16)>(Opcode::v_pk_add_f16, float_add),
    pk<F16(F16, F16)>(Opcode::v_pk_mul_f16, float_mul),
    packed_fma(Opcode::v_pk_fma_f16),
    packed_fma(Opcode::v_pk_fmac_f16),
    as_float(pk<I16(I16, I16), kIeee>(Opcode::v_pk_min_f16, min)),
    as_float(pk<I16(I16, I16), kIeee>(Opcode::v_pk_max_f16, max)),
};

}  // namespace

std::span<const Entry> float16_entries() { return kEntries; }

}  // namespace uptempo::vgpu::gfx9::vector::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
