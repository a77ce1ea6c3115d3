// Number of blocks of a matrix instruction, its valid modifiers, and the places of its result.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "gfx9/decode/instruction.hpp"

namespace uptempo::vgpu::gfx9::vector {

// gfx942's instructions of one block that have no modifiers.
constexpr bool is_plain_matrix(Opcode opcode) noexcept {
  switch (opcode) {
    case Opcode::v_mfma_f32_16x16x8_xf32:
    case Opcode::v_mfma_f32_32x32x4_xf32:
    case Opcode::v_mfma_f32_32x32x8_f16:
    case Opcode::v_mfma_f32_16x16x16_f16:
    case Opcode::v_mfma_i32_32x32x16_i8:
    case Opcode::v_mfma_i32_16x16x32_i8:
    case Opcode::v_mfma_f32_32x32x8_bf16:
    case Opcode::v_mfma_f32_16x16x16_bf16:
    case Opcode::v_mfma_f32_16x16x32_bf8_bf8:
    case Opcode::v_mfma_f32_16x16x32_bf8_fp8:
    case Opcode::v_mfma_f32_16x16x32_fp8_bf8:
    case Opcode::v_mfma_f32_16x16x32_fp8_fp8:
    case Opcode::v_mfma_f32_32x32x16_bf8_bf8:
    case Opcode::v_mfma_f32_32x32x16_bf8_fp8:
    case Opcode::v_mfma_f32_32x32x16_fp8_bf8:
    case Opcode::v_mfma_f32_32x32x16_fp8_fp8:
      return true;
    default:
      return false;
  }
}

// The sparse instructions: number of sets of compression indices in a lane of src2, which depends
// on the width of the inputs. Returns 0 for other instructions.
constexpr unsigned sparse_index_sets(Opcode opcode) noexcept {
  switch (opcode) {
    case Opcode::v_smfmac_f32_16x16x32_f16:
    case Opcode::v_smfmac_f32_32x32x16_f16:
    case Opcode::v_smfmac_f32_16x16x32_bf16:
    case Opcode::v_smfmac_f32_32x32x16_bf16:
      return 4;
    case Opcode::v_smfmac_i32_16x16x64_i8:
    case Opcode::v_smfmac_i32_32x32x32_i8:
    case Opcode::v_smfmac_f32_16x16x64_bf8_bf8:
    case Opcode::v_smfmac_f32_16x16x64_bf8_fp8:
    case Opcode::v_smfmac_f32_16x16x64_fp8_bf8:
    case Opcode::v_smfmac_f32_16x16x64_fp8_fp8:
    case Opcode::v_smfmac_f32_32x32x32_bf8_bf8:
    case Opcode::v_smfmac_f32_32x32x32_bf8_fp8:
    case Opcode::v_smfmac_f32_32x32x32_fp8_bf8:
    case Opcode::v_smfmac_f32_32x32x32_fp8_fp8:
      return 2;
    default:
      return 0;
  }
}

// Returns 0 for other instructions.
constexpr unsigned matrix_blocks(Opcode opcode) noexcept {
  switch (opcode) {
    case Opcode::v_mfma_f32_4x4x1f32:
    case Opcode::v_mfma_f32_4x4x4f16:
    case Opcode::v_mfma_i32_4x4x4i8:
    case Opcode::v_mfma_f32_4x4x2bf16:
    case Opcode::v_mfma_f32_4x4x4bf16_1k:
    case Opcode::v_mfma_f32_4x4x1_16b_f32:
    case Opcode::v_mfma_f32_4x4x4_16b_f16:
    case Opcode::v_mfma_i32_4x4x4_16b_i8:
    case Opcode::v_mfma_f32_4x4x4_16b_bf16:
      return 16;
    case Opcode::v_mfma_f32_16x16x1f32:
    case Opcode::v_mfma_f32_16x16x4f16:
    case Opcode::v_mfma_i32_16x16x4i8:
    case Opcode::v_mfma_f32_16x16x2bf16:
    case Opcode::v_mfma_f32_16x16x4bf16_1k:
    case Opcode::v_mfma_f64_4x4x4f64:
    case Opcode::v_mfma_f32_16x16x1_4b_f32:
    case Opcode::v_mfma_f32_16x16x4_4b_f16:
    case Opcode::v_mfma_i32_16x16x4_4b_i8:
    case Opcode::v_mfma_f32_16x16x4_4b_bf16:
    case Opcode::v_mfma_f64_4x4x4_4b_f64:
      return 4;
    case Opcode::v_mfma_f32_32x32x1f32:
    case Opcode::v_mfma_f32_32x32x4f16:
    case Opcode::v_mfma_i32_32x32x4i8:
    case Opcode::v_mfma_f32_32x32x2bf16:
    case Opcode::v_mfma_f32_32x32x4bf16_1k:
    case Opcode::v_mfma_f32_32x32x1_2b_f32:
    case Opcode::v_mfma_f32_32x32x4_2b_f16:
    case Opcode::v_mfma_i32_32x32x4_2b_i8:
    case Opcode::v_mfma_f32_32x32x4_2b_bf16:
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
    case Opcode::v_mfma_f32_32x32x2_f32:
    case Opcode::v_mfma_f32_16x16x4_f32:
    case Opcode::v_mfma_f64_16x16x4_f64:
      return 1;
    default:
      return is_plain_matrix(opcode) || sparse_index_sets(opcode) != 0 ? 1 : 0;
  }
}

constexpr unsigned matrix_cbsz(const Instruction& in) noexcept { return in.neg_hi; }
constexpr unsigned matrix_abid(const Instruction& in) noexcept {
  return in.op_sel | (in.op_sel_hi >> 2 & 1u) << 3;
}
constexpr unsigned matrix_blgp(const Instruction& in) noexcept { return in.neg; }

// Whether AMD defines CBSZ, ABID and BLGP of a matrix instruction. 2^CBSZ is at most the number of
// blocks, and ABID names a block of such a group. The float64 instructions have neither; BLGP
// negates their operands on gfx942 and is not defined before. Sparse instructions with CBSZ 0 have
// a set of indices for each ABID; with another CBSZ they ignore ABID.
//
// Source: the README of AMD's matrix instruction calculator.
constexpr bool has_matrix_modifiers(const Instruction& in) noexcept {
  switch (in.opcode) {
    case Opcode::v_mfma_f64_16x16x4f64:
    case Opcode::v_mfma_f64_4x4x4f64:
      return matrix_cbsz(in) == 0 && matrix_abid(in) == 0 && matrix_blgp(in) == 0;
    case Opcode::v_mfma_f64_16x16x4_f64:
    case Opcode::v_mfma_f64_4x4x4_4b_f64:
      return matrix_cbsz(in) == 0 && matrix_abid(in) == 0;
    default:
      break;
  }
  if (const unsigned sets = sparse_index_sets(in.opcode); sets != 0)
    return matrix_blgp(in) == 0 && (matrix_cbsz(in) != 0 || matrix_abid(in) < sets);
  if (is_plain_matrix(in.opcode) && matrix_blgp(in) != 0) return false;
  const unsigned group = 1u << matrix_cbsz(in);
  return group <= matrix_blocks(in.opcode) && matrix_abid(in) < group;
}

// BLGP selects the lane from which B is read. 1 and 2 broadcast a half of the wave, 3 rotates by 16
// lanes, 4..7 broadcast a quarter.
constexpr unsigned matrix_b_lane(unsigned lane, unsigned pattern) noexcept {
  switch (pattern) {
    case 0:
      return lane;
    case 1:
      return lane % 32;
    case 2:
      return lane % 32 + 32;
    case 3:
      return (lane + 16) % 64;
    default:
      return lane % 16 + 16 * (pattern - 4);
  }
}

// gfx942 with MODE.FP16_OVFL: overflowing results become the largest number of their sign (CDNA ISA
// manual, rules of the MFMA and SMFMAC instructions). Only the result is clamped, not the sums on
// the way to it; the manual does not state which.
//
// `sum` is an addend plus products, modulo 2^32. The products together are far below 2^31.
constexpr uint32_t clamped_sum(uint32_t addend, uint32_t sum) noexcept {
  const int64_t exact =
      int64_t{static_cast<int32_t>(addend)} + int64_t{static_cast<int32_t>(sum - addend)};
  return static_cast<uint32_t>(std::clamp<int64_t>(exact, INT32_MIN, INT32_MAX));
}
// Infinite inputs still give infinities: `finite(k)` states whether the factors of product k are
// finite.
template <class Finite>
float clamped_sum(float addend, float sum, unsigned products, Finite&& finite) noexcept {
  if (!std::isinf(sum) || !std::isfinite(addend)) return sum;
  for (unsigned k = 0; k < products; ++k) {
    if (!finite(k)) return sum;
  }
  return std::copysign(std::numeric_limits<float>::max(), sum);
}

// Rows of the result of kM rows and columns: H consecutive rows in consecutive registers, then M_I
// groups of them across lanes (the manual's names). H is 1 for float64, else 4.
template <unsigned kM, unsigned kBlocks, unsigned kH>
struct MatrixRows {
  static constexpr unsigned kBI = 64 > kM* kM / kH ? 64 / (kM * kM / kH) : 1;
  static constexpr unsigned kMI = 64 / kBI / kM;
  static constexpr unsigned kG = kM / (kH * kMI);
  static constexpr unsigned kRegisters = kM * kM * kBlocks / 64;

  // Where blocks and groups of rows both extend over lanes (float64, 4x4), blocks are innermost.
  static constexpr unsigned lane(unsigned block, unsigned i) noexcept {
    return kM * (block % kBI + kBI * (i / kH % kMI));
  }
  static constexpr unsigned reg(unsigned block, unsigned i) noexcept {
    return i % kH + kH * (i / (kH * kMI) + kG * (block / kBI));
  }
};

}  // namespace uptempo::vgpu::gfx9::vector
