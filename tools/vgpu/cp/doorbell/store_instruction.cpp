#include "cp/doorbell/store_instruction.hpp"

#include <cstring>

#include "device/bar/memory_operand.hpp"

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
  const unsigned field = code[2] >> 3 & 7, operand_bytes = memory_operand_bytes(code + 2);
  if (operand_bytes == 0) return std::nullopt;  // a register, not memory
  if (store.immediate && field != 0) return std::nullopt;
  unsigned size = 2 + operand_bytes;
  if (store.immediate) {
    int32_t constant;
    std::memcpy(&constant, code + size, sizeof constant);
    store.constant = constant;
    size += 4;
  } else {
    store.reg =
        static_cast<uint8_t>(field | (rex & 4u) << 1);  // REX.R is the register's fourth bit
  }
  store.size_bytes = static_cast<uint8_t>(size);
  return store;
}

}  // namespace uptempo::vgpu
