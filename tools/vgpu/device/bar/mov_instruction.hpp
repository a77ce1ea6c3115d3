// Decodes the 32-bit MOV between a register or constant and memory, for handlers that execute it in
// the place of a faulting thread. Intel SDM volume 2, MOV (opcodes 89, 8B and C7 /0) and 2.1.
//
// Thread safety: pure function.
#pragma once

#include <cstdint>
#include <optional>

namespace uptempo::vgpu {

struct MovInstruction {
  unsigned length_bytes = 0;
  bool stores = false;
  // Number of the register, 0 (EAX) to 15 (R15D), as encoded. Empty: the constant.
  std::optional<unsigned> reg{};
  uint32_t constant = 0;

  friend bool operator==(const MovInstruction&, const MovInstruction&) = default;
};

// Returns nullopt for any other instruction, and with prefixes other than REX. Reads at most 15
// bytes.
std::optional<MovInstruction> decode_mov(const uint8_t* code) noexcept;

}  // namespace uptempo::vgpu
