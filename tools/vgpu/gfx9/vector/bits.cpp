// Bitwise logic, shifts, bit fields, counting, selection.
#include "gfx9/vector/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gfx9/vector/bits.cpp"
#include <hwy/foreach_target.h>

#include "gfx9/vector/instruction-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace uptempo::vgpu::gfx9::vector::HWY_NAMESPACE {
namespace {

// Shift counts are taken modulo the width.
constexpr auto count = [](auto a)
                           HWY_ATTR { return hn::And(a, hn::Set(hn::DFromV<decltype(a)>{}, 31)); };
constexpr auto shl = [](auto v, auto by) HWY_ATTR { return v << count(by); };
constexpr auto shr = [](auto v, auto by) HWY_ATTR { return v >> count(by); };
constexpr auto count64 = [](auto a) HWY_ATTR {
  return hn::And(hn::PromoteTo(D64{}, a), hn::Set(D64{}, 63u));
};

constexpr auto mask_of_width = [](auto width) HWY_ATTR {
  const D32<false> d;
  return hn::Sub(hn::Set(d, 1u) << count(width), hn::Set(d, 1u));
};

// {a, b} >> by. The left shift in two steps never reaches 32.
constexpr auto align = [](auto a, auto b, auto by) HWY_ATTR {
  const D32<false> d;
  return hn::Or(b >> by, hn::Add(a, a) << hn::Sub(hn::Set(d, 31u), by));
};

template <int kShift>
HWY_INLINE V32<false> swap_bits(V32<false> v, uint32_t low) {
  const auto mask = hn::Set(D32<false>{}, low);
  return hn::Or(hn::And(hn::ShiftRight<kShift>(v), mask), hn::ShiftLeft<kShift>(hn::And(v, mask)));
}

// Index of the highest set bit, 0 for 0: the exponent of the value as a float. Low bits are cleared
// so that it cannot round up.
HWY_INLINE V32<false> highest_bit(V32<false> v) {
  const D32<false> d;
  const hn::RebindToSigned<D32<false>> di;
  const hn::RebindToFloat<D32<false>> df;
  const auto cut =
      hn::AndNot(hn::ShiftRight<1>(v),
                 v);  // keeps the top bit, clears the one below: no carry into the exponent
  const auto low = hn::And(cut, hn::Set(d, 0x7fffffffu));
  const auto exponent = hn::ShiftRight<23>(hn::BitCast(d, hn::ConvertTo(df, hn::BitCast(di, low))));
  const auto bit =
      hn::IfThenElse(hn::Eq(low, hn::Zero(d)), hn::Zero(d), hn::Sub(exponent, hn::Set(d, 127u)));
  return hn::IfThenElse(hn::Eq(hn::ShiftRight<31>(v), hn::Set(d, 1u)), hn::Set(d, 31u), bit);
}
constexpr auto leading_zeros = [](auto v) HWY_ATTR {
  const D32<false> d;
  return hn::Or(hn::Sub(hn::Set(d, 31u), highest_bit(v)),
                hn::VecFromMask(d, hn::Eq(v, hn::Zero(d))));
};

// Byte k of the result: selector 0..7 a byte of {a, b}, 8..11 a sign, 12 zero, above that all ones.
HWY_INLINE V32<false> permuted_byte(V32<false> a, V32<false> b, V32<false> selector) {
  const D32<false> d;
  const auto three = hn::Set(d, 3u);
  const auto byte = hn::Set(d, 0xffu);
  const auto high = hn::Ne(hn::And(selector, hn::Set(d, 4u)), hn::Zero(d));
  const auto picked =
      hn::And(hn::IfThenElse(high, a, b) >> hn::ShiftLeft<3>(hn::And(selector, three)), byte);
  const auto sign_word =
      hn::IfThenElse(hn::Ne(hn::And(selector, hn::Set(d, 2u)), hn::Zero(d)), a, b);
  const auto sign_at =
      hn::Add(hn::Set(d, 15u), hn::ShiftLeft<4>(hn::And(selector, hn::Set(d, 1u))));
  const auto sign =
      hn::And(hn::Sub(hn::Zero(d), hn::And(sign_word >> sign_at, hn::Set(d, 1u))), byte);
  const auto constant = hn::IfThenZeroElse(hn::Eq(selector, hn::Set(d, 12u)), byte);
  return hn::IfThenElse(hn::Lt(selector, hn::Set(d, 8u)), picked,
                        hn::IfThenElse(hn::Lt(selector, hn::Set(d, 12u)), sign, constant));
}
constexpr auto perm = [](auto a, auto b, auto selectors) HWY_ATTR {
  const auto byte = hn::Set(D32<false>{}, 0xffu);
  const auto r0 = permuted_byte(a, b, hn::And(selectors, byte));
  const auto r1 = permuted_byte(a, b, hn::And(hn::ShiftRight<8>(selectors), byte));
  const auto r2 = permuted_byte(a, b, hn::And(hn::ShiftRight<16>(selectors), byte));
  const auto r3 = permuted_byte(a, b, hn::ShiftRight<24>(selectors));
  return hn::Or(hn::Or(r0, hn::ShiftLeft<8>(r1)),
                hn::Or(hn::ShiftLeft<16>(r2), hn::ShiftLeft<24>(r3)));
};

// Number of set bits of `v` in lanes below the lane's own, in the first (kFirst 0) or second half
// of the wave.
template <uint32_t kFirst>
HWY_INLINE V32<false> masked_count(V32<false> v, V32<false> base, V32<false> lane) {
  const D32<false> d;
  const auto below =
      hn::IfThenZeroElse(hn::Lt(lane, hn::Set(d, kFirst)), hn::Sub(lane, hn::Set(d, kFirst)));
  const auto all = hn::Gt(below, hn::Set(d, 31u));
  const auto partial = hn::Sub(hn::Set(d, 1u) << hn::And(below, hn::Set(d, 31u)), hn::Set(d, 1u));
  return hn::Add(base, hn::PopulationCount(hn::And(v, hn::Or(partial, hn::VecFromMask(d, all)))));
}

constexpr Entry kEntries[] = {
    op<U32(U32), kExact>(Opcode::v_mov_b32, [](auto a) HWY_ATTR { return a; }),
    op<U64(U64), kExact>(Opcode::v_mov_b64, [](auto a) HWY_ATTR { return a; }),
    op<U32(U32), kExact>(Opcode::v_accvgpr_read_b32, [](auto a) HWY_ATTR { return a; }),
    op<U32(U32), kExact>(Opcode::v_accvgpr_write_b32, [](auto a) HWY_ATTR { return a; }),
    op<U32(U32), kExact>(Opcode::v_accvgpr_mov_b32, [](auto a) HWY_ATTR { return a; }),
    op<U32(U32, U32, Bit)>(Opcode::v_cndmask_b32,
                           [](auto a, auto b, auto pick_b)
                               HWY_ATTR { return hn::IfThenElse(pick_b, b, a); }),
    op<U32(U32)>(Opcode::v_not_b32, [](auto a) HWY_ATTR { return hn::Not(a); }),
    op<U32(U32, U32)>(Opcode::v_and_b32, [](auto a, auto b) HWY_ATTR { return hn::And(a, b); }),
    op<U32(U32, U32)>(Opcode::v_or_b32, [](auto a, auto b) HWY_ATTR { return hn::Or(a, b); }),
    op<U32(U32, U32)>(Opcode::v_xor_b32, [](auto a, auto b) HWY_ATTR { return hn::Xor(a, b); }),
    op<U32(U32, U32)>(Opcode::v_xnor_b32,
                      [](auto a, auto b) HWY_ATTR { return hn::Not(hn::Xor(a, b)); }),
    op<U32(U32, U32, U32)>(Opcode::v_or3_b32,
                           [](auto a, auto b, auto c) HWY_ATTR { return hn::Or(hn::Or(a, b), c); }),
    op<U32(U32, U32, U32)>(Opcode::v_and_or_b32, [](auto a, auto b, auto c)
                                                     HWY_ATTR { return hn::Or(hn::And(a, b), c); }),
    op<U32(U32, U32, U32)>(Opcode::v_bfi_b32,
                           [](auto a, auto b, auto c)
                               HWY_ATTR { return hn::Or(hn::And(a, b), hn::AndNot(a, c)); }),

    op<U32(U32, U32)>(Opcode::v_lshlrev_b32, [](auto a, auto b) HWY_ATTR { return shl(b, a); }),
    op<U32(U32, U32)>(Opcode::v_lshrrev_b32, [](auto a, auto b) HWY_ATTR { return shr(b, a); }),
    op<I32(I32, I32)>(Opcode::v_ashrrev_i32, [](auto a, auto b) HWY_ATTR { return shr(b, a); }),
    op<U64(U32, U64)>(Opcode::v_lshlrev_b64,
                      [](auto a, auto b) HWY_ATTR { return b << count64(a); }),
    op<U64(U32, U64)>(Opcode::v_lshrrev_b64,
                      [](auto a, auto b) HWY_ATTR { return b >> count64(a); }),
    op<I64(U32, I64)>(Opcode::v_ashrrev_i64,
                      [](auto a, auto b) HWY_ATTR {
                        // There is no 64-bit arithmetic shift before AVX-512: shift the value with
                        // its sign bits cleared.
                        const hn::DFromV<decltype(b)> d;
                        const auto sign = hn::BroadcastSignBit(b);
                        return hn::Xor(
                            hn::BitCast(d, hn::BitCast(D64{}, hn::Xor(b, sign)) >> count64(a)),
                            sign);
                      }),
    op<U32(U32, U32, U32)>(Opcode::v_lshl_add_u32,
                           [](auto a, auto b, auto c) HWY_ATTR { return hn::Add(shl(a, b), c); }),
    // The shift is the low three bits of the second operand.
    op<U64(U64, U32, U64)>(Opcode::v_lshl_add_u64,
                           [](auto a, auto b, auto c) HWY_ATTR {
                             const hn::DFromV<decltype(b)> d;
                             return hn::Add(a << count64(hn::And(b, hn::Set(d, 7u))), c);
                           }),
    op<U32(U32, U32, U32)>(Opcode::v_add_lshl_u32,
                           [](auto a, auto b, auto c) HWY_ATTR { return shl(hn::Add(a, b), c); }),
    op<U32(U32, U32, U32)>(Opcode::v_lshl_or_b32,
                           [](auto a, auto b, auto c) HWY_ATTR { return hn::Or(shl(a, b), c); }),

    op<U32(U32, U32, U32)>(Opcode::v_bfe_u32,
                           [](auto a, auto b, auto c)
                               HWY_ATTR { return hn::And(shr(a, b), mask_of_width(c)); }),
    op<I32(I32, U32, U32)>(Opcode::v_bfe_i32,
                           [](auto a, auto b, auto c) HWY_ATTR {
                             // Moves the field's top bit to the sign and back. A field of width 0
                             // is zero for any shift.
                             const D32<false> d;
                             const hn::RebindToSigned<D32<false>> di;
                             const auto field = hn::And(
                                 hn::BitCast(d, a >> hn::BitCast(di, count(b))), mask_of_width(c));
                             const auto up =
                                 hn::And(hn::Sub(hn::Set(d, 32u), count(c)), hn::Set(d, 31u));
                             return hn::BitCast(di, field << up) >> hn::BitCast(di, up);
                           }),
    op<U32(U32, U32)>(Opcode::v_bfm_b32,
                      [](auto a, auto b) HWY_ATTR { return mask_of_width(a) << count(b); }),
    op<U32(U32, U32, U32)>(Opcode::v_alignbit_b32,
                           [](auto a, auto b, auto c) HWY_ATTR { return align(a, b, count(c)); }),
    op<U32(U32, U32, U32)>(Opcode::v_alignbyte_b32,
                           [](auto a, auto b, auto c) HWY_ATTR {
                             return align(a, b,
                                          hn::ShiftLeft<3>(hn::And(c, hn::Set(D32<false>{}, 3u))));
                           }),
    op<U32(U32, U32, U32)>(Opcode::v_perm_b32, perm),

    op<U32(U32)>(Opcode::v_bfrev_b32,
                 [](auto v) HWY_ATTR {
                   v = swap_bits<1>(v, 0x55555555u);
                   v = swap_bits<2>(v, 0x33333333u);
                   v = swap_bits<4>(v, 0x0f0f0f0fu);
                   v = swap_bits<8>(v, 0x00ff00ffu);
                   return hn::RotateRight<16>(v);
                 }),
    op<U32(U32)>(Opcode::v_ffbh_u32, leading_zeros),
    op<U32(U32)>(Opcode::v_ffbh_i32,
                 [](auto v) HWY_ATTR {
                   // Leading bits equal to the sign: leading zeros of the value with its sign bits
                   // cleared. If no bit differs: -1.
                   const hn::RebindToSigned<D32<false>> di;
                   return leading_zeros(hn::Xor(
                       v, hn::BitCast(D32<false>{}, hn::BroadcastSignBit(hn::BitCast(di, v)))));
                 }),
    op<U32(U32)>(Opcode::v_ffbl_b32,
                 [](auto v) HWY_ATTR {
                   const D32<false> d;
                   const auto lowest = hn::And(v, hn::Sub(hn::Zero(d), v));
                   return hn::Or(highest_bit(lowest), hn::VecFromMask(d, hn::Eq(v, hn::Zero(d))));
                 }),
    op<U32(U32, U32)>(Opcode::v_bcnt_u32_b32,
                      [](auto a, auto b) HWY_ATTR { return hn::Add(hn::PopulationCount(a), b); }),
    op<U32(U32, U32, LaneId)>(Opcode::v_mbcnt_lo_u32_b32,
                              [](auto a, auto b, auto lane)
                                  HWY_ATTR { return masked_count<0>(a, b, lane); }),
    op<U32(U32, U32, LaneId)>(Opcode::v_mbcnt_hi_u32_b32,
                              [](auto a, auto b, auto lane)
                                  HWY_ATTR { return masked_count<32>(a, b, lane); }),
};

}  // namespace

std::span<const Entry> bit_entries() { return kEntries; }

}  // namespace uptempo::vgpu::gfx9::vector::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
