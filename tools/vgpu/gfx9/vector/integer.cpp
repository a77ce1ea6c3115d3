// 32-bit integer arithmetic and the 64-bit multiply-adds.
#include "gfx9/vector/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gfx9/vector/integer.cpp"
#include <hwy/foreach_target.h>

#include <limits>

#include "gfx9/vector/instruction-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace uptempo::vgpu::gfx9::vector::HWY_NAMESPACE {
namespace {

// All ones where `over` is set: unsigned saturation.
constexpr auto add_saturated = [](auto a, auto b) HWY_ATTR {
  const auto sum = hn::Add(a, b);
  return hn::Or(sum, hn::VecFromMask(D32<false>{}, hn::Lt(sum, a)));
};
constexpr auto sub_saturated = [](auto a, auto b) HWY_ATTR {
  return hn::IfThenZeroElse(hn::Lt(a, b), hn::Sub(a, b));
};

// Signed saturation of a result that overflowed towards the sign of `a`.
constexpr auto saturated = [](auto overflow, auto result, auto a) HWY_ATTR {
  const hn::DFromV<decltype(a)> d;
  const auto limit = hn::Xor(hn::BroadcastSignBit(a), hn::Set(d, 0x7fffffff));
  return hn::IfThenElse(hn::MaskFromVec(hn::BroadcastSignBit(overflow)), limit, result);
};
constexpr auto add_saturated_signed = [](auto a, auto b) HWY_ATTR {
  const auto sum = hn::Add(a, b);
  return saturated(hn::And(hn::Xor(a, sum), hn::Xor(b, sum)), sum, a);
};
constexpr auto sub_saturated_signed = [](auto a, auto b) HWY_ATTR {
  const auto difference = hn::Sub(a, b);
  return saturated(hn::And(hn::Xor(a, b), hn::Xor(a, difference)), difference, a);
};

constexpr auto add = [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); };
constexpr auto sub = [](auto a, auto b) HWY_ATTR { return hn::Sub(a, b); };
constexpr auto subrev = [](auto a, auto b) HWY_ATTR { return hn::Sub(b, a); };
constexpr auto min = [](auto a, auto b) HWY_ATTR { return hn::Min(a, b); };
constexpr auto max = [](auto a, auto b) HWY_ATTR { return hn::Max(a, b); };
constexpr auto min3 = [](auto a, auto b, auto c) HWY_ATTR { return hn::Min(hn::Min(a, b), c); };
constexpr auto max3 = [](auto a, auto b, auto c) HWY_ATTR { return hn::Max(hn::Max(a, b), c); };
constexpr auto med3 = [](auto a, auto b, auto c)
                          HWY_ATTR { return hn::Max(hn::Min(a, b), hn::Min(hn::Max(a, b), c)); };

constexpr auto add_carry = [](auto a, auto b) HWY_ATTR {
  const auto sum = hn::Add(a, b);
  return Carried{sum, hn::Lt(sum, a)};
};
constexpr auto sub_borrow = [](auto a, auto b) HWY_ATTR {
  return Carried{hn::Sub(a, b), hn::Lt(a, b)};
};
constexpr auto add_with_carry = [](auto a, auto b, auto carry) HWY_ATTR {
  const D32<false> d;
  const auto sum = hn::Add(a, b);
  // Subtracting a mask of all ones adds one.
  const auto total = hn::Sub(sum, hn::VecFromMask(d, carry));
  return Carried{total, hn::Or(hn::Lt(sum, a), hn::Lt(total, sum))};
};
constexpr auto sub_with_borrow = [](auto a, auto b, auto borrow) HWY_ATTR {
  const D32<false> d;
  const auto total = hn::Add(hn::Sub(a, b), hn::VecFromMask(d, borrow));
  return Carried{total, hn::Or(hn::Lt(a, b), hn::And(borrow, hn::Eq(a, b)))};
};

// The high halves of 32 x 32 bit products: even lanes, then odd lanes.
constexpr auto mul_high = [](auto a, auto b) HWY_ATTR {
  const hn::DFromV<decltype(a)> d;
  const hn::RepartitionToWide<decltype(d)> wide;
  const auto odd = [&](auto v) HWY_ATTR {
    return hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, v)));
  };
  const auto even_high = odd(hn::MulEven(a, b));
  return hn::OddEven(hn::BitCast(d, hn::MulEven(odd(a), odd(b))), even_high);
};
constexpr auto low24 = [](auto v) HWY_ATTR {
  return hn::And(v, hn::Set(hn::DFromV<decltype(v)>{}, 0xffffffu));
};
constexpr auto signed24 = [](auto v) HWY_ATTR { return hn::ShiftRight<8>(hn::ShiftLeft<8>(v)); };
// The exact sum, of up to 48 bits, is high:low. It fits when high equals low's sign.
constexpr auto mad24_saturated = [](auto a, auto b, auto c) HWY_ATTR {
  const hn::DFromV<decltype(a)> d;
  const D32<false> du;
  const auto low = hn::Add(hn::Mul(signed24(a), signed24(b)), c);
  const auto carry =
      hn::BitCast(d, hn::VecFromMask(du, hn::Lt(hn::BitCast(du, low), hn::BitCast(du, c))));
  const auto high =
      hn::Sub(hn::Add(mul_high(signed24(a), signed24(b)), hn::BroadcastSignBit(c)), carry);
  const auto limit = hn::Xor(hn::BroadcastSignBit(high), hn::Set(d, 0x7fffffff));
  return hn::IfThenElse(hn::Eq(high, hn::BroadcastSignBit(low)), low, limit);
};

// 64-bit products of half vectors.
constexpr auto wide_mul_u32 = [](auto a, auto b) HWY_ATTR {
  const hn::Repartition<uint32_t, D64> d;
  return hn::MulEven(hn::BitCast(d, hn::PromoteTo(D64{}, a)),
                     hn::BitCast(d, hn::PromoteTo(D64{}, b)));
};
constexpr auto wide_mul_i32 = [](auto a, auto b) HWY_ATTR {
  const hn::RebindToSigned<D64> wide;
  const hn::Repartition<int32_t, D64> d;
  return hn::MulEven(hn::BitCast(d, hn::PromoteTo(wide, a)),
                     hn::BitCast(d, hn::PromoteTo(wide, b)));
};

constexpr Entry kEntries[] = {
    op<U32(U32, U32)>(Opcode::v_add_u32, add, add_saturated),
    op<U32(U32, U32)>(Opcode::v_sub_u32, sub, sub_saturated),
    op<U32(U32, U32)>(Opcode::v_subrev_u32, subrev,
                      [](auto a, auto b) HWY_ATTR { return sub_saturated(b, a); }),
    op<I32(I32, I32)>(Opcode::v_add_i32, add, add_saturated_signed),
    op<I32(I32, I32)>(Opcode::v_sub_i32, sub, sub_saturated_signed),

    op<WithCarry<U32>(U32, U32)>(
        Opcode::v_add_co_u32, add_carry,
        [](auto a, auto b) HWY_ATTR {
          const auto sum = add_carry(a, b);
          return Carried{hn::Or(sum.value, hn::VecFromMask(D32<false>{}, sum.carry)), sum.carry};
        }),
    op<WithCarry<U32>(U32, U32)>(Opcode::v_sub_co_u32, sub_borrow,
                                 [](auto a, auto b) HWY_ATTR {
                                   return Carried{sub_saturated(a, b), hn::Lt(a, b)};
                                 }),
    op<WithCarry<U32>(U32, U32)>(
        Opcode::v_subrev_co_u32, [](auto a, auto b) HWY_ATTR { return sub_borrow(b, a); },
        [](auto a, auto b) HWY_ATTR {
          return Carried{sub_saturated(b, a), hn::Lt(b, a)};
        }),
    op<WithCarry<U32>(U32, U32, Bit)>(
        Opcode::v_addc_co_u32, add_with_carry,
        [](auto a, auto b, auto c) HWY_ATTR {
          const auto sum = add_with_carry(a, b, c);
          return Carried{hn::Or(sum.value, hn::VecFromMask(D32<false>{}, sum.carry)), sum.carry};
        }),
    op<WithCarry<U32>(U32, U32, Bit)>(
        Opcode::v_subb_co_u32, sub_with_borrow,
        [](auto a, auto b, auto c) HWY_ATTR {
          const auto difference = sub_with_borrow(a, b, c);
          return Carried{hn::IfThenZeroElse(difference.carry, difference.value), difference.carry};
        }),
    op<WithCarry<U32>(U32, U32, Bit)>(
        Opcode::v_subbrev_co_u32,
        [](auto a, auto b, auto c) HWY_ATTR { return sub_with_borrow(b, a, c); },
        [](auto a, auto b, auto c) HWY_ATTR {
          const auto difference = sub_with_borrow(b, a, c);
          return Carried{hn::IfThenZeroElse(difference.carry, difference.value), difference.carry};
        }),

    op<U32(U32, U32)>(Opcode::v_mul_lo_u32, [](auto a, auto b) HWY_ATTR { return hn::Mul(a, b); }),
    op<U32(U32, U32)>(Opcode::v_mul_hi_u32, mul_high),
    op<I32(I32, I32)>(Opcode::v_mul_hi_i32, mul_high),
    op<U32(U32, U32)>(
        Opcode::v_mul_u32_u24, [](auto a, auto b) HWY_ATTR { return hn::Mul(low24(a), low24(b)); },
        [](auto a, auto b) HWY_ATTR {
          const auto over = hn::Ne(mul_high(low24(a), low24(b)), hn::Zero(D32<false>{}));
          return hn::Or(hn::Mul(low24(a), low24(b)), hn::VecFromMask(D32<false>{}, over));
        }),
    op<I32(I32, I32)>(
        Opcode::v_mul_i32_i24,
        [](auto a, auto b) HWY_ATTR { return hn::Mul(signed24(a), signed24(b)); },
        [](auto a, auto b)
            HWY_ATTR { return mad24_saturated(a, b, hn::Zero(hn::DFromV<decltype(a)>{})); }),
    op<U32(U32, U32)>(Opcode::v_mul_hi_u32_u24,
                      [](auto a, auto b) HWY_ATTR { return mul_high(low24(a), low24(b)); }),
    op<I32(I32, I32)>(Opcode::v_mul_hi_i32_i24,
                      [](auto a, auto b) HWY_ATTR { return mul_high(signed24(a), signed24(b)); }),
    op<U32(U32, U32, U32)>(
        Opcode::v_mad_u32_u24,
        [](auto a, auto b, auto c) HWY_ATTR { return hn::Add(hn::Mul(low24(a), low24(b)), c); },
        [](auto a, auto b, auto c) HWY_ATTR {
          const auto over = hn::Ne(mul_high(low24(a), low24(b)), hn::Zero(D32<false>{}));
          const auto sum = add_saturated(hn::Mul(low24(a), low24(b)), c);
          return hn::Or(sum, hn::VecFromMask(D32<false>{}, over));
        }),
    op<I32(I32, I32, I32)>(
        Opcode::v_mad_i32_i24,
        [](auto a, auto b, auto c)
            HWY_ATTR { return hn::Add(hn::Mul(signed24(a), signed24(b)), c); },
        mad24_saturated),
    op<U32(U16, U16, U32)>(
        Opcode::v_mad_u32_u16,
        [](auto a, auto b, auto c) HWY_ATTR { return hn::Add(hn::Mul(a, b), c); },
        [](auto a, auto b, auto c) HWY_ATTR { return add_saturated(hn::Mul(a, b), c); }),
    op<I32(I16, I16, I32)>(
        Opcode::v_mad_i32_i16,
        [](auto a, auto b, auto c) HWY_ATTR { return hn::Add(hn::Mul(a, b), c); },
        [](auto a, auto b, auto c) HWY_ATTR { return add_saturated_signed(hn::Mul(a, b), c); }),
    op<WithCarry<U64>(U32, U32, U64)>(
        Opcode::v_mad_u64_u32,
        [](auto a, auto b, auto c) HWY_ATTR {
          const auto sum = hn::Add(wide_mul_u32(a, b), c);
          return Carried{sum, hn::Lt(sum, c)};
        },
        [](auto a, auto b, auto c) HWY_ATTR {
          const auto sum = hn::Add(wide_mul_u32(a, b), c);
          const auto over = hn::Lt(sum, c);
          return Carried{hn::Or(sum, hn::VecFromMask(D64{}, over)), over};
        }),
    op<WithCarry<I64>(I32, I32, I64)>(
        Opcode::v_mad_i64_i32,
        [](auto a, auto b, auto c) HWY_ATTR {
          // The carry is bit 64 of the exact sum: its sign.
          const auto product = wide_mul_i32(a, b);
          const auto sum = hn::Add(product, c);
          const auto overflow = hn::And(hn::Xor(product, sum), hn::Xor(c, sum));
          const auto sign = hn::Xor(sum, overflow);
          return Carried{sum, hn::Lt(sign, hn::Zero(hn::DFromV<decltype(sign)>{}))};
        },
        [](auto a, auto b, auto c) HWY_ATTR {
          const hn::RebindToSigned<D64> d;
          const auto product = wide_mul_i32(a, b);
          const auto sum = hn::Add(product, c);
          const auto overflow = hn::And(hn::Xor(product, sum), hn::Xor(c, sum));
          const auto negative = hn::Lt(hn::Xor(sum, overflow), hn::Zero(d));
          const auto limit =
              hn::IfThenElse(negative, hn::Set(d, std::numeric_limits<int64_t>::min()),
                             hn::Set(d, std::numeric_limits<int64_t>::max()));
          return Carried{hn::IfThenElse(hn::Lt(overflow, hn::Zero(d)), limit, sum), negative};
        }),

    op<U32(U32, U32, U32)>(Opcode::v_add3_u32, [](auto a, auto b, auto c)
                                                   HWY_ATTR { return hn::Add(hn::Add(a, b), c); }),
    op<U32(U32, U32, U32)>(Opcode::v_xad_u32, [](auto a, auto b, auto c)
                                                  HWY_ATTR { return hn::Add(hn::Xor(a, b), c); }),
    op<I32(I32, I32)>(Opcode::v_min_i32, min),
    op<I32(I32, I32)>(Opcode::v_max_i32, max),
    op<U32(U32, U32)>(Opcode::v_min_u32, min),
    op<U32(U32, U32)>(Opcode::v_max_u32, max),
    op<I32(I32, I32, I32)>(Opcode::v_min3_i32, min3),
    op<I32(I32, I32, I32)>(Opcode::v_max3_i32, max3),
    op<I32(I32, I32, I32)>(Opcode::v_med3_i32, med3),
    op<U32(U32, U32, U32)>(Opcode::v_min3_u32, min3),
    op<U32(U32, U32, U32)>(Opcode::v_max3_u32, max3),
    op<U32(U32, U32, U32)>(Opcode::v_med3_u32, med3),
};

}  // namespace

std::span<const Entry> integer_entries() { return kEntries; }

}  // namespace uptempo::vgpu::gfx9::vector::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
