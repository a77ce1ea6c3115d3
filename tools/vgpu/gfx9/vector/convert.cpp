// Conversions between types. To integer: truncated, saturated, NaN gives 0.
#include "gfx9/vector/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gfx9/vector/convert.cpp"
#include <hwy/foreach_target.h>

#include "gfx9/vector/float-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace uptempo::vgpu::gfx9::vector::HWY_NAMESPACE {
namespace {

using DI64 = hn::RebindToSigned<D64>;

template <class V>
HWY_INLINE V without_nan(V v) {
  return hn::IfThenElseZero(hn::Eq(v, v), v);
}
constexpr auto clamped = [](auto v, auto low, auto high) HWY_ATTR {
  const hn::DFromV<decltype(v)> d;
  return hn::Max(hn::Min(without_nan(v), hn::Set(d, high)), hn::Set(d, low));
};

constexpr auto to_i32 = [](auto v) HWY_ATTR {
  const hn::RebindToSigned<hn::DFromV<decltype(v)>> di;
  const auto safe = without_nan(v);
  const auto too_large =
      hn::RebindMask(di, hn::Not(hn::Lt(safe, hn::Set(hn::DFromV<decltype(v)>{}, 0x1p31f))));
  return hn::IfThenElse(too_large, hn::Set(di, 0x7fffffff), hn::ConvertTo(di, safe));
};
constexpr auto to_u32 = [](auto v) HWY_ATTR {
  const hn::DFromV<decltype(v)> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const hn::RebindToSigned<decltype(d)> di;
  const auto safe = hn::Max(without_nan(v), hn::Zero(d));
  const auto half = hn::Set(d, 0x1p31f);
  const auto upper = hn::Not(hn::Lt(safe, half));
  const auto low =
      hn::BitCast(du, hn::ConvertTo(di, hn::IfThenElse(upper, hn::Sub(safe, half), safe)));
  const auto value =
      hn::Add(low, hn::IfThenElseZero(hn::RebindMask(du, upper), hn::Set(du, 0x80000000u)));
  const auto too_large = hn::RebindMask(du, hn::Not(hn::Lt(safe, hn::Set(d, 0x1p32f))));
  return hn::IfThenElse(too_large, hn::Set(du, ~0u), value);
};
constexpr auto from_i32 = [](auto v) HWY_ATTR {
  return hn::ConvertTo(hn::RebindToFloat<hn::DFromV<decltype(v)>>{}, v);
};
// High and low half are exact; their sum rounds once.
constexpr auto from_u32 = [](auto v) HWY_ATTR {
  const hn::DFromV<decltype(v)> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::RebindToFloat<decltype(d)> df;
  const auto high = hn::ConvertTo(df, hn::BitCast(di, hn::ShiftRight<16>(v)));
  const auto low = hn::ConvertTo(df, hn::BitCast(di, hn::And(v, hn::Set(d, 0xffffu))));
  return hn::Add(hn::Mul(high, hn::Set(df, 65536.0f)), low);
};

constexpr auto f64_to_i32 = [](auto v) HWY_ATTR {
  return hn::DemoteTo(hn::Rebind<int32_t, D64>{}, hn::Trunc(clamped(v, -0x1p31, 0x1p31 - 1)));
};
// 2^52 + x holds x in its low bits.
constexpr auto f64_to_u32 = [](auto v) HWY_ATTR {
  const auto integer = hn::Add(hn::Trunc(clamped(v, 0.0, 0x1p32 - 1)), hn::Set(DF64{}, 0x1p52));
  return hn::TruncateTo(D32<true>{}, bits(integer));
};
constexpr auto u32_to_f64 = [](auto v) HWY_ATTR {
  const auto shifted =
      hn::BitCast(DF64{}, hn::Or(hn::PromoteTo(D64{}, v), bits(hn::Set(DF64{}, 0x1p52))));
  // When rounding down, the difference of equal numbers is -0.
  return hn::Abs(hn::Sub(shifted, hn::Set(DF64{}, 0x1p52)));
};

template <int kByte>
HWY_INLINE auto from_byte(V32<false> v) {
  const D32<false> d;
  return from_i32(hn::BitCast(hn::RebindToSigned<D32<false>>{},
                              hn::And(hn::ShiftRight<8 * kByte>(v), hn::Set(d, 0xffu))));
}

// Rounded to the nearest of the 2^n - 1 steps of one half (unsigned) or between -1 and 1 (signed).
constexpr auto to_snorm = [](auto v) HWY_ATTR {
  const hn::DFromV<decltype(v)> d;
  const D32<false> du;
  return hn::And(
      hn::BitCast(du, hn::NearestInt(hn::Mul(clamped(v, -1.0f, 1.0f), hn::Set(d, 32767.0f)))),
      hn::Set(du, 0xffffu));
};
constexpr auto to_unorm = [](auto v) HWY_ATTR {
  const hn::DFromV<decltype(v)> d;
  return hn::BitCast(D32<false>{},
                     hn::NearestInt(hn::Mul(clamped(v, 0.0f, 1.0f), hn::Set(d, 65535.0f))));
};
constexpr auto pair = [](auto lo, auto hi) HWY_ATTR { return hn::Or(lo, hn::ShiftLeft<16>(hi)); };
constexpr auto byte_into = [](auto value, auto at, auto old) HWY_ATTR {
  const D32<false> d;
  const hn::RebindToSigned<D32<false>> di;
  const auto byte = hn::BitCast(d, hn::ConvertTo(di, clamped(value, 0.0f, 255.0f)));
  const auto shift = hn::ShiftLeft<3>(hn::And(at, hn::Set(d, 3u)));
  return hn::Or(hn::AndNot(hn::Set(d, 0xffu) << shift, old), byte << shift);
};

// Exponent, and significand in [0.5, 1). Computed in float64, where every float32 and float16 is
// normal.
constexpr auto exponent_of = [](auto v) HWY_ATTR {
  const auto field = hn::And(hn::ShiftRight<52>(bits(v)), hn::Set(D64{}, 0x7ffu));
  const auto none =
      hn::RebindMask(DI64{}, hn::Or(hn::Eq(v, hn::Zero(DF64{})), hn::Not(hn::IsFinite(v))));
  return hn::IfThenZeroElse(none, hn::Sub(hn::BitCast(DI64{}, field), hn::Set(DI64{}, 1022)));
};
constexpr auto significand_of = [](auto v) HWY_ATTR {
  const auto half = hn::Or(hn::And(bits(v), hn::Set(D64{}, 0x800fffffffffffffu)),
                           hn::Set(D64{}, 0x3fe0000000000000u));
  const auto itself = hn::Or(hn::Eq(v, hn::Zero(DF64{})), hn::Not(hn::IsFinite(v)));
  return hn::IfThenElse(itself, hn::Add(v, v), hn::BitCast(DF64{}, half));
};
constexpr auto in_32 = [](auto v) HWY_ATTR {
  return hn::BitCast(hn::Rebind<int32_t, D64>{},
                     hn::TruncateTo(D32<true>{}, hn::BitCast(D64{}, v)));
};
// Float64 denormals made normal, and by how much.
constexpr auto is_tiny = [](auto v) HWY_ATTR {
  return hn::And(hn::Lt(hn::Abs(v), hn::Set(DF64{}, 0x1p-1022)), hn::Ne(v, hn::Zero(DF64{})));
};
constexpr auto normal = [](auto v) HWY_ATTR {
  return hn::IfThenElse(is_tiny(v), hn::Mul(v, hn::Set(DF64{}, 0x1p54)), v);
};

// Sources of which only the bits are used, but which take float modifiers.
constexpr Entry of_halves(Entry e) {
  e.source[0] = e.source[1] = Type::f16;
  return e;
}

constexpr Entry kEntries[] = {
    op<I32(F32)>(Opcode::v_cvt_i32_f32, to_i32),
    op<U32(F32)>(Opcode::v_cvt_u32_f32, to_u32),
    op<F32(I32)>(Opcode::v_cvt_f32_i32, from_i32),
    op<F32(U32)>(Opcode::v_cvt_f32_u32, from_u32),
    op<I32(F32), kCold>(Opcode::v_cvt_rpi_i32_f32,
                        [](auto v) HWY_ATTR {
                          return to_i32(
                              hn::Floor(hn::Add(v, hn::Set(hn::DFromV<decltype(v)>{}, 0.5f))));
                        }),
    op<I32(F32), kCold>(Opcode::v_cvt_flr_i32_f32,
                        [](auto v) HWY_ATTR { return to_i32(hn::Floor(v)); }),
    op<F32(I32), kCold>(Opcode::v_cvt_off_f32_i4,
                        [](auto v) HWY_ATTR {
                          return hn::Mul(
                              from_i32(hn::ShiftRight<28>(hn::ShiftLeft<28>(v))),
                              hn::Set(hn::RebindToFloat<hn::DFromV<decltype(v)>>{}, 0.0625f));
                        }),
    op<F32(U32)>(Opcode::v_cvt_f32_ubyte0, [](auto v) HWY_ATTR { return from_byte<0>(v); }),
    op<F32(U32)>(Opcode::v_cvt_f32_ubyte1, [](auto v) HWY_ATTR { return from_byte<1>(v); }),
    op<F32(U32)>(Opcode::v_cvt_f32_ubyte2, [](auto v) HWY_ATTR { return from_byte<2>(v); }),
    op<F32(U32)>(Opcode::v_cvt_f32_ubyte3, [](auto v) HWY_ATTR { return from_byte<3>(v); }),

    op<F16(F32)>(Opcode::v_cvt_f16_f32, [](auto v) HWY_ATTR { return v; }),
    op<F32(F16)>(Opcode::v_cvt_f32_f16, [](auto v) HWY_ATTR { return v; }),
    op<F16(U16), kCold>(Opcode::v_cvt_f16_u16, from_u32),
    op<F16(I16), kCold>(Opcode::v_cvt_f16_i16, from_i32),
    op<U16(F16), kCold>(Opcode::v_cvt_u16_f16,
                        [](auto v) HWY_ATTR { return to_u32(clamped(v, 0.0f, 65535.0f)); }),
    op<I16(F16), kCold>(Opcode::v_cvt_i16_f16,
                        [](auto v) HWY_ATTR { return to_i32(clamped(v, -32768.0f, 32767.0f)); }),
    op<U16(F16), kCold>(Opcode::v_cvt_norm_i16_f16, to_snorm),
    op<U16(F16), kCold>(Opcode::v_cvt_norm_u16_f16, to_unorm),

    op<F64(F32)>(Opcode::v_cvt_f64_f32, [](auto v) HWY_ATTR { return widened(v); }),
    op<F32(F64)>(Opcode::v_cvt_f32_f64, [](auto v) HWY_ATTR { return narrowed(v); }),
    op<F64(I32)>(Opcode::v_cvt_f64_i32, [](auto v) HWY_ATTR { return widened(v); }),
    op<F64(U32)>(Opcode::v_cvt_f64_u32, u32_to_f64),
    op<I32(F64)>(Opcode::v_cvt_i32_f64, f64_to_i32),
    op<U32(F64)>(Opcode::v_cvt_u32_f64, f64_to_u32),

    op<I32(F32), kWide | kExact>(Opcode::v_frexp_exp_i32_f32,
                                 [](auto v) HWY_ATTR { return in_32(exponent_of(widened(v))); }),
    op<F32(F32), kWide>(Opcode::v_frexp_mant_f32,
                        [](auto v) HWY_ATTR { return narrowed(significand_of(widened(v))); }),
    op<I16(F16), kWide | kCold>(Opcode::v_frexp_exp_i16_f16,
                                [](auto v) HWY_ATTR { return in_32(exponent_of(widened(v))); }),
    op<F16(F16), kWide | kCold>(Opcode::v_frexp_mant_f16,
                                [](auto v)
                                    HWY_ATTR { return narrowed(significand_of(widened(v))); }),
    op<I32(F64), kExact>(Opcode::v_frexp_exp_i32_f64,
                         [](auto v) HWY_ATTR {
                           const auto shift = hn::IfThenElseZero(hn::RebindMask(DI64{}, is_tiny(v)),
                                                                 hn::Set(DI64{}, 54));
                           return in_32(hn::Sub(exponent_of(normal(v)), shift));
                         }),
    op<F64(F64)>(Opcode::v_frexp_mant_f64,
                 [](auto v) HWY_ATTR { return significand_of(normal(v)); }),

    op<U32(F32, F32)>(Opcode::v_cvt_pkrtz_f16_f32,
                      [](auto a, auto b) HWY_ATTR {
                        const D32<false> d;
                        return pair(float_to_half<HalfRounding::toward_zero>(d, a),
                                    float_to_half<HalfRounding::toward_zero>(d, b));
                      }),
    op<U32(F32, F32), kCold>(Opcode::v_cvt_pknorm_i16_f32,
                             [](auto a, auto b)
                                 HWY_ATTR { return pair(to_snorm(a), to_snorm(b)); }),
    op<U32(F32, F32), kCold>(Opcode::v_cvt_pknorm_u16_f32,
                             [](auto a, auto b)
                                 HWY_ATTR { return pair(to_unorm(a), to_unorm(b)); }),
    op<U32(F16, F16), kCold>(Opcode::v_cvt_pknorm_i16_f16,
                             [](auto a, auto b)
                                 HWY_ATTR { return pair(to_snorm(a), to_snorm(b)); }),
    op<U32(F16, F16), kCold>(Opcode::v_cvt_pknorm_u16_f16,
                             [](auto a, auto b)
                                 HWY_ATTR { return pair(to_unorm(a), to_unorm(b)); }),
    op<U32(U32, U32)>(Opcode::v_cvt_pk_u16_u32,
                      [](auto a, auto b) HWY_ATTR {
                        const auto limit = hn::Set(D32<false>{}, 0xffffu);
                        return pair(hn::Min(a, limit), hn::Min(b, limit));
                      }),
    op<U32(I32, I32)>(Opcode::v_cvt_pk_i16_i32,
                      [](auto a, auto b) HWY_ATTR {
                        const D32<false> d;
                        const hn::RebindToSigned<D32<false>> di;
                        const auto limited = [&](auto v) HWY_ATTR {
                          return hn::And(hn::BitCast(d, hn::Max(hn::Min(v, hn::Set(di, 32767)),
                                                                hn::Set(di, -32768))),
                                         hn::Set(d, 0xffffu));
                        };
                        return pair(limited(a), limited(b));
                      }),
    op<U32(F32, U32, U32), kCold>(Opcode::v_cvt_pk_u8_f32, byte_into),
    op<U32(F32, U32, U32), kCold>(Opcode::v_cvt_pkaccum_u8_f32, byte_into),
    of_halves(op<U32(U16, U16), kExact>(Opcode::v_pack_b32_f16, pair)),
    op<U32(U32), kCold>(Opcode::v_sat_pk_u8_i16,
                        [](auto v) HWY_ATTR {
                          const D32<false> d;
                          const hn::RebindToSigned<D32<false>> di;
                          const auto limited = [&](auto x) HWY_ATTR {
                            return hn::BitCast(d,
                                               hn::Max(hn::Min(x, hn::Set(di, 255)), hn::Zero(di)));
                          };
                          const auto low =
                              hn::ShiftRight<16>(hn::BitCast(di, hn::ShiftLeft<16>(v)));
                          const auto high = hn::ShiftRight<16>(hn::BitCast(di, v));
                          return hn::Or(limited(low), hn::ShiftLeft<8>(limited(high)));
                        }),
};

}  // namespace

std::span<const Entry> convert_entries() { return kEntries; }

}  // namespace uptempo::vgpu::gfx9::vector::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
