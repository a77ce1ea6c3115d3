// The registers of an interrupted thread of the program, in the frame of a signal (x86-64).
//
// Thread safety: pure functions; async-signal-safe.
#pragma once

#include <ucontext.h>

#include <array>
#include <cstdint>

namespace uptempo::vgpu {

// By their numbers in instructions.
inline constexpr std::array<int, 16> kRegisters{
    REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
    REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

// A bit of REG_EFL. While it is set, a trap follows each instruction.
inline constexpr greg_t kTrapFlag = 0x100;

// The thread's blocked signals. A frame holds 64.
inline uint64_t& mask_of(ucontext_t& context) noexcept {
  return *reinterpret_cast<uint64_t*>(&context.uc_sigmask);
}

}  // namespace uptempo::vgpu
