#include "test/vgpu/gfx9/assembly.hpp"

#include <fmt/format.h>
#include <llvm/Config/llvm-config.h>

#include <map>
#include <utility>

#include "gfx9/decode/encoding.hpp"
#include "gfx9/decode/encoding_rules.hpp"

namespace uptempo::vgpu::gfx9::test {
namespace {

Family family_of(const Instruction& in) {
  switch (in.format) {
    case Format::sop1:
      return Family::sop1;
    case Format::sop2:
      return Family::sop2;
    case Format::sopk:
      return Family::sopk;
    case Format::sopc:
      return Family::sopc;
    case Format::sopp:
      return Family::sopp;
    case Format::smem:
      return Family::smem;
    case Format::vop1:
      return Family::vop1;
    case Format::vop2:
      return Family::vop2;
    case Format::vopc:
      return Family::vopc;
    case Format::vop3:
      return Family::vop3;
    case Format::vop3p:
      return Family::vop3p;
    case Format::ds:
      return Family::ds;
    case Format::flat:
      return in.segment == FlatSegment::flat      ? Family::flat
             : in.segment == FlatSegment::scratch ? Family::scratch
                                                  : Family::global;
    case Format::mubuf:
      return Family::mubuf;
    case Format::mtbuf:
      return Family::mtbuf;
    case Format::other:
      break;
  }
  return Family::mimg;
}

const Encoding& encoding_of(const Instruction& in, Target target) {
  using Key = std::pair<Opcode, Family>;
  static const auto index = [] {
    std::array<std::map<Key, const Encoding*>, kTargetCount> all;
    for (const Encoding& e : encodings()) {
      for (unsigned t = 0; t < kTargetCount; ++t) {
        if (e.targets >> t & 1) all[t][{e.opcode, e.family}] = &e;
      }
    }
    return all;
  }();
  return *index[static_cast<unsigned>(target)].at({in.opcode, family_of(in)});
}

// ---- registers ----

std::string group(const char* file, unsigned first, unsigned count) {
  if (count == 1) return fmt::format("{}{}", file, first);
  return fmt::format("{}[{}:{}]", file, first, first + count - 1);
}

std::string scalar(unsigned code, unsigned count) {
  struct Name {
    unsigned code;
    const char* name;
  };
  static constexpr Name kPairs[] = {
      {102, "flat_scratch"}, {104, "xnack_mask"}, {106, "vcc"}, {126, "exec"}};
  if (code <= 101) return group("s", code, count);
  if (code >= 108 && code <= 123) return group("ttmp", code - 108, count);
  for (const Name& pair : kPairs) {
    if ((code & ~1u) == pair.code) {
      if (count == 2) return pair.name;
      return std::string(pair.name) + (code & 1 ? "_hi" : "_lo");
    }
  }
  static constexpr Name kSingles[] = {{124, "m0"},
                                      {235, "src_shared_base"},
                                      {236, "src_shared_limit"},
                                      {237, "src_private_base"},
                                      {238, "src_private_limit"},
                                      {239, "src_pops_exiting_wave_id"},
                                      {251, "src_vccz"},
                                      {252, "src_execz"},
                                      {253, "src_scc"},
                                      {254, "src_lds_direct"}};
  for (const Name& single : kSingles) {
    if (single.code == code) return single.name;
  }
  return fmt::format("scalar{}", code);
}

std::string vector(unsigned number, unsigned count, bool accumulation) {
  return group(accumulation ? "a" : "v", number, count);
}

// ---- constants ----

bool is_wide(Operand kind) { return kind == Operand::i64 || kind == Operand::f64; }
bool is_half(Operand kind) {
  return kind == Operand::i16 || kind == Operand::f16 || kind == Operand::pk_f16 ||
         kind == Operand::pk_i16;
}

std::string inline_constant(unsigned code, Operand kind) {
  if (code >= 128 && code <= 192) return std::to_string(code - 128);
  if (code >= 193 && code <= 208) return std::to_string(192 - static_cast<int>(code));
#if LLVM_VERSION_MAJOR >= 18
  const bool printed_as_bits = kind == Operand::i16;
#else
  const bool printed_as_bits = kind == Operand::i16 || kind == Operand::pk_i16;
#endif
  if (printed_as_bits) {
    // LLVM prints the bits of the constant as a float16, also for packed integers up to 17.
    static constexpr uint32_t kHalf[] = {0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000,
                                         0xc000, 0x4400, 0xc400, 0x3118};
    return fmt::format("{:#x}", kHalf[code - 240]);
  }
  static constexpr const char* kFloats[] = {"0.5", "-0.5", "1.0", "-1.0",
                                            "2.0", "-2.0", "4.0", "-4.0"};
  if (code <= 247) return kFloats[code - 240];
  return is_wide(kind) ? "0.15915494309189532" : is_half(kind) ? "0.15915494" : "0.15915494";
}

// LLVM prints a literal whose value has an inline constant as that constant.
std::string literal(uint32_t value, Operand kind) {
  const auto number = static_cast<int32_t>(value);
  // A 64-bit integer reads the literal zero-extended; it is the upper half of a float64.
  if (is_wide(kind)) {
    if (value == 0 || (kind == Operand::i64 && value <= 64)) return std::to_string(value);
    for (unsigned code = 240; kind == Operand::f64 && code < 248; ++code)
      if (value == float_constant64(code) >> 32) return inline_constant(code, kind);
    return fmt::format("{:#x}", value);
  }
  if (is_half(kind)) {
    const auto half = static_cast<uint16_t>(value);
    const auto number16 = static_cast<int16_t>(half);
    if (number16 >= -16 && number16 <= 64) return std::to_string(number16);
    for (unsigned code = 240; kind == Operand::f16 && code <= 248; ++code)
      if (half == float_constant16(code)) return inline_constant(code, kind);
    return fmt::format("{:#x}", half);
  }
  if (number >= -16 && number <= 64) return std::to_string(number);
  for (unsigned code = 240; code <= 248; ++code)
    if (value == float_constant32(code)) return inline_constant(code, kind);
  return fmt::format("{:#x}", value);
}

// LLVM prints plain numbers in decimal if an inline constant could hold them.
std::string number(uint32_t value) {
  const auto n = static_cast<int32_t>(value);
  return n >= -16 && n <= 64 ? std::to_string(n) : fmt::format("{:#x}", value);
}

bool is_mfma(const Encoding& e) { return e.src[0] == Operand::av1 || e.src[0] == Operand::av2; }

std::string source(const Instruction& in, const Encoding& e, unsigned i) {
  const Operand kind = e.src[i];
  const unsigned code = in.src[i], count = dwords(kind);
  if (kind == Operand::i8) return fmt::format("{:#x}", code);
  if (kind == Operand::literal) return fmt::format("{:#x}", in.literal);
  if (is_vgpr(static_cast<OperandCode>(code)))
    return vector(code - kFirstVgpr, count, in.acc >> i & 1);
  if (code == kLiteral) return literal(in.literal, kind);
  if ((code >= 128 && code <= 208) || (code >= 240 && code <= 248))
    return inline_constant(
        code, is_mfma(e) && mnemonic(in.opcode).ends_with("f64") ? Operand::f64 : kind);
  return scalar(code, count);
}

// Collects "mnemonic a, b" and then the modifiers.
class Line {
 public:
  explicit Line(std::string_view mnemonic) : text_(mnemonic) {}
  void operand(std::string_view text) {
    text_ += first_ ? " " : ", ";
    text_ += text;
    first_ = false;
  }
  void modifier(std::string_view text) {
    text_ += ' ';
    text_ += text;
  }
  void flag(bool set, std::string_view text) {
    if (set) modifier(text);
  }
  std::string text() && { return std::move(text_); }

 private:
  std::string text_;
  bool first_ = true;
};

std::string bit_list(std::string_view name, unsigned bits, unsigned count) {
  std::string text = fmt::format("{}:[", name);
  for (unsigned i = 0; i < count; ++i) text += fmt::format("{}{}", i ? "," : "", bits >> i & 1);
  return text + "]";
}

unsigned sources(const Encoding& e) {
  unsigned n = 0;
  while (n < 3 && e.src[n] != Operand::none) ++n;
  return n;
}

// ---- formats ----

std::string scalar_alu(const Instruction& in, const Encoding& e) {
  Line line(mnemonic(in.opcode));
  if (e.dst != Operand::none) line.operand(scalar(in.dst, dwords(e.dst)));
  for (unsigned i = 0; i < sources(e); ++i) line.operand(source(in, e, i));
  return std::move(line).text();
}

std::string hwreg(unsigned simm16, Target target) {
  static constexpr const char* kNames[] = {nullptr,
                                           "HW_REG_MODE",
                                           "HW_REG_STATUS",
                                           "HW_REG_TRAPSTS",
                                           "HW_REG_HW_ID",
                                           "HW_REG_GPR_ALLOC",
                                           "HW_REG_LDS_ALLOC",
                                           "HW_REG_IB_STS",
                                           nullptr,
                                           nullptr,
                                           nullptr,
                                           nullptr,
                                           nullptr,
                                           nullptr,
                                           nullptr,
                                           "HW_REG_SH_MEM_BASES",
                                           "HW_REG_TBA_LO",
                                           "HW_REG_TBA_HI",
                                           "HW_REG_TMA_LO",
                                           "HW_REG_TMA_HI",
                                           "HW_REG_XCC_ID",
                                           "HW_REG_SQ_PERF_SNAPSHOT_DATA",
                                           "HW_REG_SQ_PERF_SNAPSHOT_DATA1",
                                           "HW_REG_SQ_PERF_SNAPSHOT_PC_LO",
                                           "HW_REG_SQ_PERF_SNAPSHOT_PC_HI"};
  const unsigned id = simm16 & 63, offset = simm16 >> 6 & 31, width = (simm16 >> 11) + 1;
  const size_t names = target == Target::gfx942 ? std::size(kNames) : 20;
  const std::string name = id < names && kNames[id] ? kNames[id] : std::to_string(id);
  if (offset == 0 && width == 32) return fmt::format("hwreg({})", name);
  return fmt::format("hwreg({}, {}, {})", name, offset, width);
}

std::string scalar_k(const Instruction& in, const Encoding& e, Target target) {
  Line line(mnemonic(in.opcode));
  switch (in.opcode) {
    case Opcode::s_setreg_imm32_b32:
      line.operand(hwreg(in.dst, target));
      line.operand(literal(in.literal, Operand::i32));
      break;
    case Opcode::s_setreg_b32:
      line.operand(hwreg(in.literal, target));
      line.operand(scalar(in.dst, 1));
      break;
    case Opcode::s_getreg_b32:
      line.operand(scalar(in.dst, 1));
      line.operand(hwreg(in.literal, target));
      break;
    case Opcode::s_call_b64:
    case Opcode::s_cbranch_i_fork:
      line.operand(scalar(in.dst, 2));
      line.operand(std::to_string(in.literal & 0xffff));
      break;
    default:
      line.operand(scalar(in.dst, dwords(e.dst)));
      line.operand(fmt::format("{:#x}", in.literal & 0xffff));
  }
  return std::move(line).text();
}

bool is_branch(const Instruction& in) {
  return in.opcode == Opcode::s_branch || mnemonic(in.opcode).starts_with("s_cbranch");
}

std::string program_control(const Instruction& in, const Encoding& e) {
  Line line(mnemonic(in.opcode));
  if (e.src[0] == Operand::none) return std::move(line).text();
  const uint32_t simm16 = in.literal & 0xffff;
  switch (in.opcode) {
    case Opcode::s_waitcnt: {
      const unsigned vmcnt = (simm16 & 15) | (simm16 >> 14) << 4, expcnt = simm16 >> 4 & 7,
                     lgkmcnt = simm16 >> 8 & 15;
      const bool every = vmcnt == 63 && expcnt == 7 && lgkmcnt == 15;
      if (vmcnt != 63 || every) line.modifier(fmt::format("vmcnt({})", vmcnt));
      if (expcnt != 7 || every) line.modifier(fmt::format("expcnt({})", expcnt));
      if (lgkmcnt != 15 || every) line.modifier(fmt::format("lgkmcnt({})", lgkmcnt));
      break;
    }
    case Opcode::s_endpgm:
      if (simm16) line.operand(std::to_string(simm16));
      break;
    default:
      line.operand(is_branch(in) ? std::to_string(simm16) : number(simm16));
  }
  return std::move(line).text();
}

std::string scalar_memory(const Instruction& in, const Encoding& e) {
  Line line(mnemonic(in.opcode));
  const Operand data = e.src[1];
  if (data == Operand::imm)
    line.operand(number(in.data0));
  else if (data != Operand::none)
    line.operand(scalar(in.data0, dwords(data)));
  else if (e.dst != Operand::none)
    line.operand(scalar(in.dst, dwords(e.dst)));
  if (e.src[0] != Operand::none) {
    line.operand(scalar(in.saddr, dwords(e.src[0])));
    if (in.offset_is_sgpr) {
      line.operand(scalar(in.soffset, 1));
      if (in.offset) line.modifier(fmt::format("offset:{:#x}", in.offset));
    } else {
      line.operand(fmt::format("{:#x}", in.offset));
    }
  }
  line.flag(in.glc, "glc");
  return std::move(line).text();
}

std::string dpp_control(unsigned control) {
  if (control <= 0xff) {
    return fmt::format("quad_perm:[{},{},{},{}]", control & 3, control >> 2 & 3, control >> 4 & 3,
                       control >> 6 & 3);
  }
  if (control > 0x100 && control <= 0x10f) return fmt::format("row_shl:{}", control & 15);
  if (control > 0x110 && control <= 0x11f) return fmt::format("row_shr:{}", control & 15);
  if (control > 0x120 && control <= 0x12f) return fmt::format("row_ror:{}", control & 15);
  if (control >= 0x150) return fmt::format("row_newbcast:{}", control & 15);
  switch (control) {
    case 0x130:
      return "wave_shl:1";
    case 0x134:
      return "wave_rol:1";
    case 0x138:
      return "wave_shr:1";
    case 0x13c:
      return "wave_ror:1";
    case 0x140:
      return "row_mirror";
    case 0x141:
      return "row_half_mirror";
    case 0x142:
      return "row_bcast:15";
    case 0x143:
      return "row_bcast:31";
    default:
      return "?";
  }
}

const char* sdwa_select(unsigned select) {
  static constexpr const char* kNames[] = {"BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3",
                                           "WORD_0", "WORD_1", "DWORD",  "?"};
  return kNames[select];
}

std::string modified_source(const Instruction& in, const Encoding& e, unsigned i) {
  std::string text = source(in, e, i);
  const bool sext = in.modifier == OperandModifier::sdwa &&
                    (i == 0 ? in.sdwa.src0_sext : i == 1 && in.sdwa.src1_sext);
  if (sext) return "sext(" + text + ")";
  const bool constant = in.src[i] >= 128 && in.src[i] < kFirstVgpr && in.src[i] != 254 &&
                        !(in.src[i] >= 235 && in.src[i] <= 239) &&
                        !(in.src[i] >= 251 && in.src[i] <= 253);
  // On an integer operand LLVM reads the neg bit as sext.
  const bool integer = e.src[i] == Operand::i32 || e.src[i] == Operand::i16;
  if (integer) return in.neg >> i & 1 ? "sext(" + text + ")" : text;
  if (in.abs >> i & 1) text = "|" + text + "|";
  if (in.neg >> i & 1) text = constant && !(in.abs >> i & 1) ? "neg(" + text + ")" : "-" + text;
  return text;
}

std::string vector_alu(const Instruction& in, const Encoding& e) {
  Line line(mnemonic(in.opcode));
  const bool scalar_dst = e.dst == Operand::s1 || e.dst == Operand::mask;
  const unsigned n = sources(e);
  if (e.dst != Operand::none) {
    line.operand(scalar_dst ? scalar(in.dst, dwords(e.dst))
                            : vector(in.dst, dwords(e.dst), in.acc & 8));
  }
  if (e.sdst == Operand::mask) line.operand(scalar(in.sdst, 2));
  for (unsigned i = 0; i < n; ++i)
    line.operand(in.format == Format::vop3p ? source(in, e, i) : modified_source(in, e, i));
  if (in.modifier == OperandModifier::dpp) {
    line.modifier(dpp_control(in.dpp.control));
    line.modifier(fmt::format("row_mask:{:#x}", unsigned{in.dpp.row_mask}));
    line.modifier(fmt::format("bank_mask:{:#x}", unsigned{in.dpp.bank_mask}));
    line.flag(in.dpp.bound_ctrl, "bound_ctrl:1");
    return std::move(line).text();
  }
  // The two conversions have two sources and select one of four bytes with the bits after theirs.
  const bool selects_byte =
      in.opcode == Opcode::v_cvt_sr_fp8_f32 || in.opcode == Opcode::v_cvt_sr_bf8_f32;
  if (in.op_sel && selects_byte)
    line.modifier(bit_list("op_sel", in.op_sel, 4));
  else if (in.op_sel && in.format == Format::vop3)
    line.modifier(
        bit_list("op_sel", (in.op_sel & ((1u << n) - 1)) | (in.op_sel >> 3u) << n, n + 1));
  line.flag(in.clamp, "clamp");
  static constexpr const char* kOmod[] = {"", "mul:2", "mul:4", "div:2"};
  if (in.omod) line.modifier(kOmod[in.omod]);
  if (in.modifier == OperandModifier::sdwa && in.opcode != Opcode::v_nop) {
    static constexpr const char* kUnused[] = {"UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE"};
    if (in.format != Format::vopc && !is_from_8_bits(in.opcode)) {
      line.modifier(fmt::format("dst_sel:{}", sdwa_select(in.sdwa.dst_sel)));
      line.modifier(fmt::format("dst_unused:{}", kUnused[in.sdwa.dst_unused]));
    }
    line.modifier(fmt::format("src0_sel:{}", sdwa_select(in.sdwa.src0_sel)));
    if (n > 1) line.modifier(fmt::format("src1_sel:{}", sdwa_select(in.sdwa.src1_sel)));
  }
  return std::move(line).text();
}

bool is_mix(const Encoding& e) { return e.src[0] == Operand::mix; }

std::string packed(const Instruction& in, const Encoding& e) {
  Line line(mnemonic(in.opcode));
  const unsigned n = sources(e);
  line.operand(vector(in.dst, dwords(e.dst), in.acc & 8));
  for (unsigned i = 0; i < n; ++i)
    line.operand(is_mix(e) ? modified_source(in, e, i) : source(in, e, i));
  if (is_mfma(e)) {
    if (in.neg_hi) line.modifier(fmt::format("cbsz:{}", in.neg_hi));
    if (in.op_sel || in.op_sel_hi >> 2)
      line.modifier(fmt::format("abid:{}", in.op_sel | (in.op_sel_hi >> 2) << 3));
    const bool negates =
        in.opcode == Opcode::v_mfma_f64_16x16x4_f64 || in.opcode == Opcode::v_mfma_f64_4x4x4_4b_f64;
    if (in.neg)
      line.modifier(negates ? bit_list("neg", in.neg, 3) : fmt::format("blgp:{}", in.neg));
    return std::move(line).text();
  }
  const unsigned every = (1u << n) - 1;
  if (in.op_sel) line.modifier(bit_list("op_sel", in.op_sel, n));
  const unsigned default_hi = is_mix(e) ? 0 : every;
  if (e.modifiers.used >> 8 & 1 && (in.op_sel_hi & every) != default_hi)
    line.modifier(bit_list("op_sel_hi", in.op_sel_hi, n));
  if (!is_mix(e)) {
    if (in.neg) line.modifier(bit_list("neg_lo", in.neg, n));
    if (in.neg_hi) line.modifier(bit_list("neg_hi", in.neg_hi, n));
  }
  line.flag(in.clamp, "clamp");
  return std::move(line).text();
}

std::string lds(const Instruction& in, const Encoding& e) {
  Line line(mnemonic(in.opcode));
  const bool acc = in.acc & 8;
  if (e.dst != Operand::none) line.operand(vector(in.dst, dwords(e.dst), acc));
  const bool wave_sync =
      mnemonic(in.opcode).starts_with("ds_gws_");  // its address field holds data
  if (e.src[0] != Operand::none) line.operand(vector(in.addr, 1, acc && wave_sync));
  if (e.src[1] != Operand::none) line.operand(vector(in.data0, dwords(e.src[1]), acc));
  if (e.src[2] != Operand::none) line.operand(vector(in.data1, dwords(e.src[2]), acc));
  if (e.offset == Offset::two8) {
    if (in.offset & 0xff) line.modifier(fmt::format("offset0:{}", in.offset & 0xff));
    if (in.offset >> 8) line.modifier(fmt::format("offset1:{}", in.offset >> 8));
  } else if (in.offset) {
    line.modifier(fmt::format("offset:{}", in.offset));
  }
  line.flag(in.gds, "gds");
  return std::move(line).text();
}

// The names of the three cache bits: gfx942 has its own.
void cache_bits(Line& line, const Instruction& in, Target target) {
  const bool scopes = target == Target::gfx942;
  line.flag(in.glc, scopes ? "sc0" : "glc");
  line.flag(in.slc, scopes ? "nt" : "slc");
  line.flag(in.scc_bit, scopes ? "sc1" : "scc");
}

std::string flat(const Instruction& in, const Encoding& e, Target target) {
  Line line(mnemonic(in.opcode));
  const bool acc = in.acc & 8, based = in.saddr != 0x7f;
  const bool atomic = e.dst != Operand::none && e.src[1] != Operand::none;
  if (e.dst != Operand::none && (!atomic || in.glc) && !in.lds)
    line.operand(vector(in.dst, dwords(e.dst), acc));
  if (in.segment == FlatSegment::scratch) {
    line.operand(in.no_address ? "off" : vector(in.addr, 1, false));
  } else {
    line.operand(vector(in.addr, based ? 1 : 2, false));
  }
  if (e.src[1] != Operand::none) line.operand(vector(in.data0, dwords(e.src[1]), acc));
  if (in.segment != FlatSegment::flat)
    line.operand(based ? scalar(in.saddr, in.segment == FlatSegment::global ? 2 : 1) : "off");
  if (in.offset) line.modifier(fmt::format("offset:{}", in.offset));
  cache_bits(line, in, target);
  line.flag(in.lds && target != Target::gfx942, "lds");
  return std::move(line).text();
}

std::string buffer(const Instruction& in, const Encoding& e, Target target) {
  Line line(mnemonic(in.opcode));
  if (e.src[0] == Operand::none) {
    if (target == Target::gfx942) cache_bits(line, in, target);
    return std::move(line).text();
  }
  const Operand data = e.src[1] != Operand::none ? e.src[1] : e.dst;
  if (data != Operand::none && !in.lds)
    line.operand(vector(e.src[1] != Operand::none ? in.data0 : in.dst, dwords(data), in.acc & 8));
  if (in.opcode != Opcode::buffer_store_lds_dword)
    line.operand(in.offen || in.idxen ? vector(in.addr, in.offen && in.idxen ? 2 : 1, false)
                                      : "off");
  line.operand(scalar(in.srsrc, 4));
  const bool constant =
      in.soffset >= 128 && !(in.soffset >= 235 && in.soffset <= 239) && in.soffset < 249;
  line.operand(constant ? inline_constant(in.soffset, Operand::i32) : scalar(in.soffset, 1));
  if (in.format == Format::mtbuf) {
    static constexpr const char* kData[] = {
        "INVALID",     "8",        "16",          "8_8",        "32",      "16_16",
        "10_11_11",    "11_11_10", "10_10_10_2",  "2_10_10_10", "8_8_8_8", "32_32",
        "16_16_16_16", "32_32_32", "32_32_32_32", "RESERVED_15"};
    static constexpr const char* kNumber[] = {"UNORM", "SNORM", "USCALED",    "SSCALED",
                                              "UINT",  "SINT",  "RESERVED_6", "FLOAT"};
    const unsigned dfmt = in.literal & 15, nfmt = in.literal >> 4;
    std::string text;
    if (dfmt != 1) text += fmt::format("BUF_DATA_FORMAT_{}", kData[dfmt]);
    if (nfmt != 0)
      text += fmt::format("{}BUF_NUM_FORMAT_{}", text.empty() ? "" : ",", kNumber[nfmt]);
    if (!text.empty()) line.modifier("format:[" + text + "]");
  }
  line.flag(in.idxen, "idxen");
  line.flag(in.offen, "offen");
  if (in.offset) line.modifier(fmt::format("offset:{}", in.offset));
  const bool store_lds = in.opcode == Opcode::buffer_store_lds_dword;
  line.flag(store_lds, "lds");
  cache_bits(line, in, target);
  line.flag(in.tfe, "tfe");
  line.flag(in.lds && !store_lds, "lds");
  return std::move(line).text();
}

}  // namespace

std::string to_assembly(const Instruction& in, Target target) {
  if (in.format == Format::other) return std::string(mnemonic(in.opcode));
  const Encoding& e = encoding_of(in, target);
  switch (in.format) {
    case Format::sop1:
    case Format::sop2:
    case Format::sopc:
      return scalar_alu(in, e);
    case Format::sopk:
      return scalar_k(in, e, target);
    case Format::sopp:
      return program_control(in, e);
    case Format::smem:
      return scalar_memory(in, e);
    case Format::vop3p:
      return packed(in, e);
    case Format::ds:
      return lds(in, e);
    case Format::flat:
      return flat(in, e, target);
    case Format::mubuf:
    case Format::mtbuf:
      return buffer(in, e, target);
    default:
      return vector_alu(in, e);
  }
}

}  // namespace uptempo::vgpu::gfx9::test
