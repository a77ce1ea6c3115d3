#include "gfx9/decode/decoder.hpp"

#include <optional>

#include "gfx9/decode/encoding.hpp"
#include "gfx9/decode/encoding_rules.hpp"

namespace uptempo::vgpu::gfx9 {
namespace {

constexpr unsigned kSdwa = 249, kDpp = 250;  // as src0 of VOP1, VOP2, VOPC: another dword follows

constexpr uint32_t bits(uint32_t word, unsigned low, unsigned count) {
  return word >> low & ((1u << count) - 1);
}
constexpr bool bit(uint32_t word, unsigned at) { return word >> at & 1; }

constexpr int32_t sign_extend(uint32_t value, unsigned width) {
  const uint32_t sign = 1u << (width - 1);
  return static_cast<int32_t>((value ^ sign) - sign);
}

enum class Literals : bool { no, yes };

// Decodes one instruction. Every step returns false when the bits are not an instruction.
class Decoder {
 public:
  Decoder(std::span<const uint32_t> words, Target target)
      : words_(words), target_(target), w0_(words[0]), w1_(words.size() > 1 ? words[1] : 0) {}

  Instruction run() {
    if (words_.empty() || !decode()) return {};
    return in_;
  }

 private:
  bool decode() {
    if (!bit(w0_, 31)) {
      const unsigned op = bits(w0_, 25, 6);
      if (op == 0x3f) return vop1();
      if (op == 0x3e) return vopc();
      return vop2(op);
    }
    if (!bit(w0_, 30)) {
      switch (bits(w0_, 23, 7)) {
        case 0x7d:
          return sop1();
        case 0x7e:
          return sopc();
        case 0x7f:
          return sopp();
        default:
          return bits(w0_, 28, 2) == 3 ? sopk() : sop2();
      }
    }
    if (bits(w0_, 26, 4) == 0b0101) return named(Family::vintrp, bits(w0_, 16, 2));
    if (words_.size() < 2) return false;
    in_.size_bytes = 8;
    switch (bits(w0_, 26, 4)) {
      case 0b0000:
        return smem();
      case 0b0001:
        return named(Family::exp, 0);
      case 0b0100:
        return bits(w0_, 23, 3) == 7 ? vop3p() : vop3();
      case 0b0110:
        return ds();
      case 0b0111:
        return flat();
      case 0b1000:
        return mubuf();
      case 0b1010:
        return mtbuf();
      case 0b1100:
        return named(Family::mimg, bits(w0_, 18, 7));
      default:
        return false;
    }
  }

  bool find(Family family, unsigned number, Format format) {
    encoding_ = find_encoding(family, number, target_);
    if (!encoding_) return false;
    in_.opcode = encoding_->opcode;
    in_.format = encoding_->only_named ? Format::other : format;
    return true;
  }

  bool named(Family family, unsigned number) { return find(family, number, Format::other); }

  // ---- operands ----

  // A 9-bit source (8-bit ones have bit 8 clear).
  bool source(unsigned position, unsigned code, Literals literals) {
    const Operand kind = encoding_->src[position];
    if (kind == Operand::none) return true;
    const unsigned count = dwords(kind);
    switch (kind) {
      case Operand::i8:
        in_.src[position] = static_cast<OperandCode>(code);
        return true;
      case Operand::s1:
      case Operand::s2:
      case Operand::mask:
        if (!is_scalar_register(code, count)) return false;
        in_.src[position] = static_cast<OperandCode>(align_scalar(code, count));
        return true;
      case Operand::v1:
      case Operand::v2:
      case Operand::v3:
      case Operand::v4:
      case Operand::a1:
      case Operand::a2:
      case Operand::av1:
      case Operand::av2:
      case Operand::av4:
        if (!is_vgpr(static_cast<OperandCode>(code)) || code - kFirstVgpr + count > 256)
          return false;
        break;
      case Operand::a4:
      case Operand::a8:
      case Operand::a16:
      case Operand::a32:  // MFMA's addend: also an inline constant
        if (is_vgpr(static_cast<OperandCode>(code)) ? code - kFirstVgpr + count > 256
                                                    : !is_inline_constant(code))
          return false;
        break;
      case Operand::lane:
        if (!is_scalar_register(code, 1) && !is_inline_constant(code) &&
            !is_special_source(code, 1))
          return false;
        break;
      default:
        if (is_vgpr(static_cast<OperandCode>(code))) {
          if (code - kFirstVgpr + count > 256) return false;
        } else if (code == kLiteral) {
          if (literals == Literals::no || !take_literal()) return false;
        } else if (code < 128) {
          if (!is_scalar_register(code, count)) return false;
          code = align_scalar(code, count);
        } else if (!is_inline_constant(code) && !is_special_source(code, count)) {
          return false;
        }
    }
    in_.src[position] = static_cast<OperandCode>(code);
    return true;
  }

  bool take_literal() {
    if (words_.size() < 2) return false;
    in_.literal = w1_;
    in_.size_bytes = 8;
    return true;
  }

  bool scalar_destination(unsigned code) {
    const Operand kind = encoding_->dst;
    if (kind == Operand::none) return true;
    const unsigned count = dwords(kind);
    if (!is_scalar_register(code, count)) return false;
    in_.dst = static_cast<uint16_t>(align_scalar(code, count));
    return true;
  }

  bool vector_destination(unsigned number) {
    const unsigned count = dwords(encoding_->dst);
    if (number + count > 256) return false;
    if (count) in_.dst = static_cast<uint16_t>(number);
    return true;
  }

  // ---- scalar ----

  bool sop2() {
    return find(Family::sop2, bits(w0_, 23, 7), Format::sop2) &&
           scalar_destination(bits(w0_, 16, 7)) && source(0, bits(w0_, 0, 8), Literals::yes) &&
           source(1, bits(w0_, 8, 8), Literals::yes);
  }

  bool sop1() {
    return find(Family::sop1, bits(w0_, 8, 8), Format::sop1) &&
           scalar_destination(bits(w0_, 16, 7)) && source(0, bits(w0_, 0, 8), Literals::yes);
  }

  bool sopc() {
    return find(Family::sopc, bits(w0_, 16, 7), Format::sopc) &&
           source(0, bits(w0_, 0, 8), Literals::yes) && source(1, bits(w0_, 8, 8), Literals::yes);
  }

  bool sopk() {
    if (!find(Family::sopk, bits(w0_, 23, 5), Format::sopk) ||
        !scalar_destination(bits(w0_, 16, 7)))
      return false;
    in_.src[0] = in_.dst;
    // s_setreg_imm32_b32: simm16 names the hardware register, the value follows.
    if (encoding_->src[1] == Operand::literal) {
      in_.dst = static_cast<uint16_t>(bits(w0_, 0, 16));
      in_.src[0] = kLiteral;
      return take_literal();
    }
    in_.literal = is_unsigned_sopk(in_.opcode)
                      ? bits(w0_, 0, 16)
                      : static_cast<uint32_t>(sign_extend(bits(w0_, 0, 16), 16));
    return true;
  }

  bool sopp() {
    if (!find(Family::sopp, bits(w0_, 16, 7), Format::sopp)) return false;
    const bool branch =
        in_.opcode == Opcode::s_branch ||
        (in_.opcode >= Opcode::s_cbranch_cdbgsys && in_.opcode <= Opcode::s_cbranch_vccz);
    const uint32_t simm16 = bits(w0_, 0, 16);
    if (encoding_->src[0] == Operand::none && simm16 != 0) return false;
    in_.literal = branch ? static_cast<uint32_t>(sign_extend(simm16, 16)) : simm16;
    return true;
  }

  bool smem() {
    if (!find(Family::smem, bits(w0_, 18, 8), Format::smem)) return false;
    const unsigned data = bits(w0_, 6, 7), base = bits(w0_, 0, 6) << 1;
    const Operand base_kind = encoding_->src[0], data_kind = encoding_->src[1];
    const bool immediate = bit(w0_, 17), register_too = bit(w0_, 14);
    if (base_kind == Operand::none && immediate) return false;
    in_.glc = bit(w0_, 16) && base_kind != Operand::none && has_glc(in_.opcode);
    if (data_kind == Operand::imm) {  // s_atc_probe: a number
      in_.data0 = static_cast<uint8_t>(data);
    } else if (data_kind != Operand::none) {
      const unsigned count = dwords(data_kind);
      if (!is_scalar_register(data, count)) return false;
      in_.data0 = static_cast<uint8_t>(align_scalar(data, count));
      if (encoding_->dst != Operand::none && in_.glc) in_.dst = in_.data0;
    } else if (!scalar_destination(data)) {
      return false;
    }
    if (base_kind == Operand::none) return true;
    if (!is_scalar_register(base, dwords(base_kind))) return false;
    in_.saddr = static_cast<uint8_t>(align_scalar(base, dwords(base_kind)));
    if (immediate) in_.offset = sign_extend(bits(w1_, 0, 21), 21);
    if (register_too || !immediate) {
      const unsigned code = register_too ? bits(w1_, 25, 7) : bits(w1_, 0, 7);
      if (!is_scalar_register(code, 1)) return false;
      in_.offset_is_sgpr = true;
      in_.soffset = static_cast<uint8_t>(code);
    }
    return true;
  }

  // ---- vector, 32-bit encodings ----

  bool vop1() {
    if (!find(Family::vop1, bits(w0_, 9, 8), Format::vop1)) return false;
    const unsigned src0 = bits(w0_, 0, 9), dst = bits(w0_, 17, 8);
    if (src0 == kSdwa && encoding_->forms.sdwa) return sdwa(dst, 0);
    if (src0 == kDpp && encoding_->forms.dpp) return dpp(dst, 0);
    if (encoding_->src[0] == Operand::none) return src0 == 0 && dst == 0;
    return destination(dst) && source(0, src0, Literals::yes) && accumulators();
  }

  bool vop2(unsigned op) {
    if (!find(Family::vop2, op, Format::vop2)) return false;
    const unsigned src0 = bits(w0_, 0, 9), src1 = kFirstVgpr + bits(w0_, 9, 8),
                   dst = bits(w0_, 17, 8);
    implied_masks();
    if (src0 == kSdwa && encoding_->forms.sdwa) return sdwa(dst, src1);
    if (src0 == kDpp && encoding_->forms.dpp) return dpp(dst, src1);
    if (encoding_->src[1] == Operand::literal || encoding_->src[2] == Operand::literal)
      return vop2_with_literal(dst, src0, src1);
    return destination(dst) && source(0, src0, Literals::yes) && source(1, src1, Literals::no);
  }

  // v_madmk: src0 * literal + vsrc1; v_madak: src0 * vsrc1 + literal. src0 may be the same literal.
  bool vop2_with_literal(unsigned dst, unsigned src0, unsigned src1) {
    if (!take_literal() || !destination(dst) || !source(0, src0, Literals::yes)) return false;
    const bool middle = encoding_->src[1] == Operand::literal;
    in_.src[1] = middle ? kLiteral : static_cast<OperandCode>(src1);
    in_.src[2] = middle ? static_cast<OperandCode>(src1) : kLiteral;
    return true;
  }

  bool vopc() {
    if (!find(Family::vopc, bits(w0_, 17, 8), Format::vopc)) return false;
    const unsigned src0 = bits(w0_, 0, 9), src1 = kFirstVgpr + bits(w0_, 9, 8);
    in_.dst = kVccLo;
    if (src0 == kSdwa && encoding_->forms.sdwa) return sdwa(kVccLo, src1);
    return source(0, src0, Literals::yes) && source(1, src1, Literals::no);
  }

  // Carry-in, carry-out and the selecting mask are VCC in the 32-bit encodings.
  void implied_masks() {
    if (encoding_->sdst == Operand::mask) in_.sdst = kVccLo;
    if (encoding_->src[2] == Operand::mask) in_.src[2] = kVccLo;
  }

  bool destination(unsigned number) {
    const bool scalar = encoding_->dst == Operand::s1 || encoding_->dst == Operand::mask;
    return scalar ? scalar_destination(number) : vector_destination(number);
  }

  // Accumulation registers that follow from the operand's kind.
  bool accumulators() {
    if (encoding_->dst == Operand::a1) in_.acc |= 8;
    if (encoding_->src[0] == Operand::a1) in_.acc |= 1;
    return true;
  }

  bool sdwa(unsigned dst, unsigned src1) {
    if (words_.size() < 2) return false;
    in_.size_bytes = 8;
    in_.modifier = OperandModifier::sdwa;
    const bool compare = in_.format == Format::vopc;
    in_.clamp = bit(w1_, 13) && !compare;
    if (compare) {
      if (bit(w1_, 15)) {
        const unsigned code = bits(w1_, 8, 7);
        if (!is_scalar_register(code, 2)) return false;
        dst = align_scalar(code, 2);
      }
      in_.dst = static_cast<uint16_t>(dst);
      in_.sdwa.dst_sel = 6;
    } else {
      if (!destination(dst)) return false;
      in_.sdwa.dst_sel = bits(w1_, 8, 3) & 7;
      in_.sdwa.dst_unused = bits(w1_, 11, 2) & 3;
      in_.omod = static_cast<uint8_t>(bits(w1_, 14, 2));
      if (in_.sdwa.dst_sel == 7 || in_.sdwa.dst_unused == 3) return false;
      if (in_.sdwa.dst_sel != 6 && is_from_8_bits(in_.opcode)) return false;
      if (in_.omod && !encoding_->forms.omod) return false;
    }
    const auto half = [&](unsigned position, unsigned number, unsigned at) {
      if (encoding_->src[position] == Operand::none)
        return bits(w1_, at, 6) == 0 && !bit(w1_, at + 7);
      if (bits(w1_, at, 3) == 7) return false;
      const bool sext = bit(w1_, at + 3), neg = bit(w1_, at + 4), abs = bit(w1_, at + 5),
                 scalar = bit(w1_, at + 7);
      if (is_float(encoding_->src[position]) ? sext : (neg || abs)) return false;
      in_.neg |= static_cast<uint8_t>(neg << position);
      in_.abs |= static_cast<uint8_t>(abs << position);
      const unsigned code = scalar ? number : kFirstVgpr + number;
      if (scalar && !is_scalar_register(code, 1) && !is_inline_constant(code) &&
          !is_special_source(code, 1))
        return false;
      in_.src[position] = static_cast<OperandCode>(code);
      return true;
    };
    if (!half(0, bits(w1_, 0, 8), 16)) return false;
    in_.sdwa.src0_sel = bits(w1_, 16, 3) & 7;
    in_.sdwa.src0_sext = bit(w1_, 19);
    if (encoding_->src[1] == Operand::none) return half(1, 0, 24);
    if (!half(1, src1 - kFirstVgpr, 24)) return false;
    in_.sdwa.src1_sel = bits(w1_, 24, 3) & 7;
    in_.sdwa.src1_sext = bit(w1_, 27);
    return true;
  }

  bool dpp(unsigned dst, unsigned src1) {
    if (words_.size() < 2 || !destination(dst)) return false;
    in_.size_bytes = 8;
    in_.modifier = OperandModifier::dpp;
    in_.dpp.control = bits(w1_, 8, 9) & 0x1ff;
    in_.dpp.bound_ctrl = bit(w1_, 19);
    in_.dpp.bank_mask = bits(w1_, 24, 4) & 15;
    in_.dpp.row_mask = bits(w1_, 28, 4) & 15;
    const bool wide = dwords(encoding_->dst) == 2 || dwords(encoding_->src[0]) == 2;
    if (wide && !since_90a()) return false;
    if (!is_dpp_control(in_.dpp.control, dwords(encoding_->src[0]) == 2)) return false;
    const auto half = [&](unsigned position, unsigned number, unsigned at) {
      const Operand kind = encoding_->src[position];
      const bool neg = bit(w1_, at), abs = bit(w1_, at + 1);
      if (is_float(kind)) {
        in_.neg |= static_cast<uint8_t>(neg << position);
        in_.abs |= static_cast<uint8_t>(abs << position);
      } else if ((neg || abs) && !ignores_dpp_modifiers(in_.opcode)) {
        return false;
      }
      if (kind == Operand::none) return true;
      if (number + dwords(kind) > kFirstVgpr + 256) return false;
      in_.src[position] = static_cast<OperandCode>(number);
      return true;
    };
    return half(0, kFirstVgpr + bits(w1_, 0, 8), 20) && half(1, src1, 22);
  }

  // 64-bit sources have row_newbcast only (since gfx90a).
  bool is_dpp_control(unsigned control, bool wide) const {
    const bool newbcast = control >= 0x150 && control <= 0x15f && since_90a();
    if (wide) return newbcast;
    if (control <= 0xff || newbcast) return true;
    switch (control) {
      case 0x130:
      case 0x134:
      case 0x138:
      case 0x13c:
      case 0x140:
      case 0x141:
      case 0x142:
      case 0x143:
        return true;
      default:
        return control > 0x100 && control <= 0x12f && control % 16 != 0;
    }
  }

  // ---- vector, 64-bit encodings ----

  // Returns the modifier bits in the order of Modifiers, or nullopt when a bit is set that must be
  // 0.
  std::optional<unsigned> modifiers() const {
    const unsigned raw = bits(w0_, 8, 8) | bits(w1_, 27, 5) << 8;
    const Modifiers& allowed = encoding_->modifiers;
    if (raw & ~(allowed.used | allowed.ignored)) return std::nullopt;
    return raw & allowed.used;
  }

  bool vop3() {
    if (!find(Family::vop3, bits(w0_, 16, 10), Format::vop3)) return false;
    if (in_.format == Format::other) return true;
    const auto modifier = modifiers();
    if (!modifier) return false;
    in_.abs = static_cast<uint8_t>(*modifier & 7);
    in_.op_sel = static_cast<uint8_t>(*modifier >> 3 & 15);
    in_.clamp = *modifier >> 7 & 1;
    in_.omod = static_cast<uint8_t>(*modifier >> 8 & 3);
    in_.neg = static_cast<uint8_t>(*modifier >> 10 & 7);
    if (encoding_->sdst == Operand::mask) {
      const unsigned code = bits(w0_, 8, 7);
      if (!is_scalar_register(code, 2)) return false;
      in_.sdst = static_cast<uint16_t>(align_scalar(code, 2));
    }
    const unsigned dst = bits(w0_, 0, 8);
    if (encoding_->dst == Operand::none && dst != 0) return false;
    return destination(dst) && vop3_sources();
  }

  bool vop3p() {
    if (!find(Family::vop3p, bits(w0_, 16, 10), Format::vop3p)) return false;
    const auto modifier = modifiers();
    if (!modifier) return false;
    const auto neg_hi = static_cast<uint8_t>(*modifier & 7);
    (takes_abs(in_.opcode) ? in_.abs : in_.neg_hi) = neg_hi;
    in_.op_sel = static_cast<uint8_t>(*modifier >> 3 & 7);
    in_.op_sel_hi = static_cast<uint8_t>((*modifier >> 8 & 3) | (*modifier >> 6 & 1) << 2);
    in_.clamp = *modifier >> 7 & 1;
    in_.neg = static_cast<uint8_t>(*modifier >> 10 & 7);
    if (!destination(bits(w0_, 0, 8)) || !vop3_sources()) return false;
    return matrix_accumulators();
  }

  bool vop3_sources() {
    const unsigned code[] = {bits(w1_, 0, 9), bits(w1_, 9, 9), bits(w1_, 18, 9)};
    for (unsigned i = 0; i < 3; ++i) {
      if (encoding_->src[i] == Operand::none && code[i] != 0) return false;
      if (!source(i, code[i], Literals::no)) return false;
    }
    return true;
  }

  // Matrix products: two bits select the file of src0 and src1. gfx90a and gfx942 have one more bit
  // for the destination and src2. src2 of the sparse products, their index, is always a VGPR.
  bool matrix_accumulators() {
    const Operand kind = encoding_->src[0];
    if (kind == Operand::av1 || kind == Operand::av2) {
      in_.acc = static_cast<uint8_t>(bits(w1_, 27, 2));
      if (!since_90a() || bit(w0_, 15)) in_.acc |= encoding_->src[2] == Operand::v1 ? 8 : 8 | 4;
      in_.clamp = false;
    } else {
      accumulators();
    }
    return true;
  }

  // ---- memory ----

  bool data_registers(unsigned position, unsigned number, uint8_t& field) {
    const unsigned count = dwords(encoding_->src[position]);
    if (!count) return true;
    field = static_cast<uint8_t>(number);
    return number + count <= 256;
  }

  bool ds() {
    if (!find(Family::ds, bits(w0_, 17, 8), Format::ds)) return false;
    const unsigned addr = bits(w1_, 0, 8), data0 = bits(w1_, 8, 8), data1 = bits(w1_, 16, 8),
                   dst = bits(w1_, 24, 8);
    const auto absent = [](Operand kind, unsigned number) {
      return kind == Operand::none && number != 0;
    };
    if (absent(encoding_->src[0], addr) || absent(encoding_->src[1], data0) ||
        absent(encoding_->src[2], data1) || absent(encoding_->dst, dst)) {
      return false;
    }
    in_.addr = static_cast<uint8_t>(addr);
    in_.gds = bit(w0_, 16);
    in_.offset = static_cast<int32_t>(bits(w0_, 0, 16));
    if (encoding_->offset == Offset::none && (in_.offset || in_.gds)) return false;
    if (is_global_only(in_.opcode) ? !in_.gds : in_.gds && is_local_only(in_.opcode)) return false;
    // Data in accumulation registers: rejected without a data operand, ignored before gfx90a.
    if (bit(w0_, 25)) {
      const bool data_in_address = is_global_only(in_.opcode) && encoding_->src[0] != Operand::none;
      if (encoding_->src[1] == Operand::none && encoding_->dst == Operand::none && !data_in_address)
        return false;
      if (since_90a()) in_.acc = 8;
    }
    return data_registers(1, data0, in_.data0) && data_registers(2, data1, in_.data1) &&
           vector_destination(dst);
  }

  bool flat() {
    static constexpr Family kFamily[] = {Family::flat, Family::scratch, Family::global};
    const unsigned segment = bits(w0_, 14, 2);
    if (segment == 3 || !find(kFamily[segment], bits(w0_, 18, 7), Format::flat)) return false;
    in_.segment = static_cast<FlatSegment>(segment);
    in_.addr = static_cast<uint8_t>(bits(w1_, 0, 8));
    in_.saddr = static_cast<uint8_t>(bits(w1_, 16, 7));
    in_.glc = bit(w0_, 16);
    in_.slc = bit(w0_, 17);
    in_.scc_bit = since_90a() && bit(w0_, 25);
    if (bit(w0_, 25) && is_float_atomic(in_.opcode) && target_ != Target::gfx942) return false;
    if (since_90a() && bit(w1_, 23)) in_.acc = 8;
    // Bit 13. gfx942: SCRATCH has an address register. Before: the load goes to LDS.
    if (target_ == Target::gfx942) {
      in_.lds = loads_to_lds(in_.opcode);
      in_.no_address = segment == 1 && !bit(w0_, 13);
      if (segment != 1 && bit(w0_, 13)) return false;
    } else {
      in_.lds = bit(w0_, 13);
      in_.no_address = segment == 1 && in_.saddr != 0x7f;
      if (in_.lds && !can_load_to_lds(in_.opcode)) return false;
    }
    const uint32_t offset = bits(w0_, 0, 13);
    if (segment == 0) {
      if (in_.saddr != 0) return false;
      in_.saddr = 0x7f;
      in_.offset = static_cast<int32_t>(offset);
    } else {
      if (in_.saddr != 0x7f) {
        const unsigned count = segment == 2 ? 2 : 1;
        if (!is_scalar_register(in_.saddr, count)) return false;
        in_.saddr = static_cast<uint8_t>(align_scalar(in_.saddr, count));
      }
      in_.offset = sign_extend(offset, 13);
    }
    const bool wide_address = segment == 0 || (segment == 2 && in_.saddr == 0x7f);
    if (wide_address && in_.addr == 255) return false;
    return data_registers(1, bits(w1_, 8, 8), in_.data0) && flat_destination();
  }

  // gfx908's float atomics do not return the old value.
  bool returns_nothing() const { return target_ == Target::gfx908 && is_float_atomic(in_.opcode); }

  bool flat_destination() {
    const bool atomic = encoding_->dst != Operand::none && encoding_->src[1] != Operand::none;
    if (atomic && returns_nothing()) return !in_.glc;
    if (atomic && !in_.glc) return true;
    if (in_.lds) return !bit(w1_, 23);
    return vector_destination(bits(w1_, 24, 8));
  }

  bool buffer_fields() {
    in_.addr = static_cast<uint8_t>(bits(w1_, 0, 8));
    in_.offset = static_cast<int32_t>(bits(w0_, 0, 12));
    in_.offen = bit(w0_, 12);
    in_.idxen = bit(w0_, 13);
    in_.glc = bit(w0_, 14);
    const unsigned resource = bits(w1_, 16, 5) << 2;
    if (!is_scalar_register(resource, 4)) return false;
    in_.srsrc = static_cast<uint8_t>(resource);
    const unsigned soffset = bits(w1_, 24, 8);
    if (!is_scalar_register(soffset, 1) && !is_inline_constant(soffset) &&
        !is_special_source(soffset, 1))
      return false;
    in_.soffset = static_cast<uint8_t>(soffset);
    if (since_90a() && bit(w1_, 23)) in_.acc = 8;
    if (in_.offen && in_.idxen && in_.addr == 255) return false;
    if (in_.scc_bit && is_float_atomic(in_.opcode) && target_ != Target::gfx942) return false;
    const unsigned data = bits(w1_, 8, 8);
    const bool atomic = encoding_->dst != Operand::none && encoding_->src[1] != Operand::none;
    if (atomic || in_.lds) in_.tfe = false;
    if (atomic && in_.glc && returns_nothing()) return false;
    if (!data_registers(1, data, in_.data0)) return false;
    return (atomic && !in_.glc) || in_.lds || vector_destination(data);
  }

  bool mubuf() {
    if (!find(Family::mubuf, bits(w0_, 18, 7), Format::mubuf)) return false;
    in_.slc = bit(w0_, 17);
    in_.lds = bit(w0_, 16);
    in_.scc_bit = since_90a() && bit(w0_, 15);
    in_.tfe = !since_90a() && bit(w1_, 23);
    if (encoding_->src[0] == Operand::none) return cache_control();
    if (in_.opcode == Opcode::buffer_store_lds_dword ? !in_.lds
                                                     : in_.lds && !can_load_to_lds(in_.opcode))
      return false;
    if (in_.opcode == Opcode::buffer_store_lds_dword && (bit(w0_, 12) || bit(w0_, 13)))
      return false;
    return buffer_fields();
  }

  // Write-backs and invalidations have no operands. Only BUFFER_WBL2 and BUFFER_INV have GLC and
  // SCC, which gfx942 calls sc0 and sc1.
  bool cache_control() {
    in_.glc = bit(w0_, 14);
    in_.lds = in_.slc = in_.tfe = false;
    if (bit(w0_, 12) || bit(w0_, 13) || bit(w0_, 16)) return false;
    const bool scoped = in_.opcode == Opcode::buffer_wbl2 || in_.opcode == Opcode::buffer_inv;
    if ((scoped || in_.opcode == Opcode::buffer_invl2) && bit(w1_, 23)) return false;
    return scoped || (!bit(w0_, 14) && !bit(w0_, 15));
  }

  bool mtbuf() {
    if (!find(Family::mtbuf, bits(w0_, 15, 4), Format::mtbuf)) return false;
    in_.slc = bit(w1_, 22);
    in_.scc_bit = since_90a() && bit(w1_, 21);
    in_.tfe = !since_90a() && bit(w1_, 23);
    in_.literal = bits(w0_, 19, 7);  // dfmt | nfmt << 4
    return buffer_fields();
  }

  // Wide DPP, one register file for vector and accumulation registers, SCC in place of TFE.
  bool since_90a() const { return has_merged_registers(target_); }

  std::span<const uint32_t> words_;
  Target target_;
  uint32_t w0_, w1_;
  const Encoding* encoding_ = nullptr;
  Instruction in_;
};

}  // namespace

Instruction decode(std::span<const uint32_t> words, Target target) noexcept {
  if (words.empty()) return {};
  Instruction in = Decoder(words, target).run();
  in.flushes = flushes_denormals(in.opcode, target);
  return in;
}

}  // namespace uptempo::vgpu::gfx9
