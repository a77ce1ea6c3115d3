// Words to Instruction. Pure and stateless; never reads past `words`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "gfx9/decode/instruction.hpp"

namespace uptempo::vgpu::gfx9 {

enum class Target : uint8_t { gfx900, gfx906, gfx908, gfx90a, gfx942 };

inline constexpr unsigned kTargetCount = 5;

// gfx90a and gfx942: vector and accumulation registers are one file, and work-item ids are packed.
constexpr bool has_merged_registers(Target target) noexcept {
  return target == Target::gfx90a || target == Target::gfx942;
}

// SRAM ECC: all but gfx900, as DeviceDescription::sram_ecc.
constexpr bool has_sram_ecc(Target target) noexcept { return target != Target::gfx900; }

// Whether the target replaces denormals by zeros: gfx90a in matrix instructions on float16 and
// bfloat16, and in v_dot2 on float16. Inputs and results: PyTorch, "Numerical accuracy"; MIOpen,
// "MI200 MFMA behavior specifics". Partial sums: MMA-Sim, for matrix instructions.
bool flushes_denormals(Opcode opcode, Target target) noexcept;

// Decodes the instruction that starts at words[0]. When the bits are not an instruction of
// `target`, or are cut off, opcode is Opcode::invalid and size_bytes is 4.
Instruction decode(std::span<const uint32_t> words, Target target) noexcept;

// The assembler's mnemonic, "v_add_u32".
std::string_view mnemonic(Opcode opcode) noexcept;

}  // namespace uptempo::vgpu::gfx9
