// Every mnemonic of the gfx9 family (gfx900, gfx906, gfx908, gfx90a, gfx942), one enumerator each.
//
// An opcode names an operation, independent of its encoding: V_ADD_F32 is v_add_f32 in VOP2, VOP3,
// SDWA and DPP. Where targets renamed a mnemonic because its meaning changed (v_mad_mix_f32,
// v_fma_mix_f32), there are two enumerators. The spelling is LLVM's, without _e32, _e64, _sdwa and
// _dpp. v_add_u32 has no carry, v_add_co_u32 has one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace uptempo::vgpu::gfx9 {

enum class Opcode : uint16_t {
  invalid,
#define OPCODE(mnemonic) mnemonic,
#include "gfx9/decode/opcodes.inc"
#undef OPCODE
  count_,  // not an opcode: the number of enumerators
};

inline constexpr size_t kOpcodeCount = static_cast<size_t>(Opcode::count_);

}  // namespace uptempo::vgpu::gfx9
