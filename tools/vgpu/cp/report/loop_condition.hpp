// The condition that ends a loop which polls memory, read from the loop's code: the comparison of
// the value that the loop loads, and the branch or the mask that depends on it.
//
// Known are the forms that LLVM makes of `while (load != value)`: the value directly, moved, or
// masked by a constant, compared with a constant or a register that the loop does not write.
//
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "cp/report/snapshot.hpp"
#include "gfx9/decode/instruction.hpp"

namespace uptempo::vgpu {

struct LoopInstruction {
  GpuAddress at = 0;
  gfx9::Instruction instruction;
};

enum class Relation : uint8_t { eq, ne, lt, ge, gt, le };

struct LoopCondition {
  Relation relation = Relation::eq;  // of the loaded value, first masked, to the operand
  gfx9::OperandCode operand = 0;
  uint32_t literal = 0;  // of the operand kLiteral
  bool wide = false;     // 64 bits
  bool is_signed = false;
  uint32_t mask = ~0u;
  // Whether the loop ends when it holds. False: the loop compares, and its end is not understood.
  bool ends_loop = false;
};

bool loads_64_bits(const gfx9::Instruction& load) noexcept;

// `loop` are the instructions from the target of the branch back to that branch, and loop[access] is
// the load or atomic. nullopt: not known.
std::optional<LoopCondition> loop_condition(std::span<const LoopInstruction> loop, size_t access);

// ", and waits until it is >= 0x8" for the first active lane; empty if the operand is not known.
std::string awaited_text(const LoopCondition& condition, const WaveRegisters& registers);

}  // namespace uptempo::vgpu
