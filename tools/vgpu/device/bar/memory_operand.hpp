// Length of the memory operand of an x86-64 instruction (Intel SDM, volume 2, 2.1.3 and 2.1.5).
#pragma once

#include <cstdint>

namespace uptempo::vgpu {

// Returns the bytes of ModRM, SIB and displacement for 64-bit addresses; 0 if the operand is a
// register. `modrm` points at the ModRM byte; the function reads at most one byte more. Pure.
constexpr unsigned memory_operand_bytes(const uint8_t* modrm) noexcept {
  const unsigned mode = *modrm >> 6, base = *modrm & 7;
  if (mode == 3) return 0;
  // Base 4: a SIB byte follows and names the base. Base 5 without a displacement: no base register,
  // but 32 bits.
  const bool has_sib = base == 4;
  const unsigned last_base = has_sib ? modrm[1] & 7u : base;
  const unsigned displacement = mode == 1 ? 1 : mode == 2 || last_base == 5 ? 4 : 0;
  return 1 + (has_sib ? 1 : 0) + displacement;
}

}  // namespace uptempo::vgpu
