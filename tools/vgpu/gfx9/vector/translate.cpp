// Selects the handler of an instruction.
#include "gfx9/op.hpp"
#include "gfx9/vector/entry.hpp"
#include "gfx9/vector/matrix.hpp"
#include "gfx9/vector/staging.hpp"

namespace uptempo::vgpu::gfx9 {
namespace {

using namespace vector;

// Instructions that add to their destination read it as a third source.
bool accumulates(Opcode opcode) noexcept {
  switch (opcode) {
    case Opcode::v_mac_f32:
    case Opcode::v_mac_f16:
    case Opcode::v_fmac_f32:
    case Opcode::v_fmac_f64:
    case Opcode::v_pk_fmac_f16:
    case Opcode::v_dot2c_f32_f16:
    case Opcode::v_dot2c_i32_i16:
    case Opcode::v_dot4c_i32_i8:
    case Opcode::v_dot8c_i32_i4:
    case Opcode::v_cvt_pkaccum_u8_f32:
      return true;
    default:
      return false;
  }
}

// Accumulation registers are registers 256..511 of the file.
void resolve_accumulators(Instruction& in) noexcept {
  for (unsigned i = 0; i < 3; ++i) {
    if ((in.acc >> i & 1) && is_vgpr(in.src[i]) && in.src[i] < kFirstVgpr + 256)
      in.src[i] = static_cast<OperandCode>(in.src[i] + 256);
  }
  if ((in.acc & 8) && in.dst < 256) in.dst = static_cast<uint16_t>(in.dst + 256);
  in.acc = 0;
}

enum class SourceKind { vector, scalar, special, none };

// Selects and scales that no document defines for gfx942's 8-bit floats.
bool has_undefined_modifiers(const Instruction& in) noexcept {
  switch (in.opcode) {
    case Opcode::v_cvt_pk_fp8_f32:
    case Opcode::v_cvt_pk_bf8_f32:
    case Opcode::v_cvt_sr_fp8_f32:
    case Opcode::v_cvt_sr_bf8_f32:
      return (in.op_sel & 3) != 0;  // selects of float32 sources
    case Opcode::v_cvt_pk_f32_fp8:
    case Opcode::v_cvt_pk_f32_bf8:
      return in.omod != 0;
    default:
      return false;
  }
}

SourceKind kind_of(OperandCode code) noexcept {
  if (is_vgpr(code)) return SourceKind::vector;
  if (code < kFirstConstant || is_inline_constant(code) || code == kLiteral)
    return SourceKind::scalar;
  if (is_aperture(code) || is_status(code)) return SourceKind::special;
  return SourceKind::none;
}

// Whether an inline floating-point constant in source i is a float16, with zero in the high half of
// a packed operand. Packed integers read it as a float32 (LLVM since version 18, which says that
// this is what the hardware and AMD's assembler do: llvm-project pull request 76522).
bool reads_half(const Instruction& in, const Entry& entry, unsigned i) noexcept {
  switch (entry.packing) {
    case Packing::mix:
    case Packing::mix_low:
    case Packing::mix_high:
      return (in.op_sel_hi >> i & 1) != 0;
    case Packing::halves:
      return is_float(entry.source[i]);
    default:
      break;
  }
  // Pairs of float16 in a 32-bit source.
  if (in.opcode == Opcode::v_dot2_f32_f16 || in.opcode == Opcode::v_dot2c_f32_f16) return i < 2;
  return is_short(entry.source[i]);
}

}  // namespace

Handler translate_vector(Instruction& in) noexcept {
  const Entry& entry = table()[static_cast<size_t>(in.opcode)];
  if (entry.core == nullptr && entry.own == nullptr) return nullptr;
  resolve_accumulators(in);
  if (accumulates(in.opcode)) in.src[2] = static_cast<OperandCode>(kFirstVgpr + in.dst);

  unsigned scalars = 0;
  bool special = false;
  for (unsigned i = 0; i < entry.sources; ++i) {
    const SourceKind kind = kind_of(in.src[i]);
    if (kind == SourceKind::none) return nullptr;
    special |= kind == SourceKind::special;
    if (kind != SourceKind::vector) scalars |= 1u << i;
    if (is_float_constant(in.src[i]) && reads_half(in, entry, i))
      in.src[i] = half_constant(in.src[i]);
  }
  if (matrix_blocks(in.opcode) != 0 && !has_matrix_modifiers(in)) return nullptr;
  if (has_undefined_modifiers(in)) return nullptr;
  if (entry.own != nullptr) return in.modifier == OperandModifier::none ? entry.own : nullptr;

  if (in.modifier == OperandModifier::dpp) {
    if (dpp_pattern(in.dpp.control) == nullptr || !is_vgpr(in.src[0])) return nullptr;
  }
  // Comparisons have no result to clamp.
  const bool clamps = in.clamp && entry.result != Type::bit;
  if (clamps && !is_float(entry.result) && entry.saturating == nullptr && !(entry.flags & kExact))
    return nullptr;

  // No document defines VOP3P's selects and signs for integers that are not halves.
  //
  if (in.format == Format::vop3p && entry.packing == Packing::none &&
      (in.op_sel != 0 || (entry.sources > 1 && (in.op_sel_hi & 3) != 3) || in.neg != 0 ||
       in.neg_hi != 0))
    return nullptr;
  if (entry.packing == Packing::pairs && !is_float(entry.result) && (in.neg != 0 || in.neg_hi != 0))
    return nullptr;
  const bool selects = in.format != Format::vop3p && in.op_sel != 0;
  const bool odd_mask = entry.mask_source == 2 && in.src[2] >= kFirstConstant;
  if (in.modifier != OperandModifier::none || special || selects || odd_mask || clamps ||
      in.omod != 0)
    return general_handler();
  if (entry.packing != Packing::none)
    return entry.modified != nullptr ? entry.modified : general_handler();
  if (in.abs != 0 || in.neg != 0)
    return entry.modified != nullptr ? entry.modified : general_handler();
  return entry.fast != nullptr ? entry.fast[scalars] : general_handler();
}

}  // namespace uptempo::vgpu::gfx9
