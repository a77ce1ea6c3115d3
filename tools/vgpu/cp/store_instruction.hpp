// The x86-64 instructions that compilers and ROCr ring doorbells with: 64-bit stores of a register or a constant, and XCHG. Decoded so that the fault
// handler can carry one out itself and see its value (Intel SDM, volume 2, MOV and XCHG).
//
// Pure; async-signal-safe.
#pragma once

#include <cstdint>
#include <optional>

namespace uptempo::vgpu {

struct StoreInstruction {
  uint8_t size_bytes = 0;
  bool immediate = false;
  bool exchanges = false;  // the register gets the old value
  uint8_t reg = 0;    // 0..15: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8...
  int64_t constant = 0;
};

// The instruction at `code`, of which up to 15 bytes are looked at; nothing when it is another one.
std::optional<StoreInstruction> decode_store(const uint8_t* code) noexcept;

}  // namespace uptempo::vgpu
