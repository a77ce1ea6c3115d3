// Number of blocks of a matrix instruction, and its valid modifiers.
#pragma once

#include "gfx9/decode/instruction.hpp"

namespace uptempo::vgpu::gfx9::vector {

// Returns 0 for other instructions.
constexpr unsigned matrix_blocks(Opcode opcode) noexcept {
  switch (opcode) {
    case Opcode::v_mfma_f32_4x4x1f32:
    case Opcode::v_mfma_f32_4x4x4f16:
    case Opcode::v_mfma_i32_4x4x4i8:
    case Opcode::v_mfma_f32_4x4x2bf16:
    case Opcode::v_mfma_f32_4x4x4bf16_1k:
      return 16;
    case Opcode::v_mfma_f32_16x16x1f32:
    case Opcode::v_mfma_f32_16x16x4f16:
    case Opcode::v_mfma_i32_16x16x4i8:
    case Opcode::v_mfma_f32_16x16x2bf16:
    case Opcode::v_mfma_f32_16x16x4bf16_1k:
    case Opcode::v_mfma_f64_4x4x4f64:
      return 4;
    case Opcode::v_mfma_f32_32x32x1f32:
    case Opcode::v_mfma_f32_32x32x4f16:
    case Opcode::v_mfma_i32_32x32x4i8:
    case Opcode::v_mfma_f32_32x32x2bf16:
    case Opcode::v_mfma_f32_32x32x4bf16_1k:
      return 2;
    case Opcode::v_mfma_f32_32x32x2f32:
    case Opcode::v_mfma_f32_16x16x4f32:
    case Opcode::v_mfma_f32_32x32x8f16:
    case Opcode::v_mfma_f32_16x16x16f16:
    case Opcode::v_mfma_i32_32x32x8i8:
    case Opcode::v_mfma_i32_16x16x16i8:
    case Opcode::v_mfma_f32_32x32x4bf16:
    case Opcode::v_mfma_f32_16x16x8bf16:
    case Opcode::v_mfma_f32_32x32x8bf16_1k:
    case Opcode::v_mfma_f32_16x16x16bf16_1k:
    case Opcode::v_mfma_f64_16x16x4f64:
      return 1;
    default:
      return 0;
  }
}

constexpr unsigned matrix_cbsz(const Instruction& in) noexcept { return in.neg_hi; }
constexpr unsigned matrix_abid(const Instruction& in) noexcept {
  return in.op_sel | (in.op_sel_hi >> 2 & 1u) << 3;
}
constexpr unsigned matrix_blgp(const Instruction& in) noexcept { return in.neg; }

// Whether AMD defines CBSZ, ABID and BLGP of a matrix instruction for gfx908 and gfx90a. 2^CBSZ is
// at most the number of blocks, and ABID names a block of such a group. The float64 instructions
// have neither; BLGP negates their operands only since gfx940.
//
// Source: the README of AMD's matrix instruction calculator.
constexpr bool has_matrix_modifiers(const Instruction& in) noexcept {
  if (in.opcode == Opcode::v_mfma_f64_16x16x4f64 || in.opcode == Opcode::v_mfma_f64_4x4x4f64)
    return matrix_cbsz(in) == 0 && matrix_abid(in) == 0 && matrix_blgp(in) == 0;
  const unsigned group = 1u << matrix_cbsz(in);
  return group <= matrix_blocks(in.opcode) && matrix_abid(in) < group;
}

}  // namespace uptempo::vgpu::gfx9::vector
