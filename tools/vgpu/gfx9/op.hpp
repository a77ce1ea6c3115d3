// The executable form of an instruction: a handler and the operands it wants, prepared once per code page.
//
// A page of code is an array of Ops, one per dword, so that a branch is pointer arithmetic: `&op + displacement`. An entry whose dword has not been
// reached yet has the decode-me handler; the entry behind the page's last dword leads on to the next page.
#pragma once

#include <cstdint>

#include "gfx9/instruction.hpp"
#include "gfx9/wave.hpp"

namespace uptempo::vgpu::gfx9 {

// Executes one instruction and returns the next one. Sets wave.stop when the wave must give up its slice: the run loop looks at it
// only when the handler returns nullptr, so a stopping handler stores wave.pc and wave.stop and returns nullptr.
using Handler = const Op* (*)(const Op& op, Wave& wave);

struct alignas(64) Op {
  Handler handler;
  Instruction in;

  std::uint32_t dwords() const noexcept { return in.size_bytes / 4u; }
};

static_assert(sizeof(Op) == 64, "one cache line per instruction");

// The instruction after `op`.
inline const Op* next(const Op& op) noexcept { return &op + op.dwords(); }
template <unsigned Dwords>
inline const Op* next(const Op& op) noexcept { return &op + Dwords; }

// Translators, one per family: return the handler that executes `in` on this machine, or nullptr when the instruction is not supported.
// They may rewrite operands of `in` (e.g. a float64 inline constant) for their handler. Pure; thread-safe.
Handler translate_scalar(Instruction& in) noexcept;   // SOP*, SMEM                         (scalar*.cpp)
Handler translate_vector(Instruction& in) noexcept;   // VOP1, VOP2, VOPC, VOP3, VOP3P        (vector/*.cpp)
Handler translate_memory(Instruction& in) noexcept;   // FLAT, GLOBAL, SCRATCH, MUBUF, DS     (memory*.cpp)

}  // namespace uptempo::vgpu::gfx9
