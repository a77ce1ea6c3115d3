// Decoder of the x86-64 instructions with which compilers and ROCr ring doorbells: 64-bit stores of
// a register or a constant, and XCHG. The fault handler performs the store itself and sees its
// value (Intel SDM, volume 2, MOV and XCHG).
//
// Pure; async-signal-safe.
#pragma once

#include <cstdint>
#include <optional>

namespace uptempo::vgpu {

struct StoreInstruction {
  uint8_t size_bytes = 0;
  bool immediate = false;
  bool exchanges = false;  // the register receives the old value
  uint8_t reg = 0;         // 0..15: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8...
  int64_t constant = 0;
};

// Decodes the instruction at `code`; reads up to 15 bytes. Returns nullopt for any other
// instruction.
std::optional<StoreInstruction> decode_store(const uint8_t* code) noexcept;

}  // namespace uptempo::vgpu
