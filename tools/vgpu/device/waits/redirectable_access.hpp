// Decodes x86-64 instructions that can run with their memory operand at another address: those
// whose one operand in memory is addressed through a base register that has no other part in the
// instruction. Adding a constant to that register moves the access and nothing else.
//
// Known are MOV, MOVSX, MOVZX, the arithmetic and logic of two operands, TEST, XCHG, XADD, CMPXCHG,
// INC, DEC, NOT, NEG, MOVNTI, and the moves of SSE (Intel SDM, volume 2, chapter 2 and appendix A).
//
// Thread safety: pure function; async-signal-safe.
#pragma once

#include <cstdint>
#include <optional>

namespace uptempo::vgpu {

struct RedirectableAccess {
  unsigned base = 0;         // 0 to 15: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8...
  bool loads = false;        // the operand is read, perhaps among other things
  bool base_result = false;  // the instruction loads the base register anew
  unsigned bytes = 8;        // of the operand, at most
  friend bool operator==(const RedirectableAccess&, const RedirectableAccess&) = default;
};

// Returns nullopt for any other instruction. Reads at most 15 bytes.
std::optional<RedirectableAccess> decode_redirectable(const uint8_t* code) noexcept;

}  // namespace uptempo::vgpu
