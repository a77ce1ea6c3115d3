// 16-bit integer arithmetic, computed in 32-bit lanes.
#include "gfx9/vector/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gfx9/vector/integer16.cpp"
#include <hwy/foreach_target.h>

#include "gfx9/vector/packed-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace uptempo::vgpu::gfx9::vector::HWY_NAMESPACE {
namespace {

constexpr auto add = [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); };
constexpr auto sub = [](auto a, auto b) HWY_ATTR { return hn::Sub(a, b); };
constexpr auto mad = [](auto a, auto b, auto c) HWY_ATTR { return hn::Add(hn::Mul(a, b), c); };
constexpr auto min = [](auto a, auto b) HWY_ATTR { return hn::Min(a, b); };
constexpr auto max = [](auto a, auto b) HWY_ATTR { return hn::Max(a, b); };
constexpr auto min3 = [](auto a, auto b, auto c) HWY_ATTR { return hn::Min(hn::Min(a, b), c); };
constexpr auto max3 = [](auto a, auto b, auto c) HWY_ATTR { return hn::Max(hn::Max(a, b), c); };
constexpr auto med3 = [](auto a, auto b, auto c)
                          HWY_ATTR { return hn::Max(hn::Min(a, b), hn::Min(hn::Max(a, b), c)); };

// Saturation of exact 32-bit results: a negative difference of unsigned values is zero.
constexpr auto to_u16 = [](auto v) HWY_ATTR {
  return hn::Min(v, hn::Set(hn::DFromV<decltype(v)>{}, 0xffffu));
};
constexpr auto to_i16 = [](auto v) HWY_ATTR {
  const hn::DFromV<decltype(v)> d;
  return hn::Min(hn::Max(v, hn::Set(d, -32768)), hn::Set(d, 32767));
};
constexpr auto add_u = [](auto a, auto b) HWY_ATTR { return to_u16(hn::Add(a, b)); };
constexpr auto sub_u = [](auto a, auto b) HWY_ATTR { return hn::Sub(hn::Max(a, b), b); };
constexpr auto add_s = [](auto a, auto b) HWY_ATTR { return to_i16(hn::Add(a, b)); };
constexpr auto sub_s = [](auto a, auto b) HWY_ATTR { return to_i16(hn::Sub(a, b)); };
// 0xffff * 0xffff + 0xffff still fits 32 bits.
constexpr auto mad_u = [](auto a, auto b, auto c)
                           HWY_ATTR { return to_u16(hn::Add(hn::Mul(a, b), c)); };
constexpr auto mad_s = [](auto a, auto b, auto c)
                           HWY_ATTR { return to_i16(hn::Add(hn::Mul(a, b), c)); };

constexpr auto count = [](auto a)
                           HWY_ATTR { return hn::And(a, hn::Set(hn::DFromV<decltype(a)>{}, 15)); };
constexpr auto shl = [](auto a, auto b) HWY_ATTR { return b << count(a); };
constexpr auto shr = [](auto a, auto b) HWY_ATTR { return b >> count(a); };

constexpr Entry kEntries[] = {
    op<U16(U16, U16)>(Opcode::v_add_u16, add, add_u),
    op<U16(U16, U16)>(Opcode::v_sub_u16, sub, sub_u),
    op<U16(U16, U16)>(
        Opcode::v_subrev_u16, [](auto a, auto b) HWY_ATTR { return sub(b, a); },
        [](auto a, auto b) HWY_ATTR { return sub_u(b, a); }),
    op<I16(I16, I16), kKeepsHigh>(Opcode::v_add_i16, add, add_s),
    op<I16(I16, I16), kKeepsHigh>(Opcode::v_sub_i16, sub, sub_s),
    op<U16(U16, U16)>(Opcode::v_mul_lo_u16, [](auto a, auto b) HWY_ATTR { return hn::Mul(a, b); }),
    op<U16(U16, U16, U16), kKeepsHigh>(Opcode::v_mad_u16, mad, mad_u),
    op<I16(I16, I16, I16), kKeepsHigh>(Opcode::v_mad_i16, mad, mad_s),
    op<U16(U16, U16, U16), kCold>(Opcode::v_mad_legacy_u16, mad, mad_u),
    op<I16(I16, I16, I16), kCold>(Opcode::v_mad_legacy_i16, mad, mad_s),
    op<U16(U16, U16)>(Opcode::v_min_u16, min),
    op<U16(U16, U16)>(Opcode::v_max_u16, max),
    op<I16(I16, I16)>(Opcode::v_min_i16, min),
    op<I16(I16, I16)>(Opcode::v_max_i16, max),
    op<U16(U16, U16, U16), kKeepsHigh>(Opcode::v_min3_u16, min3),
    op<U16(U16, U16, U16), kKeepsHigh>(Opcode::v_max3_u16, max3),
    op<U16(U16, U16, U16), kKeepsHigh>(Opcode::v_med3_u16, med3),
    op<I16(I16, I16, I16), kKeepsHigh>(Opcode::v_min3_i16, min3),
    op<I16(I16, I16, I16), kKeepsHigh>(Opcode::v_max3_i16, max3),
    op<I16(I16, I16, I16), kKeepsHigh>(Opcode::v_med3_i16, med3),
    op<U16(U16, U16)>(Opcode::v_lshlrev_b16, shl),
    op<U16(U16, U16)>(Opcode::v_lshrrev_b16, shr),
    op<I16(I16, I16)>(Opcode::v_ashrrev_i16, shr),

    pk<U16(U16, U16)>(Opcode::v_pk_add_u16, add, add_u),
    pk<U16(U16, U16)>(Opcode::v_pk_sub_u16, sub, sub_u),
    pk<I16(I16, I16)>(Opcode::v_pk_add_i16, add, add_s),
    pk<I16(I16, I16)>(Opcode::v_pk_sub_i16, sub, sub_s),
    pk<U16(U16, U16)>(Opcode::v_pk_mul_lo_u16,
                      [](auto a, auto b) HWY_ATTR { return hn::Mul(a, b); }),
    pk<U16(U16, U16, U16)>(Opcode::v_pk_mad_u16, mad, mad_u),
    pk<I16(I16, I16, I16)>(Opcode::v_pk_mad_i16, mad, mad_s),
    pk<U16(U16, U16)>(Opcode::v_pk_min_u16, min),
    pk<U16(U16, U16)>(Opcode::v_pk_max_u16, max),
    pk<I16(I16, I16)>(Opcode::v_pk_min_i16, min),
    pk<I16(I16, I16)>(Opcode::v_pk_max_i16, max),
    pk<U16(U16, U16)>(Opcode::v_pk_lshlrev_b16, shl),
    pk<U16(U16, U16)>(Opcode::v_pk_lshrrev_b16, shr),
    pk<I16(I16, I16)>(Opcode::v_pk_ashrrev_i16, shr),
};

}  // namespace

std::span<const Entry> integer16_entries() { return kEntries; }

}  // namespace uptempo::vgpu::gfx9::vector::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
