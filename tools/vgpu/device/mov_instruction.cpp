#include "device/mov_instruction.hpp"

#include <cstring>

namespace uptempo::vgpu {

std::optional<MovInstruction> decode_mov(const uint8_t* code) noexcept {
  constexpr uint8_t kRex = 0x40, kRexW = 8, kRexR = 4;
  constexpr uint8_t kStore = 0x89, kLoad = 0x8b, kStoreConstant = 0xc7;
  const uint8_t* at = code;
  uint8_t rex = 0;
  if ((*at & 0xf0) == kRex) rex = *at++;
  if ((rex & kRexW) != 0) return std::nullopt;
  const uint8_t opcode = *at++;
  if (opcode != kStore && opcode != kLoad && opcode != kStoreConstant) return std::nullopt;
  const uint8_t modrm = *at++;
  const unsigned mode = modrm >> 6, reg = modrm >> 3 & 7, base = modrm & 7;
  if (mode == 3 || (opcode == kStoreConstant && reg != 0)) return std::nullopt;
  // Base 4: a SIB byte follows. Base 5 without displacement: 32 bits, without a base.
  const bool has_sib = base == 4;
  const unsigned sib_base = has_sib ? *at++ & 7u : base;
  if (mode == 1) {
    at += 1;
  } else if (mode == 2 || sib_base == 5) {
    at += 4;
  }
  MovInstruction mov{.stores = opcode != kLoad};
  if (opcode == kStoreConstant) {
    std::memcpy(&mov.constant, at, sizeof mov.constant);
    at += sizeof mov.constant;
  } else {
    mov.reg = reg + ((rex & kRexR) != 0 ? 8 : 0);
  }
  mov.length_bytes = static_cast<unsigned>(at - code);
  return mov;
}

}  // namespace uptempo::vgpu
