// VGPR indexing: while MODE.gpr_idx_en is set, M0[7:0] is added to the VGPR numbers of the operands
// that M0[15:12] selects (Vega ISA, "VGPR Indexing"). Compilers put one or two moves between
// s_set_gpr_idx_on and s_set_gpr_idx_off.
//
// Vector handlers do not implement it. s_set_gpr_idx_on executes copies, with other register
// numbers, of the instructions up to s_set_gpr_idx_off. The copies are on a page that represents
// the original one, so that they have the original addresses.
#include "gfx9/code_cache.hpp"
#include "gfx9/scalar/scalar.hpp"
#include "gfx9/stop.hpp"

namespace uptempo::vgpu::gfx9::scalar {
namespace {

constexpr uint32_t kGprIdxEn = 1u << 27;  // of MODE

bool is_vector(Format format) noexcept {
  return format == Format::vop1 || format == Format::vop2 || format == Format::vopc ||
         format == Format::vop3 || format == Format::vop3p;
}

bool has_vector_destination(Opcode opcode) noexcept {
  return !mnemonic(opcode).starts_with("v_cmp") && opcode != Opcode::v_readlane_b32 &&
         opcode != Opcode::v_readfirstlane_b32;
}

void displace(Instruction& in, uint32_t m0) noexcept {
  const uint32_t index = m0 & 0xff, select = m0 >> 12 & 0xf;
  for (unsigned i = 0; i < 3; ++i) {
    if ((select >> i & 1) != 0 && is_vgpr(in.src[i]))
      in.src[i] = static_cast<OperandCode>(in.src[i] + index);
  }
  if ((select & 8) != 0 && has_vector_destination(in.opcode))
    in.dst = static_cast<uint16_t>(in.dst + index);
}

const Op* execute_displaced(const Op& op, Wave& wave) {
  CodePage& page = CodePage::of(op);
  CodePage& copies = wave.executor->copies(page);
  Op& copy = copies.ops[op.index];
  copy.handler = op.handler;
  copy.in = op.in;
  displace(copy.in, wave.scalar[kM0]);
  const Op* following = copy.handler(copy, wave);
  return following == nullptr ? nullptr : page.ops + (following - copies.ops);
}

const Op* run_indexed(const Op* op, Wave& wave) {
  constexpr unsigned kLimit = 4096;
  for (unsigned executed = 0; executed < kLimit; ++executed) {
    if ((wave.mode & kGprIdxEn) == 0) return op;
    op = decoded(*op, wave);
    if (op == nullptr) return nullptr;
    const Op* following =
        is_vector(op->in.format) ? execute_displaced(*op, wave) : op->handler(*op, wave);
    if (following == nullptr) return nullptr;
    op = following;
  }
  return stop_error(*op, wave, QueueError::illegal_instruction,
                    "is still in a VGPR indexing section after 4096 instructions");
}

void set_index(Wave& wave, uint32_t index) noexcept {
  wave.scalar[kM0] = (wave.scalar[kM0] & ~0xffu) | (index & 0xff);
}
void set_operands(Wave& wave, uint32_t operands) noexcept {
  wave.scalar[kM0] = (wave.scalar[kM0] & ~0xf000u) | (operands & 0xf) << 12;
}

const Op* index_on(const Op& op, Wave& wave) {
  set_index(wave, op.in.src[0] == kLiteral ? op.in.literal : wave.scalar[op.in.src[0]]);
  set_operands(wave, op.in.src[1]);
  if ((wave.mode & kGprIdxEn) != 0) return next(op);
  wave.mode |= kGprIdxEn;
  return run_indexed(next(op), wave);
}
const Op* index_off(const Op& op, Wave& wave) {
  wave.mode &= ~kGprIdxEn;
  return next<1>(op);
}
const Op* index_mode(const Op& op, Wave& wave) {
  set_operands(wave, op.in.literal);
  return next<1>(op);
}
const Op* index_index(const Op& op, Wave& wave) {
  set_index(wave, op.in.src[0] == kLiteral ? op.in.literal : wave.scalar[op.in.src[0]]);
  return next(op);
}

}  // namespace

Handler translate_indexing(Instruction& in) noexcept {
  switch (in.opcode) {
    case Opcode::s_set_gpr_idx_on:
      return &index_on;
    case Opcode::s_set_gpr_idx_off:
      return &index_off;
    case Opcode::s_set_gpr_idx_mode:
      return &index_mode;
    case Opcode::s_set_gpr_idx_idx:
      return &index_index;
    default:
      return nullptr;
  }
}

}  // namespace uptempo::vgpu::gfx9::scalar
