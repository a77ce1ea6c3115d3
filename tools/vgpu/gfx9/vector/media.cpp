// Sums of absolute differences, dot products, cube maps, trig_preop. They are rarely executed, so
// one lane at a time.
#include <cfloat>
#include <cmath>

#include "gfx9/vector/scalar_core.hpp"

namespace uptempo::vgpu::gfx9::vector {
namespace {

using u32 = uint32_t;
using i32 = int32_t;
using u64 = uint64_t;
using i64 = int64_t;

constexpr u32 byte(u64 v, unsigned i) { return static_cast<u32>(v >> (8 * i) & 0xff); }
constexpr u32 distance(u32 a, u32 b) { return a > b ? a - b : b - a; }

constexpr u32 sad_u8(u32 a, u32 b) {
  u32 sum = 0;
  for (unsigned i = 0; i < 4; ++i) sum += distance(byte(a, i), byte(b, i));
  return sum;
}
// Reference bytes of zero are masked out.
constexpr u32 msad_u8(u32 a, u32 b) {
  u32 sum = 0;
  for (unsigned i = 0; i < 4; ++i) sum += byte(b, i) == 0 ? 0 : distance(byte(a, i), byte(b, i));
  return sum;
}
constexpr u32 sad_u16(u32 a, u32 b) {
  return distance(a & 0xffff, b & 0xffff) + distance(a >> 16, b >> 16);
}
constexpr u32 added(u32 a, u32 b, bool saturates) {
  return saturates && a + b < a ? ~u32{0} : a + b;
}

// A sum of differences plus the third operand: the plain form and, for the clamp bit, one that
// saturates.
template <u32 (*kSad)(u32, u32), unsigned kShift = 0>
constexpr Entry sad(Opcode opcode) {
  return scalar_op<U32(U32, U32, U32)>(
      opcode, [](u32 a, u32 b, u32 c) { return added(kSad(a, b) << kShift, c, false); },
      [](u32 a, u32 b, u32 c) { return added(kSad(a, b) << kShift, c, true); });
}

template <u32 (*kSad)(u32, u32)>
constexpr u64 quad(u64 a, u32 b, u64 sums, bool saturates) {
  u64 result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const u32 sum =
        kSad(static_cast<u32>(a >> (8 * i)), b) + static_cast<u32>(sums >> (16 * i) & 0xffff);
    result |= static_cast<u64>(saturates && sum > 0xffff ? 0xffff : sum & 0xffff) << (16 * i);
  }
  return result;
}
template <u32 (*kSad)(u32, u32)>
constexpr Entry quad_sad(Opcode opcode) {
  return scalar_op<U64(U64, U32, U64)>(
      opcode, [](u64 a, u32 b, u64 c) { return quad<kSad>(a, b, c, false); },
      [](u64 a, u32 b, u64 c) { return quad<kSad>(a, b, c, true); });
}

// v_mqsad_u32_u8: as v_mqsad_pk_u16_u8, with sums in four registers each.
const Op* mqsad_u32(const Op& op, Wave& wave) {
  const Instruction& in = op.in;
  const auto operand = [&](unsigned i, unsigned reg, unsigned lane, Type type) {
    if (is_vgpr(in.src[i])) return wave.vgpr[in.src[i] - kFirstVgpr + reg].lane[lane];
    return static_cast<u32>(scalar_operand(wave, in, i, type) >> (32 * (reg & 1)));
  };
  const u64 exec = wave.exec();
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    if ((exec >> lane & 1) == 0) continue;
    const u64 a = operand(0, 0, lane, Type::u64) | static_cast<u64>(operand(0, 1, lane, Type::u64))
                                                       << 32;
    const u32 b = operand(1, 0, lane, Type::u32);
    u32 sums[4];
    for (unsigned i = 0; i < 4; ++i)
      sums[i] = added(msad_u8(static_cast<u32>(a >> (8 * i)), b), operand(2, i, lane, Type::u64),
                      in.clamp);
    for (unsigned i = 0; i < 4; ++i) wave.vgpr[in.dst + i].lane[lane] = sums[i];
  }
  return next(op);
}
constexpr Entry with_flushing(Entry e, Core core) {
  e.flushing = core;
  return e;
}
constexpr Entry of_pairs(Entry e) {
  e.packing = Packing::pairs;
  return e;
}
constexpr Entry own(Opcode opcode, Handler handler) {
  Entry e;
  e.opcode = opcode;
  e.own = handler;
  e.sources = 3;
  return e;
}

// Dot product of all fields of kBits each, plus c, exact.
template <unsigned kBits, bool kSigned>
constexpr i64 dot(u32 a, u32 b, i64 c) {
  for (unsigned at = 0; at < 32; at += kBits) {
    const auto field = [&](u32 v) -> i64 {
      const u32 top = v << (32 - kBits - at);
      return kSigned ? static_cast<i64>(static_cast<i32>(top) >> (32 - kBits))
                     : static_cast<i64>(top >> (32 - kBits));
    };
    c += field(a) * field(b);
  }
  return c;
}
template <unsigned kBits>
constexpr auto dot_i =
    [](u32 a, u32 b, i32 c) { return static_cast<i32>(dot<kBits, true>(a, b, c)); };
template <unsigned kBits>
constexpr auto dot_i_saturated = [](u32 a, u32 b, i32 c) {
  const i64 sum = dot<kBits, true>(a, b, c);
  return static_cast<i32>(sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum);
};
template <unsigned kBits>
constexpr auto dot_u =
    [](u32 a, u32 b, u32 c) { return static_cast<u32>(dot<kBits, false>(a, b, c)); };
template <unsigned kBits>
constexpr auto dot_u_saturated = [](u32 a, u32 b, u32 c) {
  const i64 sum = dot<kBits, false>(a, b, c);
  return static_cast<u32>(sum > i64{UINT32_MAX} ? i64{UINT32_MAX} : sum);
};
// Each product and each sum rounds to float32, in the order of the manual.
constexpr auto dot2_f16 = [](u32 a, u32 b, float c) {
  c += half_value(a & 0xffff) * half_value(b & 0xffff);
  c += half_value(a >> 16) * half_value(b >> 16);
  return c;
};
// The same with zeros for denormals. Products of normal halves are normal.
float flushed(float x) { return std::fabs(x) < FLT_MIN ? std::copysign(0.0f, x) : x; }
float flushed_half(u32 bits) { return (bits & 0x7c00) == 0 ? 0.0f : half_value(bits & 0xffff); }
constexpr auto dot2_f16_flushed = [](u32 a, u32 b, float c) {
  c = flushed(flushed(c) + flushed_half(a) * flushed_half(b));
  return flushed(c + flushed_half(a >> 16) * flushed_half(b >> 16));
};
constexpr Core kDot2Flushed = scalar_core<F32(U32, U32, F32)>(dot2_f16_flushed);

// The largest of |x|, |y|, |z|, ties to z, then y.
enum class Face { x, y, z };
Face face(float x, float y, float z) {
  if (std::fabs(z) >= std::fabs(x) && std::fabs(z) >= std::fabs(y)) return Face::z;
  return std::fabs(y) >= std::fabs(x) ? Face::y : Face::x;
}

// 2/pi after the binary point, most significant first: 1216 bits, of which v_trig_preop_f64 uses
// 1201.
constexpr u64 kTwoOverPi[19] = {
    0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
    0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484,
    0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d, 0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab};

double trig_preop(double x, u32 segment) {
  const auto exponent = static_cast<unsigned>(std::bit_cast<u64>(x) >> 52 & 0x7ff);
  unsigned shift = (segment & 31) * 53;
  if (exponent > 1077) shift += exponent - 1077;
  // 53 bits from bit `shift` on; beyond the constant there are only zeros.
  const unsigned word = shift / 64, bit = shift % 64;
  const auto part = [](unsigned i) { return i < 19 ? kTwoOverPi[i] : u64{0}; };
  const u64 window = bit == 0 ? part(word) : part(word) << bit | part(word + 1) >> (64 - bit);
  int scale = -53 - static_cast<int>(shift);
  if (exponent >= 1968) scale += 128;
  return std::ldexp(static_cast<double>(window >> 11), scale);
}

constexpr Entry kEntries[] = {
    sad<sad_u8>(Opcode::v_sad_u8),
    sad<sad_u8, 16>(Opcode::v_sad_hi_u8),
    sad<sad_u16>(Opcode::v_sad_u16),
    sad<distance>(Opcode::v_sad_u32),
    sad<msad_u8>(Opcode::v_msad_u8),
    quad_sad<sad_u8>(Opcode::v_qsad_pk_u16_u8),
    quad_sad<msad_u8>(Opcode::v_mqsad_pk_u16_u8),
    own(Opcode::v_mqsad_u32_u8, mqsad_u32),
    scalar_op<U32(U32, U32, U32)>(Opcode::v_lerp_u8,
                                  [](u32 a, u32 b, u32 c) {
                                    u32 result = 0;
                                    for (unsigned i = 0; i < 4; ++i)
                                      result |= (byte(a, i) + byte(b, i) + (byte(c, i) & 1)) >>
                                                1 << (8 * i);
                                    return result;
                                  }),

    of_pairs(scalar_op<I32(U32, U32, I32)>(Opcode::v_dot2_i32_i16, dot_i<16>, dot_i_saturated<16>)),
    of_pairs(scalar_op<U32(U32, U32, U32)>(Opcode::v_dot2_u32_u16, dot_u<16>, dot_u_saturated<16>)),
    scalar_op<I32(U32, U32, I32)>(Opcode::v_dot4_i32_i8, dot_i<8>, dot_i_saturated<8>),
    scalar_op<U32(U32, U32, U32)>(Opcode::v_dot4_u32_u8, dot_u<8>, dot_u_saturated<8>),
    scalar_op<I32(U32, U32, I32)>(Opcode::v_dot8_i32_i4, dot_i<4>, dot_i_saturated<4>),
    scalar_op<U32(U32, U32, U32)>(Opcode::v_dot8_u32_u4, dot_u<4>, dot_u_saturated<4>),
    scalar_op<I32(U32, U32, I32)>(Opcode::v_dot2c_i32_i16, dot_i<16>),
    scalar_op<I32(U32, U32, I32)>(Opcode::v_dot4c_i32_i8, dot_i<8>),
    scalar_op<I32(U32, U32, I32)>(Opcode::v_dot8c_i32_i4, dot_i<4>),
    with_flushing(of_pairs(scalar_op<F32(U32, U32, F32)>(Opcode::v_dot2_f32_f16, dot2_f16)),
                  kDot2Flushed),
    with_flushing(scalar_op<F32(U32, U32, F32)>(Opcode::v_dot2c_f32_f16, dot2_f16), kDot2Flushed),

    scalar_op<F32(F32, F32, F32)>(
        Opcode::v_cubeid_f32,
        [](float x, float y, float z) {
          const Face f = face(x, y, z);
          const float along = f == Face::z ? z : f == Face::y ? y : x;
          return (f == Face::z ? 4.0f : f == Face::y ? 2.0f : 0.0f) + (along < 0 ? 1.0f : 0.0f);
        }),
    scalar_op<F32(F32, F32, F32)>(Opcode::v_cubesc_f32,
                                  [](float x, float y, float z) {
                                    const Face f = face(x, y, z);
                                    if (f == Face::z) return z < 0 ? -x : x;
                                    if (f == Face::y) return x;
                                    return x < 0 ? z : -z;
                                  }),
    scalar_op<F32(F32, F32, F32)>(
        Opcode::v_cubetc_f32,
        [](float x, float y, float z) { return face(x, y, z) == Face::y ? (y < 0 ? -z : z) : -y; }),
    scalar_op<F32(F32, F32, F32)>(Opcode::v_cubema_f32,
                                  [](float x, float y, float z) {
                                    const Face f = face(x, y, z);
                                    return 2.0f * (f == Face::z ? z : f == Face::y ? y : x);
                                  }),
    scalar_op<F64(F64, U32)>(Opcode::v_trig_preop_f64,
                             [](double x, u32 segment) { return trig_preop(x, segment); }),
};

}  // namespace

std::span<const Entry> media_entries() { return kEntries; }

}  // namespace uptempo::vgpu::gfx9::vector
