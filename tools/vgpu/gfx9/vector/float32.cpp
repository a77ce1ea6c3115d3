// Float32 arithmetic: single, packed with the move of pairs (gfx90a), and mixed with float16
// (v_mad_mix, v_fma_mix).
#include "gfx9/vector/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gfx9/vector/float32.cpp"
#include <hwy/foreach_target.h>

#include "gfx9/vector/float-inl.hpp"
#include "gfx9/vector/packed-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace uptempo::vgpu::gfx9::vector::HWY_NAMESPACE {
namespace {

// v_mad_f32 and v_mac_f32 flush denormals in every MODE and round the product.
constexpr auto mad = [](auto a, auto b, auto c) HWY_ATTR {
  return flushed(hn::Add(flushed(hn::Mul(flushed(a), flushed(b))), flushed(c)));
};
// Zero times anything is zero.
constexpr auto legacy_zero = [](auto a, auto b, auto product) HWY_ATTR {
  const auto zero = hn::Zero(hn::DFromV<decltype(a)>{});
  return hn::IfThenZeroElse(hn::Or(hn::Eq(a, zero), hn::Eq(b, zero)), product);
};

// v_pk_mov_b32: op_sel bit 0 selects the register of src0 for the low result, op_sel bit 1 the
// register of src1 for the high result. A constant has the same value for both.
const Op* pk_mov(const Op& op, Wave& wave) {
  const Instruction& in = op.in;
  Vgpr room[2][2];
  const uint32_t* from[2];
  for (unsigned h = 0; h < 2; ++h) {
    const Type type = in.src[h] < kFirstConstant ? Type::u64 : Type::u32;
    from[h] = registers_of(wave, in, h, type, room[h]).half[in.op_sel >> h & 1u];
  }
  const uint64_t exec = wave.exec();
  uint32_t* const to = vgpr(wave, in.dst);
  const D32<false> d;
  for (size_t lane = 0; lane < kLanes; lane += hn::MaxLanes(d)) {
    const auto low = hn::Load(d, from[0] + lane);
    const auto high = hn::Load(d, from[1] + lane);
    store<false>(d, low, exec, to, lane);
    store<false>(d, high, exec, to + kLanes, lane);
  }
  return next(op);
}

constexpr Entry mixed(Entry e, Packing packing) {
  e.packing = packing;
  return e;
}

constexpr Entry kEntries[] = {
    op<F32(F32, F32)>(Opcode::v_add_f32, float_add),
    op<F32(F32, F32)>(Opcode::v_sub_f32, float_sub),
    op<F32(F32, F32)>(Opcode::v_subrev_f32, float_subrev),
    op<F32(F32, F32)>(Opcode::v_mul_f32, float_mul),
    op<F32(F32, F32), kCold>(Opcode::v_mul_legacy_f32,
                             [](auto a, auto b)
                                 HWY_ATTR { return legacy_zero(a, b, hn::Mul(a, b)); }),
    op<F32(F32, F32, F32)>(Opcode::v_fma_f32, float_fma),
    op<F32(F32, F32, F32)>(Opcode::v_fmac_f32, float_fma),
    op<F32(F32, F32, F32)>(Opcode::v_mad_f32, mad),
    op<F32(F32, F32, F32)>(Opcode::v_mac_f32, mad),
    op<F32(F32, F32, F32), kCold>(Opcode::v_fmamk_f32, float_fma),
    op<F32(F32, F32, F32), kCold>(Opcode::v_fmaak_f32, float_fma),
    op<F32(F32, F32, F32), kCold>(Opcode::v_madmk_f32, mad),
    op<F32(F32, F32, F32), kCold>(Opcode::v_madak_f32, mad),
    op<F32(F32, F32, F32), kCold>(
        Opcode::v_mad_legacy_f32,
        [](auto a, auto b, auto c) HWY_ATTR {
          return flushed(
              hn::Add(legacy_zero(flushed(a), flushed(b), flushed(hn::Mul(flushed(a), flushed(b)))),
                      flushed(c)));
        }),
    op<F32(F32, F32), kIeee>(Opcode::v_min_f32, float_min),
    op<F32(F32, F32), kIeee>(Opcode::v_max_f32, float_max),
    op<F32(F32, F32, F32), kIeee | kCold>(Opcode::v_min3_f32, float_min3),
    op<F32(F32, F32, F32), kIeee | kCold>(Opcode::v_max3_f32, float_max3),
    op<F32(F32, F32, F32), kIeee | kCold>(Opcode::v_med3_f32, float_med3),
    op<F32(F32)>(Opcode::v_trunc_f32, float_trunc),
    op<F32(F32)>(Opcode::v_ceil_f32, float_ceil),
    op<F32(F32)>(Opcode::v_floor_f32, float_floor),
    op<F32(F32)>(Opcode::v_rndne_f32, float_rndne),
    op<F32(F32)>(Opcode::v_fract_f32, float_fract),
    op<F32(F32, I32), kWide>(Opcode::v_ldexp_f32,
                             [](auto a, auto n) HWY_ATTR {
                               return narrowed(
                                   scaled(widened(a), hn::PromoteTo(hn::RebindToSigned<D64>{}, n)));
                             }),

    pk<F32(F32, F32)>(Opcode::v_pk_add_f32, float_add),
    pk<F32(F32, F32)>(Opcode::v_pk_mul_f32, float_mul),
    pk<F32(F32, F32, F32)>(Opcode::v_pk_fma_f32, float_fma),
    own(Opcode::v_pk_mov_b32, pk_mov, 2),

    mixed(op<F32(F32, F32, F32), kCold>(Opcode::v_mad_mix_f32, mad), Packing::mix),
    mixed(op<F32(F32, F32, F32), kCold>(Opcode::v_mad_mixlo_f16, mad), Packing::mix_low),
    mixed(op<F32(F32, F32, F32), kCold>(Opcode::v_mad_mixhi_f16, mad), Packing::mix_high),
    mixed(op<F32(F32, F32, F32), kCold>(Opcode::v_fma_mix_f32, float_fma), Packing::mix),
    mixed(op<F32(F32, F32, F32), kCold>(Opcode::v_fma_mixlo_f16, float_fma), Packing::mix_low),
    mixed(op<F32(F32, F32, F32), kCold>(Opcode::v_fma_mixhi_f16, float_fma), Packing::mix_high),
};

}  // namespace

std::span<const Entry> float32_entries() { return kEntries; }

}  // namespace uptempo::vgpu::gfx9::vector::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
