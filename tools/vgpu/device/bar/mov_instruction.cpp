#include "device/bar/mov_instruction.hpp"

#include <cstring>

#include "device/bar/memory_operand.hpp"

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
  const unsigned reg = *at >> 3 & 7, operand_bytes = memory_operand_bytes(at);
  if (operand_bytes == 0 || (opcode == kStoreConstant && reg != 0)) return std::nullopt;
  at += operand_bytes;
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
