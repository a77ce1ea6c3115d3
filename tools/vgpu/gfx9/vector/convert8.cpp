// Conversions between float32 and gfx942's 8-bit floats, one lane at a time.
//
// MODE's rounding and denormal bits do not apply. MODE.FP16_OVFL saturates.
#include "gfx9/vector/float8.hpp"
#include "gfx9/vector/scalar_core.hpp"

namespace uptempo::vgpu::gfx9::vector {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;

template <const Float8& kFormat>
float widened(u32 source) {
  return float8_value(kFormat, source & 0xff);
}
template <const Float8& kFormat>
u64 widened_pair(u32 source) {
  const auto half = [&](unsigned shift) {
    return u64{std::bit_cast<u32>(widened<kFormat>(source >> shift))};
  };
  return half(0) | half(8) << 32;
}

// The bits of a float32 source in one lane, with abs and neg.
u32 float_bits(const Wave& wave, const Instruction& in, unsigned i, unsigned lane) {
  u32 bits = is_vgpr(in.src[i]) ? wave.vgpr[in.src[i] - kFirstVgpr].lane[lane]
                                : static_cast<u32>(scalar_operand(wave, in, i, Type::f32));
  if (in.abs >> i & 1) bits &= 0x7fffffffu;
  if (in.neg >> i & 1) bits ^= 0x80000000u;
  return bits;
}

// Writes `width` bits at `shift` of every active lane and keeps the others.
template <class F>
const Op* insert(const Op& op, Wave& wave, unsigned shift, u32 width, F&& value) {
  const uint64_t exec = wave.exec();
  const u32 mask = ((u32{1} << width) - 1) << shift;
  Vgpr result = wave.vgpr[op.in.dst];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    if (exec >> lane & 1) result.lane[lane] = (result.lane[lane] & ~mask) | value(lane) << shift;
  }
  wave.vgpr[op.in.dst] = result;
  return next(op);
}

// Two conversions to one half of the destination, which op_sel's last bit selects.
template <const Float8& kFormat>
const Op* narrow_pair(const Op& op, Wave& wave) {
  const Instruction& in = op.in;
  const bool saturates = (wave.mode & kModeFp16Ovfl) != 0;
  return insert(op, wave, (in.op_sel >> 3 & 1) * 16u, 16, [&](unsigned lane) {
    const auto half = [&](unsigned i) {
      return float8_of(kFormat, std::bit_cast<float>(float_bits(wave, in, i, lane)), Nearest{},
                       saturates);
    };
    return half(0) | half(1) << 8;
  });
}

// To the byte that op_sel's last two bits select: bit 3 is the byte's high bit.
template <const Float8& kFormat>
const Op* narrow_stochastically(const Op& op, Wave& wave) {
  const Instruction& in = op.in;
  const bool saturates = (wave.mode & kModeFp16Ovfl) != 0;
  return insert(op, wave, (in.op_sel >> 2 & 3) * 8u, 8, [&](unsigned lane) {
    const u32 seed = is_vgpr(in.src[1]) ? wave.vgpr[in.src[1] - kFirstVgpr].lane[lane]
                                        : static_cast<u32>(scalar_operand(wave, in, 1, Type::u32));
    return float8_of(kFormat, std::bit_cast<float>(float_bits(wave, in, 0, lane)), Stochastic{seed},
                     saturates);
  });
}

constexpr Entry kEntries[] = {
    scalar_op<F32(U32)>(Opcode::v_cvt_f32_fp8, [](u32 x) { return widened<kFp8>(x); }),
    scalar_op<F32(U32)>(Opcode::v_cvt_f32_bf8, [](u32 x) { return widened<kBf8>(x); }),
    scalar_op<U64(U32)>(Opcode::v_cvt_pk_f32_fp8, [](u32 x) { return widened_pair<kFp8>(x); }),
    scalar_op<U64(U32)>(Opcode::v_cvt_pk_f32_bf8, [](u32 x) { return widened_pair<kBf8>(x); }),
    own(Opcode::v_cvt_pk_fp8_f32, &narrow_pair<kFp8>, 2),
    own(Opcode::v_cvt_pk_bf8_f32, &narrow_pair<kBf8>, 2),
    own(Opcode::v_cvt_sr_fp8_f32, &narrow_stochastically<kFp8>, 2),
    own(Opcode::v_cvt_sr_bf8_f32, &narrow_stochastically<kBf8>, 2),
};

}  // namespace

std::span<const Entry> convert8_entries() { return kEntries; }

}  // namespace uptempo::vgpu::gfx9::vector
