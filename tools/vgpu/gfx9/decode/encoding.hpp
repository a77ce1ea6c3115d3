// The encoding table and its lookup. The table holds every instruction of the gfx9 family as data,
// one line each (encodings_*.inc).
//
// Source: the answers of LLVM's disassembler (LLVM 15; gfx942: LLVM 19) for every opcode number of
// every format, for each target. The tests test/vgpu/gfx9/decoder_* compare the decoder that reads
// this table with the disassembler.
#pragma once

#include <cstdint>
#include <span>

#include "gfx9/decode/decoder.hpp"

namespace uptempo::vgpu::gfx9 {

// Number space of an opcode: a format, or a segment of the flat family.
enum class Family : uint8_t {
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
  scratch,
  global,
  mubuf,
  mtbuf,
  mimg,
  exp,
  vintrp,
};

// The values that an operand field may take.
enum class Operand : uint8_t {
  none,  // no such operand: the field must be 0 in VOP3, is ignored elsewhere
  s1,
  s2,
  s4,
  s8,
  s16,  // that many scalar registers
  v1,
  v2,
  v3,
  v4,  // that many vector registers (accumulation registers when the instruction's acc bit is set)
  a1,
  a2,
  a4,
  a8,
  a16,
  a32,  // that many accumulation registers (matrix products since gfx90a: either file)
  av1,
  av2,
  av4,   // either file
  mask,  // a 64-bit lane mask in scalar registers
  lane,  // a scalar register or inline integer; no literal
  i16,
  i32,
  i64,
  f16,
  f32,
  f64,  // a register of either file or a constant of this type
  pk_i16,
  pk_f16,
  pk_i32,
  pk_f32,
  mix,  // the same, packed; mix: f32 or a half of a register, selected by op_sel_hi
  imm,
  i8,
  literal,  // simm16; 8 bits of a source field as a number; the 32 bits that follow
};

// Kind of offset field of DS, FLAT, SMEM and buffer instructions.
enum class Offset : uint8_t { none, one16, two8, signed21, unsigned12, signed13 };

// Modifier bits of a 64-bit vector encoding that an instruction has. Bits 0..2 abs (VOP3P: neg_hi),
// 3..6 op_sel (VOP3P: bit 6 is op_sel_hi[2]), 7 clamp, 8..9 omod (VOP3P: op_sel_hi[0..1]), 10..12
// neg. A bit that is neither used nor ignored must be 0.
struct Modifiers {
  uint16_t used = 0, ignored = 0;
};

// SDWA and DPP forms that an instruction has.
struct Forms {
  bool sdwa : 1 = false, omod : 1 = false, dpp : 1 = false;
};

struct Encoding {
  Family family{};
  uint16_t number = 0;
  Opcode opcode = Opcode::invalid;
  uint8_t targets = 0;  // bit t: Target t has it
  // Memory: src[0] is the base or address, src[1] and src[2] are data0 and data1.
  Operand dst = Operand::none, sdst = Operand::none,
          src[3] = {Operand::none, Operand::none, Operand::none};
  Modifiers modifiers{};
  Forms forms{};
  Offset offset = Offset::none;
  bool only_named = false;  // fields are not decoded
};

// The whole table, in unspecified order.
std::span<const Encoding> encodings() noexcept;

// Returns the entry of opcode `number` in `family`, or nullptr when `target` has none.
const Encoding* find_encoding(Family family, unsigned number, Target target) noexcept;

// Number of 32-bit registers that the operand occupies.
unsigned dwords(Operand operand) noexcept;

}  // namespace uptempo::vgpu::gfx9
