// Where a wave is in its code: the instruction, and the loop around it.
//
// The loop is a property of the code: a branch back to the wave's instruction or before it. Whether
// the wave takes that branch is not known.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "cp/report/loop_condition.hpp"
#include "cp/report/snapshot.hpp"
#include "device/memory.hpp"
#include "gfx9/decode/decoder.hpp"

namespace uptempo::vgpu {

struct CodePlace {
  bool readable = false;         // false: no code is mapped there
  std::string_view instruction;  // at the place; "v_add_u32"
  bool after_sleep = false;      // the one before it is s_sleep
  GpuAddress loop_begin = 0;     // 0: in no loop
  GpuAddress loop_end = 0;       // of the branch back
  uint32_t loop_instructions = 0;
  std::string_view access;  // the loop's first load or atomic; empty: it has none
  GpuAddress access_at = 0;
  bool loop_sleeps = false;
  // Empty unless the access is global and no instruction of the loop writes the registers of its
  // address, so that they hold it wherever in the loop the wave is.
  std::optional<gfx9::Instruction> addressed;
  std::optional<LoopCondition> condition;  // on the value of the access
};

// Call it inside the Reader's section. Cost: some 100 decoded instructions.
CodePlace code_place(AddressSpace::Reader& memory, GpuAddress pc, gfx9::Target target);

// Returns the address of `CodePlace::addressed` for the wave's first active lane, or nullopt.
std::optional<GpuAddress> accessed_address(const gfx9::Instruction& access,
                                           const WaveRegisters& registers) noexcept;

}  // namespace uptempo::vgpu
