// Lanes as vectors, for each SIMD target: types in registers, their 32-bit image in the register
// file, and masks.
//
// A chunk has as many lanes as one vector holds. Instructions with a 64-bit type ("wide") work on
// chunks of 64-bit lanes and on half vectors of their 32-bit operands. All operands of an
// instruction therefore have the same number of lanes.

// Per-target include guard.
#if defined(UPTEMPO_VGPU_GFX9_LANES_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef UPTEMPO_VGPU_GFX9_LANES_INL_HPP
#undef UPTEMPO_VGPU_GFX9_LANES_INL_HPP
#else
#define UPTEMPO_VGPU_GFX9_LANES_INL_HPP
#endif

#include <hwy/highway.h>

#include <cmath>
#include <cstring>

#include "gfx9/vector/entry.hpp"
#include "gfx9/vector/half.hpp"

HWY_BEFORE_NAMESPACE();
namespace uptempo::vgpu::gfx9::vector::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D64 = hn::ScalableTag<uint64_t>;
template <bool Wide>
using D32 = std::conditional_t<Wide, hn::Rebind<uint32_t, D64>, hn::ScalableTag<uint32_t>>;
template <bool Wide>
inline constexpr size_t kChunk = hn::MaxLanes(D32<Wide>{});

template <bool Wide>
using V32 = hn::Vec<D32<Wide>>;

// The 32-bit image of a value: one vector per register.
template <bool Wide>
struct Image {
  V32<Wide> lo, hi;
};

template <class D>
HWY_INLINE auto mask_at(D d, uint64_t bits, size_t lane) {
  uint8_t bytes[8];
  const uint64_t shifted = bits >> lane;
  std::memcpy(bytes, &shifted, sizeof bytes);
  return hn::LoadMaskBits(d, bytes);
}

template <class D, class M>
HWY_INLINE uint64_t bits_of(D d, M mask) {
  uint8_t bytes[8] = {};
  hn::StoreMaskBits(d, mask, bytes);
  uint64_t bits;
  std::memcpy(&bits, bytes, sizeof bits);
  constexpr size_t kN = hn::MaxLanes(D{});
  return kN >= 8 ? bits : bits & ((1u << kN) - 1u);
}

// Float16 as the hardware has it (denormals kept), computed in float32.
template <class D>
HWY_INLINE auto half_to_float([[maybe_unused]] D d32, hn::Vec<D> bits) {
  const hn::Rebind<float, D> df;
#if HWY_TARGET == HWY_SSE4
  // An exact multiplication increases the exponent and normalises denormals; 2^112 = 0x77800000.
  const auto magnitude = hn::ShiftLeft<13>(hn::And(bits, hn::Set(d32, 0x7fffu)));
  const auto scaled = hn::BitCast(
      d32, hn::Mul(hn::BitCast(df, magnitude), hn::BitCast(df, hn::Set(d32, 0x77800000u))));
  const auto special = hn::Or(magnitude, hn::Set(d32, 0x7f800000u));
  const auto finite_limit = hn::Set(d32, 0x0f7fffffu);
  auto result = hn::IfThenElse(hn::Gt(magnitude, finite_limit), special, scaled);
  result = hn::Or(result, hn::ShiftLeft<16>(hn::And(bits, hn::Set(d32, 0x8000u))));
  return hn::BitCast(df, result);
#else
  const hn::Rebind<uint16_t, D> d16;
  const hn::Rebind<hwy::float16_t, D> dh;
  return hn::PromoteTo(df, hn::BitCast(dh, hn::TruncateTo(d16, bits)));
#endif
}

// Rounds as MXCSR specifies, or toward zero.
enum class HalfRounding { current, toward_zero };
template <HalfRounding kRounding = HalfRounding::current, class D>
HWY_INLINE hn::Vec<D> float_to_half(D d32, hn::Vec<hn::Rebind<float, D>> value) {
#if HWY_TARGET == HWY_SSE4
  alignas(16) float in[hn::MaxLanes(D{})];
  alignas(16) uint32_t out[hn::MaxLanes(D{})];
  hn::Store(value, hn::Rebind<float, D>{}, in);
  for (size_t i = 0; i < hn::MaxLanes(D{}); ++i) {
    out[i] = kRounding == HalfRounding::current ? half_of(in[i]) : half_of(in[i], 3);
  }
  return hn::Load(d32, out);
#else
  const hn::Rebind<uint16_t, D> d16;
  constexpr int kControl =
      kRounding == HalfRounding::current ? _MM_FROUND_CUR_DIRECTION : _MM_FROUND_TO_ZERO;
  if constexpr (hn::MaxLanes(D{}) == 16) {
    return hn::PromoteTo(d32, hn::Vec<decltype(d16)>{_mm512_cvtps_ph(value.raw, kControl)});
  } else if constexpr (hn::MaxLanes(D{}) == 8) {
    return hn::PromoteTo(d32, hn::Vec<decltype(d16)>{_mm256_cvtps_ph(value.raw, kControl)});
  } else {
    return hn::PromoteTo(d32, hn::Vec<decltype(d16)>{_mm_cvtps_ph(value.raw, kControl)});
  }
#endif
}

// a * b + c with one rounding.
template <class V>
HWY_INLINE V fused(V a, V b, V c) {
#if HWY_TARGET == HWY_SSE4
  const hn::DFromV<V> d;
  using T = hn::TFromD<decltype(d)>;
  constexpr size_t kN = hn::MaxLanes(hn::DFromV<V>{});
  alignas(16) T x[kN], y[kN], z[kN];
  hn::Store(a, d, x);
  hn::Store(b, d, y);
  hn::Store(c, d, z);
  for (size_t i = 0; i < kN; ++i) z[i] = std::fma(x[i], y[i], z[i]);
  return hn::Load(d, z);
#else
  return hn::MulAdd(a, b, c);
#endif
}

// Representation of each operand type in a vector.
template <class Tag, bool Wide>
struct Repr;

template <bool Wide>
struct Repr<U32, Wide> {
  static HWY_INLINE auto decode(Image<Wide> v) { return v.lo; }
  static HWY_INLINE Image<Wide> encode(V32<Wide> v) { return {v, v}; }
};
template <bool Wide>
struct Repr<I32, Wide> {
  using D = hn::Rebind<int32_t, D32<Wide>>;
  static HWY_INLINE auto decode(Image<Wide> v) { return hn::BitCast(D{}, v.lo); }
  static HWY_INLINE Image<Wide> encode(hn::Vec<D> v) {
    return {hn::BitCast(D32<Wide>{}, v), hn::BitCast(D32<Wide>{}, v)};
  }
};
template <bool Wide>
struct Repr<F32, Wide> {
  using D = hn::Rebind<float, D32<Wide>>;
  static HWY_INLINE auto decode(Image<Wide> v) { return hn::BitCast(D{}, v.lo); }
  static HWY_INLINE Image<Wide> encode(hn::Vec<D> v) {
    return {hn::BitCast(D32<Wide>{}, v), hn::BitCast(D32<Wide>{}, v)};
  }
};
template <bool Wide>
struct Repr<U16, Wide> {
  static HWY_INLINE auto decode(Image<Wide> v) {
    return hn::And(v.lo, hn::Set(D32<Wide>{}, 0xffffu));
  }
  static HWY_INLINE Image<Wide> encode(V32<Wide> v) {
    v = hn::And(v, hn::Set(D32<Wide>{}, 0xffffu));
    return {v, v};
  }
};
template <bool Wide>
struct Repr<I16, Wide> {
  using D = hn::Rebind<int32_t, D32<Wide>>;
  static HWY_INLINE auto decode(Image<Wide> v) {
    return hn::ShiftRight<16>(hn::BitCast(D{}, hn::ShiftLeft<16>(v.lo)));
  }
  static HWY_INLINE Image<Wide> encode(hn::Vec<D> v) {
    return Repr<U16, Wide>::encode(hn::BitCast(D32<Wide>{}, v));
  }
};
template <bool Wide>
struct Repr<F16, Wide> {
  using D = hn::Rebind<float, D32<Wide>>;
  static HWY_INLINE auto decode(Image<Wide> v) { return half_to_float(D32<Wide>{}, v.lo); }
  static HWY_INLINE Image<Wide> encode(hn::Vec<D> v) {
    const auto bits = float_to_half(D32<Wide>{}, v);
    return {bits, bits};
  }
};
template <>
struct Repr<U64, true> {
  static HWY_INLINE hn::Vec<D64> decode(Image<true> v) {
    return hn::Or(hn::PromoteTo(D64{}, v.lo), hn::ShiftLeft<32>(hn::PromoteTo(D64{}, v.hi)));
  }
  static HWY_INLINE Image<true> encode(hn::Vec<D64> v) {
    return {hn::TruncateTo(D32<true>{}, v), hn::TruncateTo(D32<true>{}, hn::ShiftRight<32>(v))};
  }
};
template <>
struct Repr<I64, true> {
  using D = hn::RebindToSigned<D64>;
  static HWY_INLINE hn::Vec<D> decode(Image<true> v) {
    return hn::BitCast(D{}, Repr<U64, true>::decode(v));
  }
  static HWY_INLINE Image<true> encode(hn::Vec<D> v) {
    return Repr<U64, true>::encode(hn::BitCast(D64{}, v));
  }
};
template <>
struct Repr<F64, true> {
  using D = hn::RebindToFloat<D64>;
  static HWY_INLINE hn::Vec<D> decode(Image<true> v) {
    return hn::BitCast(D{}, Repr<U64, true>::decode(v));
  }
  static HWY_INLINE Image<true> encode(hn::Vec<D> v) {
    return Repr<U64, true>::encode(hn::BitCast(D64{}, v));
  }
};

// Stores the lanes of `v` whose bit is set in `bits`, by a blend and a whole store instead of a
// masked store. Store forwarding can then serve the next instruction's load, and AVX2's masked
// stores are slow on many processors.
template <bool Full, class D>
HWY_INLINE void store(D d, hn::Vec<D> v, uint64_t bits, uint32_t* to, size_t lane) {
  if constexpr (Full) {
    hn::Store(v, d, to + lane);
  } else {
    hn::Store(hn::IfThenElse(mask_at(d, bits, lane), v, hn::Load(d, to + lane)), d, to + lane);
  }
}

}  // namespace uptempo::vgpu::gfx9::vector::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
