// Operand codes of the gfx9 encodings and the values of the constant ones. Decoder, scalar unit,
// vector unit and memory share this definition.
//
// A source code has 9 bits: 0..127 scalar registers, 128..208 and 240..248 inline constants,
// 235..239 apertures, 251..253 status bits, 255 a literal after the instruction, 256..511 vector
// registers.
//
// Source: "Vega" ISA manual, "Scalar ALU Operands" and "Instruction Operands".
#pragma once

#include <bit>
#include <cstdint>

#include "device/apertures.hpp"

namespace uptempo::vgpu::gfx9 {

using OperandCode = uint16_t;

// Named scalar registers: the low half of each pair.
inline constexpr unsigned kFlatScratchLo = 102, kXnackMaskLo = 104, kVccLo = 106, kM0 = 124,
                          kExecLo = 126;
inline constexpr unsigned kFirstConstant = 128;  // below: registers

inline constexpr unsigned kSharedBase = 235, kSharedLimit = 236, kPrivateBase = 237,
                          kPrivateLimit = 238, kPopsExitingWaveId = 239;
inline constexpr unsigned kVccz = 251, kExecz = 252, kScc = 253;
inline constexpr OperandCode kLiteral = 255;
inline constexpr OperandCode kFirstVgpr = 256;

constexpr bool is_vgpr(OperandCode code) noexcept { return code >= kFirstVgpr; }
constexpr bool is_integer_constant(unsigned code) noexcept { return code >= 128 && code <= 208; }
constexpr bool is_float_constant(unsigned code) noexcept { return code >= 240 && code <= 248; }
constexpr bool is_inline_constant(unsigned code) noexcept {
  return is_integer_constant(code) || is_float_constant(code);
}
constexpr bool is_aperture(unsigned code) noexcept {
  return code >= kSharedBase && code <= kPopsExitingWaveId;
}
constexpr bool is_status(unsigned code) noexcept { return code >= kVccz && code <= kScc; }

// 0.5, -0.5, 1, -1, 2, -2, 4, -4 and 1/(2 pi), in the type of the operand.
constexpr uint16_t float_constant16(unsigned code) noexcept {
  constexpr uint16_t kValues[9] = {0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000,
                                   0xc000, 0x4400, 0xc400, 0x3118};
  return kValues[code - 240];
}
// Codes that no instruction has: the same constants, as 16-bit operands read them. The decoder
// never makes them.
inline constexpr OperandCode kFirstHalfConstant = 209;
constexpr bool is_half_constant(unsigned code) noexcept {
  return code >= kFirstHalfConstant && code < kFirstHalfConstant + 9;
}
constexpr OperandCode half_constant(OperandCode float_constant) noexcept {
  return static_cast<OperandCode>(float_constant - 240 + kFirstHalfConstant);
}
constexpr uint32_t float_constant32(unsigned code) noexcept {
  constexpr float kValues[8] = {0.5f, -0.5f, 1, -1, 2, -2, 4, -4};
  return code == 248 ? 0x3e22f983u : std::bit_cast<uint32_t>(kValues[code - 240]);
}
constexpr uint64_t float_constant64(unsigned code) noexcept {
  constexpr double kValues[8] = {0.5, -0.5, 1, -1, 2, -2, 4, -4};
  return code == 248 ? 0x3fc45f306dc9c882u : std::bit_cast<uint64_t>(kValues[code - 240]);
}

// Value of a source code from 128 to 255 as a 64-bit operand; 0 for codes that are not constants.
// Integers are sign-extended.
constexpr uint64_t constant64(unsigned code) noexcept {
  if (code >= 128 && code <= 192) return code - 128;
  if (code >= 193 && code <= 208) return 0 - uint64_t{code - 192};
  if (is_float_constant(code)) return float_constant64(code);
  switch (code) {
    case kSharedBase:
      return aperture_base(kSharedAperture);
    case kSharedLimit:
      return aperture_limit(kSharedAperture);
    case kPrivateBase:
      return aperture_base(kPrivateAperture);
    case kPrivateLimit:
      return aperture_limit(kPrivateAperture);
    default:
      return 0;
  }
}
// The same as a 32-bit operand. An aperture gives 0: LLVM's getSegmentAperture() calls the register
// broken for 32-bit readers.
constexpr uint32_t constant32(unsigned code) noexcept {
  if (is_float_constant(code)) return float_constant32(code);
  if (is_half_constant(code)) return float_constant16(code - kFirstHalfConstant + 240);
  return is_aperture(code) ? 0 : static_cast<uint32_t>(constant64(code));
}

}  // namespace uptempo::vgpu::gfx9
