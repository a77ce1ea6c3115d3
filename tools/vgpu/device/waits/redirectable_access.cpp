#include "device/waits/redirectable_access.hpp"

namespace uptempo::vgpu {
namespace {

constexpr unsigned kRax = 0, kRsp = 4;

// The role of the register that ModRM names beside the operand in memory.
enum class Reg : uint8_t {
  source,  // read, perhaps also written
  result,  // only written
  vector,  // an SSE register
  opcode,  // part of the opcode
};

struct Form {
  bool loads;
  Reg reg;
  bool narrow = false;  // operands of 8 bits: registers 4 to 7 may be the second byte of 0 to 3
  bool accumulator = false;  // uses RAX, too
  unsigned bytes = 8;
};

std::optional<Form> one_byte_form(uint8_t opcode, unsigned extension) noexcept {
  constexpr uint8_t kArithmeticEnd = 0x40;
  if (opcode < kArithmeticEnd && (opcode & 7) < 4)
    return Form{.loads = true, .reg = Reg::source, .narrow = (opcode & 1) == 0};
  switch (opcode) {
    case 0x63:  // MOVSXD
    case 0x8b:  // MOV
      return Form{.loads = true, .reg = Reg::result};
    case 0x8a:
      return Form{.loads = true, .reg = Reg::source, .narrow = true};  // keeps the other bytes
    case 0x88:
    case 0x89:
      return Form{.loads = false, .reg = Reg::source, .narrow = opcode == 0x88};
    case 0x80:
    case 0x81:
    case 0x83:  // arithmetic and logic with a constant
      return Form{.loads = true, .reg = Reg::opcode};
    case 0x84:
    case 0x85:  // TEST
    case 0x86:
    case 0x87:  // XCHG
      return Form{.loads = true, .reg = Reg::source, .narrow = (opcode & 1) == 0};
    case 0xc6:
    case 0xc7:  // MOV of a constant
      if (extension != 0) return std::nullopt;
      return Form{.loads = false, .reg = Reg::opcode};
    case 0xf6:
    case 0xf7:  // TEST, NOT, NEG
      if (extension > 3) return std::nullopt;
      return Form{.loads = true, .reg = Reg::opcode};
    case 0xfe:
    case 0xff:  // INC, DEC
      if (extension > 1) return std::nullopt;
      return Form{.loads = true, .reg = Reg::opcode};
    default:
      return std::nullopt;
  }
}

std::optional<Form> two_byte_form(uint8_t opcode) noexcept {
  switch (opcode) {
    case 0x10:
    case 0x28:
    case 0x6e:
    case 0x6f:
    case 0x7e:
    case 0x12:
    case 0x16:  // moves of SSE. 7E stores or loads, by its prefix.
      return Form{.loads = true, .reg = Reg::vector, .bytes = 16};
    case 0x11:
    case 0x29:
    case 0x7f:
    case 0xd6:
    case 0x13:
    case 0x17:
    case 0x2b:
    case 0xe7:
      return Form{.loads = false, .reg = Reg::vector, .bytes = 16};
    case 0xb0:
    case 0xb1:  // CMPXCHG
      return Form{.loads = true, .reg = Reg::source, .narrow = opcode == 0xb0, .accumulator = true};
    case 0xb6:
    case 0xb7:
    case 0xbe:
    case 0xbf:  // MOVZX, MOVSX
      return Form{.loads = true, .reg = Reg::result};
    case 0xc0:
    case 0xc1:  // XADD
      return Form{.loads = true, .reg = Reg::source, .narrow = opcode == 0xc0};
    case 0xc3:  // MOVNTI
      return Form{.loads = false, .reg = Reg::source};
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<RedirectableAccess> decode_redirectable(const uint8_t* code) noexcept {
  constexpr unsigned kMostPrefixes = 4;
  const uint8_t* at = code;
  bool short_operand = false;
  for (unsigned prefixes = 0; *at == 0x66 || *at == 0xf0 || *at == 0xf2 || *at == 0xf3; ++at) {
    short_operand = short_operand || *at == 0x66;
    if (++prefixes > kMostPrefixes) return std::nullopt;
  }
  const uint8_t rex = (*at & 0xf0) == 0x40 ? *at++ : 0;
  const bool two_bytes = *at == 0x0f;
  if (two_bytes) ++at;
  const uint8_t opcode = *at++;
  const unsigned mode = *at >> 6, reg_field = *at >> 3 & 7, rm = *at & 7;
  const auto form = two_bytes ? two_byte_form(opcode) : one_byte_form(opcode, reg_field);
  if (!form || mode == 3) return std::nullopt;
  unsigned base = rm, index = kRsp;  // 4: none
  if (rm == 4) {
    base = at[1] & 7;
    index = (at[1] >> 3 & 7) | ((rex & 2) != 0 ? 8 : 0);
  }
  if (mode == 0 && base == 5) return std::nullopt;  // relative to RIP, or no base
  base |= (rex & 1) != 0 ? 8 : 0;
  // The signal frame of the trap is below RSP.
  if (base == kRsp || (index != kRsp && index == base)) return std::nullopt;
  if (form->accumulator && base == kRax) return std::nullopt;
  const unsigned reg = reg_field | ((rex & 4) != 0 ? 8 : 0);
  const bool overlaps =
      reg == base || (form->narrow && rex == 0 && base < 4 && (reg_field & 3) == base);
  const bool uses_base = overlaps && (form->reg == Reg::source || form->reg == Reg::result);
  // A result of 16 bits keeps the rest of the register.
  if (uses_base && (form->reg == Reg::source || short_operand)) return std::nullopt;
  return RedirectableAccess{
      .base = base, .loads = form->loads, .base_result = uses_base, .bytes = form->bytes};
}

}  // namespace uptempo::vgpu
