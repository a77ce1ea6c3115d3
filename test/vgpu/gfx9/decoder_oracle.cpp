#include "test/vgpu/gfx9/decoder_oracle.hpp"

#include <fmt/format.h>
#include <llvm/Config/llvm-config.h>

#include <algorithm>

#include "test/vgpu/gfx9/assembly.hpp"

namespace uptempo::vgpu::gfx9::test {
namespace {

bool has(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }
bool starts(std::string_view text, std::initializer_list<std::string_view> beginnings) {
  return std::ranges::any_of(beginnings, [&](std::string_view b) { return text.starts_with(b); });
}

std::string_view mnemonic_of(std::string_view text) { return text.substr(0, text.find(' ')); }
std::string_view first_operand(std::string_view text) {
  const size_t space = text.find(' ');
  if (space == text.npos) return {};
  const std::string_view rest = text.substr(space + 1);
  return rest.substr(0, rest.find(','));
}

// Text without the encoding's suffix: "v_add_f32_e64 v1, ..." -> "v_add_f32 v1, ...".
std::string without_suffix(std::string text) {
  const size_t end = std::min(text.find(' '), text.size());
  for (const std::string_view suffix : {"_e32", "_e64", "_sdwa", "_dpp"}) {
    if (std::string_view(text).substr(0, end).ends_with(suffix)) {
      text.erase(end - suffix.size(), suffix.size());
      break;
    }
  }
  return text;
}

#if LLVM_VERSION_MAJOR >= 21
std::string without_op_sel_hi(std::string_view text) {
  constexpr std::string_view kName = " op_sel_hi:[0,0,0]";
  std::string rest(text);
  const size_t at = rest.find(kName.substr(0, kName.find('[')));
  if (at != rest.npos) rest.erase(at, kName.size());
  return rest;
}
#endif

constexpr Exclusion kExclusions[] = {
#if LLVM_VERSION_MAJOR < 21
    {"gfx942 lacks these; LLVM decodes them before version 21",
     [](const Instruction&, std::string_view ours, std::string_view theirs) {
       return ours.empty() && starts(theirs, {"buffer_wbinvl1", "buffer_store_lds_dword "});
     }},
#endif
    {"operand code 125 is NULL on gfx10 and reserved on gfx9; LLVM decodes it for all targets",
     [](const Instruction&, std::string_view ours, std::string_view theirs) {
       return ours.empty() && has(theirs, "null");
     }},
    {"LLVM prints an operand that must be a register and is none as an invalid immediate, instead "
     "of refusing it",
     [](const Instruction&, std::string_view ours, std::string_view theirs) {
       return ours.empty() && has(theirs, "/*");
     }},
    {"operands that must be a register: LLVM drops the ninth bit of the operand code, or accepts "
     "any scalar or constant",
     [](const Instruction&, std::string_view ours, std::string_view theirs) {
       return ours.empty() && starts(theirs, {"v_mfma_", "v_smfmac_", "v_readfirstlane_b32 ",
                                              "v_swap_b32 ", "v_accvgpr_", "v_readlane_b32 ",
                                              "v_writelane_b32 ", "v_mqsad_u32_u8 ", "s_movrels_",
                                              "s_cbranch_join ", "s_setpc_b64 ", "s_rfe_b64 "});
     }},
    {"the lane mask of these must be in scalar registers; LLVM accepts any source",
     [](const Instruction&, std::string_view ours, std::string_view theirs) {
       return ours.empty() && starts(theirs, {"v_cndmask_b32 ", "v_addc_co_u32 ", "v_subb_co_u32 ",
                                              "v_subbrev_co_u32 "});
     }},
    {"the destination of a compare must be a writable scalar register",
     [](const Instruction&, std::string_view ours, std::string_view theirs) {
       const std::string_view dst = first_operand(theirs);
       const bool constant =
           !dst.empty() && (std::isdigit(static_cast<unsigned char>(dst[0])) || dst[0] == '-');
       return ours.empty() && theirs.starts_with("v_cmp") &&
              (dst.starts_with("src_") || constant || dst.starts_with("v["));
     }},
    {"gfx9 has 102 SGPRs, and a group of four or more cannot contain VCC and other special "
     "registers",
     [](const Instruction&, std::string_view ours, std::string_view theirs) {
       const auto past_end = {"s[100:103]", "s[96:103]", "s[92:103]", "s[88:103]"};
       const bool group =
           std::ranges::any_of(past_end, [&](const char* g) { return has(theirs, g); });
       const bool pair = std::ranges::any_of(
           std::initializer_list<const char*>{"vcc", "xnack_mask", "flat_scratch", "exec"},
           [&](const char* p) { return has(theirs, p); });
       return ours.empty() && (group || (pair && starts(theirs, {"s_", "buffer_", "tbuffer_"})));
     }},
    {"v_nop and v_clrexcp have no source; LLVM accepts a source field that is not 0, also that of "
     "an "
     "SDWA or DPP form, which the instruction set does not have",
     [](const Instruction&, std::string_view ours, std::string_view theirs) {
       return ours.empty() && (mnemonic_of(theirs) == "v_nop" || theirs == "v_clrexcp");
     }},
    {"the fields of MIMG, EXP and VINTRP are not decoded",
     [](const Instruction& in, std::string_view, std::string_view theirs) {
       return in.format == Format::other && theirs.empty();
     }},
    {"symbolic names of messages, gpr_idx modes and swizzle patterns are not printed",
     [](const Instruction& in, std::string_view ours, std::string_view theirs) {
       return mnemonic_of(ours) == mnemonic_of(theirs) &&
              (in.opcode == Opcode::s_sendmsg || in.opcode == Opcode::s_sendmsghalt ||
               in.opcode == Opcode::s_set_gpr_idx_on || in.opcode == Opcode::s_set_gpr_idx_mode ||
               in.opcode == Opcode::ds_swizzle_b32);
     }},
    {"neg of an integer source under DPP has no meaning; LLVM prints it as sext",
     [](const Instruction& in, std::string_view, std::string_view theirs) {
       return in.opcode == Opcode::v_ldexp_f16 && in.modifier == OperandModifier::dpp &&
              has(theirs, "sext(");
     }},
    {"LLVM prints src0 of v_madmk_f16 as if it were f32",
     [](const Instruction& in, std::string_view ours, std::string_view theirs) {
       return in.opcode == Opcode::v_madmk_f16 && (in.src[0] == kLiteral || in.src[0] >= 240) &&
              mnemonic_of(ours) == mnemonic_of(theirs);
     }},
#if LLVM_VERSION_MAJOR < 17
    {"v_cndmask has abs and neg under DPP and SDWA; LLVM 15 prints none under DPP, and sext under "
     "SDWA",
     [](const Instruction& in, std::string_view ours, std::string_view theirs) {
       return ours.empty() ? starts(theirs, {"v_cndmask_b32 "}) && has(theirs, "sext(")
                           : in.opcode == Opcode::v_cndmask_b32 && (in.neg != 0 || in.abs != 0) &&
                                 in.modifier != OperandModifier::none;
     }},
#else
    {"LLVM counts the status register of tfe among the data, and does not print tfe of MTBUF or "
     "refuses it",
     [](const Instruction&, std::string_view ours, std::string_view theirs) {
       return has(ours, " tfe") && (theirs.empty() || mnemonic_of(ours) == mnemonic_of(theirs));
     }},
    {"LLVM refuses some buffer loads to LDS, although it prints others of the same opcode",
     [](const Instruction&, std::string_view ours, std::string_view theirs) {
       return theirs.empty() && ours.starts_with("buffer_load_") && ours.ends_with(" lds");
     }},
    {"VOP3 forms of these are not decoded; the instruction set manuals list VOP2 alone",
     [](const Instruction&, std::string_view ours, std::string_view theirs) {
       return ours.empty() && starts(theirs, {"v_dot2c_", "v_dot4c_", "v_dot8c_"});
     }},
    {"omod of instructions with op_sel is not decoded",
     [](const Instruction&, std::string_view ours, std::string_view theirs) {
       const bool selects =
           has(theirs, " op_sel:[") ||
           (mnemonic_of(theirs).ends_with("_f16") &&
            starts(theirs, {"v_mad_", "v_fma_", "v_div_fixup_", "v_min3_", "v_med3_", "v_max3_"}));
       return ours.empty() && selects && (has(theirs, " mul:") || has(theirs, " div:"));
     }},
    {"an opcode of MIMG that is not decoded",
     [](const Instruction&, std::string_view ours, std::string_view theirs) {
       return ours.empty() && theirs.starts_with("image_gather4h ");
     }},
#endif
#if LLVM_VERSION_MAJOR >= 19
    {"LLVM does not print gds of gfx90a and gfx942",
     [](const Instruction&, std::string_view ours, std::string_view theirs) {
       return ours.ends_with(" gds") && ours.substr(0, ours.size() - 4) == theirs;
     }},
    {"LLVM prints a comment instead of a DPP control that float64 does not have",
     [](const Instruction& in, std::string_view, std::string_view theirs) {
       return in.modifier == OperandModifier::dpp && has(theirs, "/*");
     }},
    {"signs of packed integers are not decoded; no document defines them",
     [](const Instruction&, std::string_view ours, std::string_view theirs) {
       const bool integers = starts(theirs, {"v_dot2_", "v_pk_"}) &&
                             (mnemonic_of(theirs).ends_with("16") && !has(theirs, "_f16"));
       return ours.empty() && has(theirs, " neg_") && integers;
     }},
    {"LLVM prints 16-bit literals differently",
     [](const Instruction& in, std::string_view ours, std::string_view theirs) {
       const bool short_form =
           in.format == Format::vop2 || ((in.format == Format::vop1 || in.format == Format::vopc) &&
                                         has(mnemonic_of(ours), "16"));
       return in.src[0] == kLiteral && short_form && mnemonic_of(ours) == mnemonic_of(theirs);
     }},
#endif
#if LLVM_VERSION_MAJOR >= 21
    {"LLVM refuses v_cmpx with a destination that its assembler accepts",
     [](const Instruction& in, std::string_view ours, std::string_view theirs) {
       return theirs.empty() && ours.starts_with("v_cmpx_") && in.format == Format::vop3;
     }},
    {"LLVM refuses abs and neg of 16-bit and packed integers",
     [](const Instruction&, std::string_view ours, std::string_view theirs) {
       return theirs.empty() && (starts(ours, {"v_dot4_", "v_dot8_"}) ||
                                 (starts(ours, {"v_mad_", "v_min3_", "v_med3_", "v_max3_"}) &&
                                  mnemonic_of(ours).ends_with("16")));
     }},
    {"DPP and SDWA of v_pk_fmac_f16, and clamp of v_alignbyte_b32, are not decoded",
     [](const Instruction&, std::string_view ours, std::string_view theirs) {
       return ours.empty() && starts(theirs, {"v_pk_fmac_f16 ", "v_alignbyte_b32 "});
     }},
    {"LLVM does not print op_sel_hi of dot products of bytes, and a sign of an integer of "
     "v_cvt_pk_u8_f32",
     [](const Instruction&, std::string_view ours, std::string_view theirs) {
       return (starts(ours, {"v_dot4_", "v_dot8_"}) && without_op_sel_hi(ours) == theirs) ||
              (has(ours, " sext(") && mnemonic_of(ours) == "v_cvt_pk_u8_f32");
     }},
#endif
};

// From LLVM 19 on, a reserved bit of MUBUF makes LLVM refuse the words. Bit 15 is SCC or sc1 since
// gfx90a, and reserved before. Bit 55 is TFE, since gfx90a the register file, and reserved in
// instructions that have neither. Opcode 0x71 is BUFFER_WBINVL1 on gfx6, and earlier LLVMs decode
// it for gfx9 too.
bool has_reserved_bit(const Instruction& in, std::span<const uint32_t> words, Target target) {
  const bool since_90a = target == Target::gfx90a || target == Target::gfx942;
  const bool neither = in.opcode == Opcode::buffer_wbinvl1 ||
                       in.opcode == Opcode::buffer_wbinvl1_vol ||
                       in.opcode == Opcode::buffer_store_lds_dword;
  return LLVM_VERSION_MAJOR >= 19 && in.format == Format::mubuf &&
         ((words[0] >> 18 & 0x7f) == 0x71 || (!since_90a && (words[0] >> 15 & 1) != 0) ||
          ((!since_90a || neither) && !in.tfe && (words[1] >> 23 & 1) != 0));
}

// LLVM appends a comment to a register that the assembler would not accept. We print none.
std::string without_comments(std::string text) {
  for (size_t begin; (begin = text.find("/*Invalid register")) != text.npos;)
    text.erase(begin, text.find("*/", begin) + 2 - begin);
  return text;
}

}  // namespace

std::span<const Exclusion> exclusions() noexcept { return kExclusions; }

std::optional<std::string> DecoderOracle::compare(std::span<const uint32_t> words,
                                                  unsigned& size_bytes) {
  size_bytes = 4;
  const Instruction instruction = decode(words, target_);
  const bool accepted = instruction.opcode != Opcode::invalid;
  if (LlvmMc::is_fatal(words)) {
    // LLVM would end the process. We must not accept the words either. A field that the
    // opcode does not read may hold anything.
    if (accepted && (instruction.modifier == OperandModifier::sdwa ||
                     std::ranges::count(instruction.src, kLiteral) != 0))
      return fmt::format("{:08x} {:08x}: accepted a reserved SDWA select, or a literal", words[0],
                         words[1]);
    ++excluded;
    return std::nullopt;
  }
  const auto disassembled = llvm_.disassemble(words);
  if (!disassembled && !accepted) {
    ++both_refuse;
    return std::nullopt;
  }
  if (disassembled) size_bytes = disassembled->size_bytes;
  const std::string ours = accepted ? to_assembly(instruction, target_) : "";
  std::string theirs = disassembled ? without_suffix(disassembled->text) : "";
  // LLVM also prints an immediate offset of 0 beside a scalar offset; the sum is the same.
  if (const size_t zero = theirs.find(" offset:0x0");
      instruction.format == Format::smem && zero != theirs.npos)
    theirs.erase(zero, 11);
  if (accepted && instruction.format == Format::other && disassembled) theirs = mnemonic_of(theirs);
  if (accepted) theirs = without_comments(std::move(theirs));
  if (accepted && disassembled && ours == theirs &&
      instruction.size_bytes == disassembled->size_bytes) {
    ++agreed;
    return std::nullopt;
  }
  const bool same_size =
      !accepted || !disassembled || instruction.size_bytes == disassembled->size_bytes;
  if (accepted && !disassembled && has_reserved_bit(instruction, words, target_)) {
    ++excluded;
    return std::nullopt;
  }
  if (same_size && std::ranges::any_of(kExclusions, [&](const Exclusion& e) {
        return e.applies(instruction, ours, theirs);
      })) {
    ++excluded;
    return std::nullopt;
  }
  return fmt::format("{} {:08x} {:08x}: ours \"{}\" ({} bytes), LLVM's \"{}\" ({} bytes)",
                     cpu_name(target_), words[0], words.size() > 1 ? words[1] : 0,
                     accepted ? ours : "refused", instruction.size_bytes,
                     disassembled ? theirs : "refused", size_bytes);
}

}  // namespace uptempo::vgpu::gfx9::test
