#include "cp/doorbell/store_instruction.hpp"

#include <cstring>

namespace uptempo::vgpu {

std::optional<StoreInstruction> decode_store(const uint8_t* code) noexcept {
  const uint8_t rex = code[0];
  if ((rex & 0xf8) != 0x48) return std::nullopt;  // REX with W: 64 bits
  StoreInstruction store;
  const uint8_t opcode = code[1];
  switch (opcode) {
    case 0x89:
      break;  // MOV r/m64, r64
    case 0x87:
      store.exchanges = true;
      break;  // XCHG r/m64, r64
    case 0xc7:
      store.immediate = true;
      break;  // MOV r/m64, imm32
    default:
      return std::nullopt;
  }
  const uint8_t modrm = code[2];
  const unsigned mod = modrm >> 6;
  const unsigned field = modrm >> 3 & 7;
  const unsigned rm = modrm & 7;
  if (mod == 3) return std::nullopt;  // a register, not memory
  if (store.immediate && field != 0) return std::nullopt;
  unsigned size = 3;
  bool displacement32 = mod == 2;
  if (rm == 4) {  // SIB byte
    displacement32 = displacement32 || (mod == 0 && (code[size] & 7) == 5);
    ++size;
  } else if (rm == 5 && mod == 0) {  // relative to RIP
    displacement32 = true;
  }
  size += displacement32 ? 4 : mod == 1 ? 1 : 0;
  if (store.immediate) {
    int32_t constant;
    std::memcpy(&constant, code + size, sizeof constant);
    store.constant = constant;
    size += 4;
  } else {
    store.reg = static_cast<uint8_t>(field | (rex & 4) << 1);  // REX.R is the register's fourth bit
  }
  store.size_bytes = static_cast<uint8_t>(size);
  return store;
}

}  // namespace uptempo::vgpu
