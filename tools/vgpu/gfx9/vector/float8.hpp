// gfx942's 8-bit floats: FP8 (4 bits of exponent, 3 of fraction) and BF8 (5 and 2). Both are the
// "FNUZ" formats: no infinity, no negative zero, one NaN (0x80), and an exponent bias of 8 and 16.
//
// Sources: ROCm, "Data types and precision support"; LLVM's Float8E4M3FNUZ and Float8E5M2FNUZ.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace uptempo::vgpu::gfx9::vector {

struct Float8 {
  unsigned fraction_bits;
  int bias;
  static constexpr uint32_t kNan = 0x80;
};
inline constexpr Float8 kFp8{3, 8}, kBf8{2, 16};

// Exact. `bits`: 0 to 255.
constexpr float float8_value(Float8 format, uint32_t bits) noexcept {
  if (bits == Float8::kNan) return std::numeric_limits<float>::quiet_NaN();
  const uint32_t magnitude = bits & 0x7f, exponent = magnitude >> format.fraction_bits;
  const uint32_t fraction = magnitude & ((1u << format.fraction_bits) - 1);
  const uint32_t significand = exponent == 0 ? fraction : fraction | 1u << format.fraction_bits;
  const int power = static_cast<int>(exponent == 0 ? 1 : exponent) - format.bias -
                    static_cast<int>(format.fraction_bits);
  const float scale = std::bit_cast<float>(static_cast<uint32_t>(power + 127) << 23);
  const float value = static_cast<float>(significand) * scale;
  return (bits & 0x80) != 0 ? -value : value;
}

// How a conversion rounds: to nearest even, or stochastically. Stochastic rounding adds the high
// bits of `seed`, as many as the conversion drops, to the fraction and then truncates. A denormal
// result is first aligned to the smallest exponent; bits that this drops are not used.
struct Nearest {};
struct Stochastic {
  uint32_t seed;
};

// A NaN gives the NaN. An infinity, and a result past the largest number, give the largest number
// of their sign if `saturates`, else the NaN. A result of zero is +0.
//
// Sources: HIP's software conversion without saturation (amd_hip_fp8.h, cast_to_f8()); the CDNA ISA
// manual's table "FP16_OVFL rule" of these conversions. The seed's bits: no document of CDNA 3 that
// is public as text; captures of RDNA 4 in public emulators.
template <class Rounding>
constexpr uint32_t float8_of(Float8 format, float value, Rounding rounding,
                             bool saturates) noexcept {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 24 & 0x80, field = bits >> 23 & 0xff;
  const uint32_t beyond = saturates ? sign | 0x7f : Float8::kNan;
  if (field == 0xff) return (bits & 0x7fffff) == 0 ? beyond : Float8::kNan;
  const unsigned dropped = 23 - format.fraction_bits;
  // The exponent field that the result would have. Float32's denormals are far below the smallest
  // result.
  const int exponent = static_cast<int>(field) - 127 + format.bias;
  uint64_t significand = field == 0 ? 0 : (bits & 0x7fffff) | 0x800000;
  const unsigned alignment = exponent >= 1    ? 0
                             : exponent < -40 ? 41
                                              : static_cast<unsigned>(1 - exponent);
  if constexpr (std::is_same_v<Rounding, Stochastic>) {
    significand = (significand >> alignment) + (rounding.seed >> (32 - dropped));
    significand >>= dropped;
  } else {
    const unsigned shift = dropped + alignment;
    const uint64_t rest = significand & ((uint64_t{1} << shift) - 1),
                   half = uint64_t{1} << (shift - 1);
    significand >>= shift;
    if (rest > half || (rest == half && (significand & 1) != 0)) ++significand;
  }
  // The implicit bit of a normal significand counts as one in the exponent's place. A carry of the
  // rounding moves to the next exponent in the same way.
  const auto base = static_cast<uint64_t>(exponent >= 1 ? exponent - 1 : 0);
  const uint64_t magnitude = (base << format.fraction_bits) + significand;
  if (magnitude > 0x7f) return beyond;
  return magnitude == 0 ? 0 : sign | static_cast<uint32_t>(magnitude);
}

}  // namespace uptempo::vgpu::gfx9::vector
