// Float64 arithmetic.
#include "gfx9/vector/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gfx9/vector/float64.cpp"
#include <hwy/foreach_target.h>

#include "gfx9/vector/float-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace uptempo::vgpu::gfx9::vector::HWY_NAMESPACE {
namespace {

// The power of two is split into two representable factors. The first multiplication is exact; the
// last one rounds.
constexpr auto ldexp = [](auto v, auto exponent) HWY_ATTR {
  const hn::RebindToSigned<D64> di;
  const auto n = hn::PromoteTo(di, exponent);
  const auto min = [&](auto e, int limit) HWY_ATTR { return hn::Min(e, hn::Set(di, limit)); };
  const auto max = [&](auto e, int limit) HWY_ATTR { return hn::Max(e, hn::Set(di, limit)); };
  // Scales normal inputs to [1, 2). The sum of exponents then selects the direction of the one
  // rounding step.
  const auto two54 = hn::Set(DF64{}, 0x1p54);
  const auto tiny = hn::Lt(hn::Abs(v), hn::Set(DF64{}, 0x1p-1022));
  const auto normal = hn::IfThenElse(tiny, hn::Mul(v, two54), v);
  const auto special = hn::Or(hn::Eq(v, hn::Zero(DF64{})), hn::Not(hn::IsFinite(v)));
  const auto field =
      hn::BitCast(di, hn::And(hn::ShiftRight<52>(bits(normal)), hn::Set(D64{}, 0x7ffu)));
  const auto old = hn::Sub(hn::Sub(field, hn::Set(di, 1023)),
                           hn::IfThenElseZero(hn::RebindMask(di, tiny), hn::Set(di, 54)));
  const auto one =
      hn::BitCast(DF64{}, hn::Or(hn::And(bits(normal), hn::Set(D64{}, 0x800fffffffffffffu)),
                                 hn::Set(D64{}, 0x3ff0000000000000u)));
  const auto total = hn::Add(old, max(min(n, 4000), -4000));
  const auto first = max(min(total, 1023), -1022);
  const auto second = max(min(hn::Sub(total, first), 1023), -1022);
  const auto result = scaled(
      hn::Mul(one, hn::BitCast(DF64{}, hn::ShiftLeft<52>(hn::Add(first, hn::Set(di, 1023))))),
      second);
  return hn::IfThenElse(special, hn::Add(v, v), result);
};

constexpr Entry kEntries[] = {
    op<F64(F64, F64)>(Opcode::v_add_f64, float_add),
    op<F64(F64, F64)>(Opcode::v_mul_f64, float_mul),
    op<F64(F64, F64, F64)>(Opcode::v_fma_f64, float_fma),
    op<F64(F64, F64, F64)>(Opcode::v_fmac_f64, float_fma),
    op<F64(F64, F64), kIeee>(Opcode::v_min_f64, float_min),
    op<F64(F64, F64), kIeee>(Opcode::v_max_f64, float_max),
    op<F64(F64)>(Opcode::v_trunc_f64, float_trunc),
    op<F64(F64)>(Opcode::v_ceil_f64, float_ceil),
    op<F64(F64)>(Opcode::v_floor_f64, float_floor),
    op<F64(F64)>(Opcode::v_rndne_f64, float_rndne),
    op<F64(F64)>(Opcode::v_fract_f64, float_fract),
    op<F64(F64, I32)>(Opcode::v_ldexp_f64, ldexp),
};

}  // namespace

std::span<const Entry> float64_entries() { return kEntries; }

}  // namespace uptempo::vgpu::gfx9::vector::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
