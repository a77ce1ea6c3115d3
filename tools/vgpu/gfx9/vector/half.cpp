#include "gfx9/vector/half.hpp"

#include <immintrin.h>

#include <bit>

namespace uptempo::vgpu::gfx9::vector {

float half_value(uint32_t bits) noexcept {
  const uint32_t sign = (bits & 0x8000u) << 16;
  const uint32_t exponent = bits >> 10 & 0x1fu;
  const uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 31)
    return std::bit_cast<float>(sign | 0x7f800000u | (mantissa ? 0x400000u : 0u) | mantissa << 13);
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
}

uint32_t half_of(float value, unsigned rounding) noexcept {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7e00u | (magnitude >> 13 & 0x1ffu);
  if (magnitude == 0x7f800000u) return sign | 0x7c00u;
  const bool away = (rounding == 1 && sign) || (rounding == 2 && !sign);

  // The unrounded result, and the remainder as a fraction of a unit in the last place, scaled so
  // that 0x80000000 is a half.
  uint32_t result;
  uint32_t rest;
  const int exponent = static_cast<int>(magnitude >> 23) - 127;
  if (exponent > 15) {
    return sign | (rounding == 0 || away ? 0x7c00u : 0x7bffu);
  } else if (exponent >= -14) {
    result = (magnitude - (112u << 23)) >> 13;
    rest = magnitude << 19;
  } else if (exponent >= -26) {
    const uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
    const unsigned shift = static_cast<unsigned>(-1 - exponent);  // 14..25
    result = shift > 23 ? 0 : significand >> shift;
    rest = significand << (32 - shift);
  } else {
    result = 0;
    rest = magnitude != 0 ? 1 : 0;
  }
  if (rounding == 0) {
    if (rest > 0x80000000u || (rest == 0x80000000u && (result & 1))) ++result;
  } else if (away && rest != 0) {
    ++result;
  }
  return sign | result;
}

// MXCSR's DAZ applies, as for VCVTPS2PH.
uint32_t half_of(float value) noexcept {
  const unsigned control = _mm_getcsr();
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const bool flushes = (control & 0x40) != 0 && (bits & 0x7f800000u) == 0;
  return half_of(flushes ? std::bit_cast<float>(bits & 0x80000000u) : value, control >> 13 & 3u);
}

}  // namespace uptempo::vgpu::gfx9::vector
