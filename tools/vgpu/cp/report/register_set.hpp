// Registers of an instruction's operands, and whether another instruction may write them.
#pragma once

#include "gfx9/decode/instruction.hpp"

namespace uptempo::vgpu {

// Consecutive scalar registers and consecutive vector registers.
struct RegisterSet {
  unsigned scalar = 0, scalars = 0, vector = 0, vectors = 0;
};

// Whether the instruction may write one of the registers. True where this is not known.
bool may_write(const gfx9::Instruction& instruction, const RegisterSet& registers) noexcept;

}  // namespace uptempo::vgpu
