#include "gfx9/decode/encoding.hpp"

#include <array>
#include <string_view>

namespace uptempo::vgpu::gfx9 {
namespace {

// One bit for each Target, gfx900 first.
constexpr uint8_t kAll = 0b11111, kOnly900 = 0b00001, kFrom906 = 0b11110, kFrom908 = 0b11100,
                  kFrom90a = 0b11000, kOnly90a = 0b01000, kOnly942 = 0b10000, kTo908 = 0b00111,
                  kTo90a = 0b01111, k908To90a = 0b01100;

// d: used, =: ignored, F: must be 0. In the order of Modifiers' bits.
consteval Modifiers pattern(std::string_view bits) {
  Modifiers m;
  for (unsigned i = 0; i < 13; ++i) {
    if (bits[i] == 'd') m.used = static_cast<uint16_t>(m.used | 1u << i);
    if (bits[i] == '=') m.ignored = static_cast<uint16_t>(m.ignored | 1u << i);
  }
  return m;
}

// clang-format off
//                                              abs op_sel clamp omod neg
constexpr Modifiers kPlain         = pattern("FFF" "====" "F" "FF" "FFF");
constexpr Modifiers kClamped       = pattern("FFF" "====" "d" "FF" "FFF");
constexpr Modifiers kIntToFloat    = pattern("FFF" "====" "d" "dd" "FFF");
constexpr Modifiers kFloat1        = pattern("dFF" "====" "d" "dd" "dFF");
constexpr Modifiers kFloat1NoOmod  = pattern("dFF" "====" "d" "FF" "dFF");
constexpr Modifiers kFloat2        = pattern("ddF" "====" "d" "dd" "ddF");
constexpr Modifiers kFloat3        = pattern("ddd" "====" "d" "dd" "ddd");
constexpr Modifiers kCompare       = pattern("ddF" "====" "d" "FF" "ddF");
constexpr Modifiers kClassTest     = pattern("dFF" "====" "F" "FF" "dFF");
constexpr Modifiers kSelect        = pattern("ddF" "====" "F" "FF" "ddF");
constexpr Modifiers kScaled        = pattern("d=F" "====" "d" "dd" "ddF");
constexpr Modifiers kCvtPkaccum    = pattern("d=F" "====" "d" "FF" "ddF");
constexpr Modifiers kCvtPk8        = pattern("ddF" "ddFd" "F" "FF" "ddF");
constexpr Modifiers kCvtSr8        = pattern("d==" "dddd" "F" "FF" "d==");
constexpr Modifiers kCvtPkU8       = pattern("d==" "====" "d" "FF" "ddd");
// The bits of op_sel and abs[0] hold the scalar destination.
constexpr Modifiers kCarryInt      = pattern("===" "====" "d" "FF" "FFF");
constexpr Modifiers kCarryFloat    = pattern("===" "====" "d" "dd" "ddd");
constexpr Modifiers kMad16         = pattern("ddd" "dddd" "d" "FF" "ddd");
constexpr Modifiers kMad16Int      = pattern("===" "dddd" "d" "FF" "===");
constexpr Modifiers kPack16        = pattern("ddF" "ddFd" "d" "FF" "ddF");
constexpr Modifiers kAdd16Int      = pattern("==F" "ddFd" "d" "FF" "==F");
// VOP3P                                        neg_hi op_sel clamp op_sel_hi neg
constexpr Modifiers kEvery         = pattern("ddd" "dddd" "d" "dd" "ddd");
constexpr Modifiers kSparse        = pattern("ddd" "dddd" "d" "dd" "FFF");
constexpr Modifiers kPacked2       = pattern("ddF" "ddF=" "d" "dd" "ddF");
constexpr Modifiers kPacked2Int    = pattern("dFF" "ddF=" "d" "dd" "dFF");
constexpr Modifiers kPacked3Int    = pattern("dFF" "dddd" "d" "dd" "dFF");
constexpr Modifiers kDot2Int       = pattern("dFd" "dddd" "d" "dd" "dFd");
constexpr Modifiers kAccumulator   = pattern("FFF" "FFF=" "=" "==" "FFF");
// clang-format on

// The last column of VECTOR: kNone, or some of kSdwa, kOmod and kDpp.
namespace form {
struct Set {
  Forms forms;
};
constexpr Set operator|(Set a, Set b) {
  return {{.sdwa = a.forms.sdwa || b.forms.sdwa,
           .omod = a.forms.omod || b.forms.omod,
           .dpp = a.forms.dpp || b.forms.dpp}};
}
constexpr Set kNone{}, kSdwa{{.sdwa = true}}, kOmod{{.omod = true}}, kDpp{{.dpp = true}};
consteval Forms forms_of(Set set) { return set.forms; }
}  // namespace form

#define SCALAR(family, number, mnemonic, dst, src0, src1) \
  {Family::family,                                        \
   number,                                                \
   Opcode::mnemonic,                                      \
   kAll,                                                  \
   Operand::dst,                                          \
   Operand::none,                                         \
   {Operand::src0, Operand::src1, Operand::none}},
#define MEMORY(family, number, mnemonic, targets, dst, data0, data1, base, offset) \
  {Family::family,                                                                 \
   number,                                                                         \
   Opcode::mnemonic,                                                               \
   targets,                                                                        \
   Operand::dst,                                                                   \
   Operand::none,                                                                  \
   {Operand::base, Operand::data0, Operand::data1},                                \
   {},                                                                             \
   {},                                                                             \
   Offset::offset},
#define VECTOR(family, number, mnemonic, targets, dst, sdst, src0, src1, src2, forms) \
  {Family::family,                                                                    \
   number,                                                                            \
   Opcode::mnemonic,                                                                  \
   targets,                                                                           \
   Operand::dst,                                                                      \
   Operand::sdst,                                                                     \
   {Operand::src0, Operand::src1, Operand::src2},                                     \
   {},                                                                                \
   [] {                                                                               \
     using namespace form;                                                            \
     return forms_of(forms);                                                          \
   }()},
#define VOP3(family, number, mnemonic, targets, dst, sdst, src0, src1, src2, modifiers) \
  {Family::family,                                                                      \
   number,                                                                              \
   Opcode::mnemonic,                                                                    \
   targets,                                                                             \
   Operand::dst,                                                                        \
   Operand::sdst,                                                                       \
   {Operand::src0, Operand::src1, Operand::src2},                                       \
   modifiers},
#define NAMED(family, number, mnemonic, targets)                                                \
  {Family::family, number, Opcode::mnemonic, targets, Operand::none, Operand::none, {}, {}, {}, \
   Offset::none,   true},

constexpr Encoding kEncodings[] = {
#include "gfx9/decode/encodings_flat_buffer.inc"
#include "gfx9/decode/encodings_image.inc"
#include "gfx9/decode/encodings_scalar.inc"
#include "gfx9/decode/encodings_smem_ds.inc"
#include "gfx9/decode/encodings_vop1_vop2.inc"
#include "gfx9/decode/encodings_vop3.inc"
#include "gfx9/decode/encodings_vop3_compare.inc"
#include "gfx9/decode/encodings_vop3_promoted.inc"
#include "gfx9/decode/encodings_vopc.inc"
};

#undef SCALAR
#undef MEMORY
#undef VECTOR
#undef VOP3
#undef NAMED

// One slot per opcode number of every family. Families with fewer numbers leave slots unused.
constexpr unsigned kFamilies = static_cast<unsigned>(Family::vintrp) + 1, kTargets = kTargetCount;
constexpr unsigned kSlots = 1024;

constexpr unsigned capacity(Family family) {
  return family == Family::vop3 || family == Family::vop3p ? kSlots : 256;
}
constexpr unsigned first_slot(Family family) {
  unsigned at = 0;
  for (unsigned f = 0; f < static_cast<unsigned>(family); ++f)
    at += capacity(static_cast<Family>(f));
  return at;
}
constexpr unsigned kTotal = first_slot(Family::vintrp) + capacity(Family::vintrp);

constexpr auto kFirstSlot = [] {
  std::array<uint16_t, kFamilies> first{};
  for (unsigned f = 0; f < kFamilies; ++f)
    first[f] = static_cast<uint16_t>(first_slot(static_cast<Family>(f)));
  return first;
}();

// Position in kEncodings plus one, 0 for none.
constexpr auto kIndex = [] {
  std::array<std::array<uint16_t, kTotal>, kTargets> index{};
  uint16_t position = 0;
  for (const Encoding& e : kEncodings) {
    ++position;
    for (unsigned t = 0; t < kTargets; ++t) {
      if (e.targets >> t & 1)
        index[t][kFirstSlot[static_cast<unsigned>(e.family)] + e.number] = position;
    }
  }
  return index;
}();

}  // namespace

std::span<const Encoding> encodings() noexcept { return kEncodings; }

const Encoding* find_encoding(Family family, unsigned number, Target target) noexcept {
  if (number >= capacity(family)) return nullptr;
  const unsigned position =
      kIndex[static_cast<unsigned>(target)][kFirstSlot[static_cast<unsigned>(family)] + number];
  return position ? &kEncodings[position - 1] : nullptr;
}

unsigned dwords(Operand operand) noexcept {
  switch (operand) {
    case Operand::none:
    case Operand::imm:
    case Operand::i8:
      return 0;
    case Operand::s2:
    case Operand::v2:
    case Operand::a2:
    case Operand::av2:
    case Operand::mask:
    case Operand::i64:
    case Operand::f64:
    case Operand::pk_i32:
    case Operand::pk_f32:
      return 2;
    case Operand::v3:
      return 3;
    case Operand::s4:
    case Operand::v4:
    case Operand::a4:
    case Operand::av4:
      return 4;
    case Operand::s8:
    case Operand::a8:
      return 8;
    case Operand::s16:
    case Operand::a16:
      return 16;
    case Operand::a32:
      return 32;
    default:
      return 1;
  }
}

}  // namespace uptempo::vgpu::gfx9
