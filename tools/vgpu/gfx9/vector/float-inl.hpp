// Float functions shared by all widths.

// Per-target include guard.
#if defined(UPTEMPO_VGPU_GFX9_FLOAT_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef UPTEMPO_VGPU_GFX9_FLOAT_INL_HPP
#undef UPTEMPO_VGPU_GFX9_FLOAT_INL_HPP
#else
#define UPTEMPO_VGPU_GFX9_FLOAT_INL_HPP
#endif

#include <limits>

#include "gfx9/vector/instruction-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace uptempo::vgpu::gfx9::vector::HWY_NAMESPACE {
namespace {

template <class V>
using Bits = hn::RebindToUnsigned<hn::DFromV<V>>;
template <class V>
HWY_INLINE auto bits(V v) {
  return hn::BitCast(Bits<V>{}, v);
}
template <class V>
inline constexpr auto kSignBit = hn::TFromD<Bits<V>>{1} << (sizeof(hn::TFromD<Bits<V>>) * 8 - 1);
template <class V>
inline constexpr auto kQuietBit =
    hn::TFromD<Bits<V>>{1} << (sizeof(hn::TFromD<Bits<V>>) == 8 ? 51 : 22);

template <class V>
HWY_INLINE V quieted(V v) {
  const hn::DFromV<V> d;
  return hn::Or(v, hn::BitCast(d, hn::Set(Bits<V>{}, kQuietBit<V>)));
}
template <class V>
HWY_INLINE auto is_signalling(V v) {
  const auto quiet = hn::And(bits(v), hn::Set(Bits<V>{}, kQuietBit<V>));
  return hn::And(hn::IsNaN(v), hn::RebindMask(hn::DFromV<V>{}, hn::Eq(quiet, hn::Zero(Bits<V>{}))));
}

// Replaces float32 denormals by zeros of their sign.
constexpr auto flushed = [](auto v) HWY_ATTR {
  const Bits<decltype(v)> d;
  const auto denormal = hn::Eq(hn::And(bits(v), hn::Set(d, 0x7f800000u)), hn::Zero(d));
  return hn::BitCast(
      hn::DFromV<decltype(v)>{},
      hn::And(bits(v), hn::IfThenElse(denormal, hn::Set(d, 0x80000000u), hn::Set(d, ~0u))));
};

// If one of the pair is a NaN, gives the other one. -0 is below +0. A signalling NaN gives its
// quiet form (MODE.ieee set). When MODE.ieee is clear, the general handler quiets operands first.
constexpr auto select_extreme = [](auto a, auto b, auto chosen) HWY_ATTR {
  auto result = hn::IfThenElse(hn::IsNaN(a), b, hn::IfThenElse(hn::IsNaN(b), a, chosen));
  result = hn::IfThenElse(is_signalling(b), quieted(b), result);
  return hn::IfThenElse(is_signalling(a), quieted(a), result);
};
constexpr auto float_min = [](auto a, auto b) HWY_ATTR {
  // Equal values differ at most in the sign of zero.
  return select_extreme(
      a, b, hn::IfThenElse(hn::Eq(a, b), hn::Or(a, b), hn::IfThenElse(hn::Lt(a, b), a, b)));
};
constexpr auto float_max = [](auto a, auto b) HWY_ATTR {
  return select_extreme(
      a, b, hn::IfThenElse(hn::Eq(a, b), hn::And(a, b), hn::IfThenElse(hn::Lt(b, a), a, b)));
};
constexpr auto float_min3 = [](auto a, auto b, auto c)
                                HWY_ATTR { return float_min(float_min(a, b), c); };
constexpr auto float_max3 = [](auto a, auto b, auto c)
                                HWY_ATTR { return float_max(float_max(a, b), c); };
constexpr auto float_med3 = [](auto a, auto b, auto c) HWY_ATTR {
  const auto largest = float_max3(a, b, c);
  const auto middle =
      hn::IfThenElse(hn::Eq(largest, a), float_max(b, c),
                     hn::IfThenElse(hn::Eq(largest, b), float_max(a, c), float_max(a, b)));
  const auto nan = hn::Or(hn::Or(hn::IsNaN(a), hn::IsNaN(b)), hn::IsNaN(c));
  return hn::IfThenElse(nan, float_min3(a, b, c), middle);
};

constexpr auto float_add = [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); };
constexpr auto float_sub = [](auto a, auto b) HWY_ATTR { return hn::Sub(a, b); };
constexpr auto float_subrev = [](auto a, auto b) HWY_ATTR { return hn::Sub(b, a); };
constexpr auto float_mul = [](auto a, auto b) HWY_ATTR { return hn::Mul(a, b); };
constexpr auto float_fma = [](auto a, auto b, auto c) HWY_ATTR { return fused(a, b, c); };
constexpr auto float_trunc = [](auto a) HWY_ATTR { return hn::Trunc(a); };
constexpr auto float_ceil = [](auto a) HWY_ATTR { return hn::Ceil(a); };
constexpr auto float_floor = [](auto a) HWY_ATTR { return hn::Floor(a); };
constexpr auto float_rndne = [](auto a) HWY_ATTR { return hn::Round(a); };
// Always below 1. If the subtraction rounds up to 1, the result is the largest number below 1
// (compilers use it for min(x - floor(x), 1 - ulp)).
constexpr auto float_fract = [](auto a) HWY_ATTR {
  const hn::DFromV<decltype(a)> d;
  using T = hn::TFromD<decltype(d)>;
  const auto fraction = hn::Sub(a, hn::Floor(a));
  const auto largest = hn::Set(d, T{1} - std::numeric_limits<T>::epsilon() / 2);
  return hn::IfThenElse(hn::Gt(fraction, largest), largest, fraction);
};
constexpr auto float_sqrt = [](auto a) HWY_ATTR { return hn::Sqrt(a); };
constexpr auto float_rcp = [](auto a) HWY_ATTR {
  const hn::DFromV<decltype(a)> d;
  return hn::Div(hn::Set(d, hn::TFromD<decltype(d)>{1}), a);
};
constexpr auto float_rsq = [](auto a) HWY_ATTR {
  const hn::DFromV<decltype(a)> d;
  return hn::Div(hn::Set(d, hn::TFromD<decltype(d)>{1}), hn::Sqrt(a));
};

// Converts float32 (and float16 held in float32) to the float64 of the same value, and back with
// one rounding.
using DF64 = hn::RebindToFloat<D64>;
using DF32 = hn::Rebind<float, D64>;
template <class V>
HWY_INLINE hn::Vec<DF64> widened(V v) {
  return hn::PromoteTo(DF64{}, v);
}
HWY_INLINE hn::Vec<DF32> narrowed(hn::Vec<DF64> v) { return hn::DemoteTo(DF32{}, v); }

// Returns the float32 that rounds to the same float16 as `v` in any rounding mode: inexact results
// get an odd last bit.
HWY_INLINE hn::Vec<DF32> narrowed_to_odd(hn::Vec<DF64> v) {
  const D32<true> d;
  const auto near = narrowed(v);
  const auto back = widened(near);
  const auto near_bits = hn::BitCast(d, near);
  const auto inexact = hn::TruncateTo(
      d, hn::VecFromMask(D64{}, hn::RebindMask(D64{}, hn::And(hn::Ne(back, v), hn::Eq(v, v)))));
  const auto too_large = hn::TruncateTo(
      d, hn::VecFromMask(D64{}, hn::RebindMask(D64{}, hn::Gt(hn::Abs(back), hn::Abs(v)))));
  const auto truncated = hn::Add(near_bits, too_large);  // minus one in the last place
  return hn::BitCast(DF32{}, hn::Or(truncated, hn::And(inexact, hn::Set(d, 1u))));
}

// v * 2^n, rounded once; n is any int32 in 64-bit lanes. n is limited to +-1000: 2^n stays normal,
// and the product of any float32 or float16 value becomes zero or infinity in its own format.
HWY_INLINE hn::Vec<DF64> scaled(hn::Vec<DF64> v, hn::Vec<hn::RebindToSigned<D64>> n) {
  const hn::RebindToSigned<D64> di;
  const auto power = [&](auto e) HWY_ATTR {
    return hn::BitCast(DF64{}, hn::ShiftLeft<52>(hn::Add(e, hn::Set(di, 1023))));
  };
  const auto limited = [&](auto e) HWY_ATTR {
    return hn::Max(hn::Min(e, hn::Set(di, 1000)), hn::Set(di, -1000));
  };
  return hn::Mul(v, power(limited(n)));
}

}  // namespace
}  // namespace uptempo::vgpu::gfx9::vector::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
