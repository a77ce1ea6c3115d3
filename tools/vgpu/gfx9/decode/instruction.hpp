// One decoded gfx9 instruction: the named fields of its encoding, neither executed nor resolved.
#pragma once

#include <cstdint>

#include "gfx9/decode/opcode.hpp"
#include "gfx9/decode/operands.hpp"

namespace uptempo::vgpu::gfx9 {

// Encoding of the instruction. V_ADD_F32 may come as vop2 or, with the same Opcode, as vop3.
enum class Format : uint8_t {
  sop1,
  sop2,
  sopk,
  sopc,
  sopp,
  smem,
  vop1,
  vop2,
  vopc,
  vop3,
  vop3p,
  ds,
  flat,
  mubuf,
  mtbuf,
  other
};

// Segment of a flat-family instruction (FLAT, GLOBAL, SCRATCH share one encoding).
enum class FlatSegment : uint8_t { flat, scratch, global };

enum class OperandModifier : uint8_t { none, sdwa, dpp };

struct Sdwa {
  uint16_t dst_sel : 3, dst_unused : 2, src0_sel : 3,
      src1_sel : 3;  // as encoded: 0..3 byte, 4..5 word, 6 dword; unused: 0 pad, 1 sext, 2 keep
  uint16_t src0_sext : 1, src1_sext : 1;
};
struct Dpp {
  uint32_t control : 9;  // quad_perm, row_shl, ...
  uint32_t bank_mask : 4, row_mask : 4, bound_ctrl : 1;
};

struct Instruction {
  Opcode opcode = Opcode::invalid;
  Format format = Format::other;
  uint8_t size_bytes = 4;  // 4 or 8 (with literal, VOP3, memory)
  OperandModifier modifier = OperandModifier::none;
  FlatSegment segment = FlatSegment::flat;

  // ALU operands. Missing operands are 0. VOP1, VOP2 and VOPC have src[0] as encoded and src[1] as
  // code 256 + VGPR. In SDWA and DPP forms src[0] is the real register; in SDWA so is src[1] when
  // its S bit selects a scalar. src[2] of v_cndmask in VOP2 form is VCC (106), so that both forms
  // look the same. The same holds for carry-in.
  OperandCode src[3] = {};
  // VGPR index, or scalar code for SALU, VOPC (VCC = 106 when implied), v_readlane,
  // v_readfirstlane.
  uint16_t dst = 0;
  // second, scalar destination: carry-out (VCC = 106 in VOP2 forms), v_div_scale, v_mad_u64_u32;
  // SOPC none.
  uint16_t sdst = 0;
  uint8_t abs = 0;     // bit i: |src[i]|; in VOP3P only for the mix instructions
  uint8_t neg = 0;     // bit i: -src[i] (VOP3P: neg of the low half)
  uint8_t neg_hi = 0;  // VOP3P
  uint8_t op_sel = 0;  // bits 0..2 sources, bit 3 destination
  uint8_t op_sel_hi = 0;
  uint8_t omod = 0;  // 0 none, 1 *2, 2 *4, 3 /2
  bool clamp = false;
  // Since gfx908: bit 0..2 src[i] is an accumulation register; bit 3: dst; memory: bit 3: data.
  uint8_t acc = 0;
  // Used when a source is kLiteral. SOPP, SOPK: simm16, sign-extended where the instruction is
  // signed. SOPK has its register in both dst and src[0]. s_setreg_imm32_b32 has simm16 in dst and
  // src[0] = kLiteral. MTBUF: dfmt | nfmt << 4.
  uint32_t literal = 0;
  Sdwa sdwa = {};
  Dpp dpp = {};

  // Memory operands. `dst` is the destination, `data0` and `data1` are the sources.
  uint8_t addr = 0;  // VGPR of the address (DS, FLAT vaddr, MUBUF vaddr)
  uint8_t data0 = 0;
  uint8_t data1 = 0;  // DS
  // FLAT, GLOBAL, SCRATCH: scalar address; 0x7f: off. SMEM: sbase as SGPR index; data0 (and dst of
  // returning atomics) as SGPR index.
  uint8_t saddr = 0x7f;
  uint8_t srsrc = 0;  // MUBUF: first SGPR of the descriptor
  // MUBUF: scalar operand code; SMEM: SGPR, when offset_is_sgpr: added to `offset`
  uint8_t soffset = 0;
  // glc, slc and scc_bit hold gfx942's sc0, nt and sc1, except in SMEM, which keeps glc.
  // bytes, sign-extended where signed; DS two-address forms: offset0 | offset1 << 8.
  int32_t offset = 0;
  bool offset_is_sgpr : 1 = false;
  bool offen : 1 = false, idxen : 1 = false, glc : 1 = false, slc : 1 = false, lds : 1 = false,
               gds : 1 = false, scc_bit : 1 = false, tfe : 1 = false;
  bool no_address : 1 = false;  // SCRATCH: `addr` is not used
  // The target flushes denormals in this instruction whatever MODE says: flushes_denormals().
  bool flushes : 1 = false;
};

}  // namespace uptempo::vgpu::gfx9
