// The executable form of an instruction: a handler and the operands it wants, prepared once per code page.
//
// A page of code is an array of Ops, one per dword, so that a branch is pointer arithmetic: `&op + displacement`. An entry whose dword has not been
// reached yet has the decode-me handler; the entry behind the page's last dword leads on to the next page.
#pragma once

#include <cstdint>

#include "gfx9/decode/instruction.hpp"
#include "gfx9/wave.hpp"

namespace uptempo::vgpu::gfx9 {

// Executes one instruction and returns the next one. A handler that ends the wave's slice stores wave.pc and wave.stop and returns nullptr
// (stop.hpp has the ways to do so): the run loop looks at wave.stop only then.
using Handler = const Op* (*)(const Op& op, Wave& wave);

struct alignas(64) Op {
  Handler handler;  // published last, with release order: whoever reads it (acquire) sees `in`
  Instruction in;
  uint32_t index;  // of this entry in its page; fixed for the page's life

  uint32_t dwords() const noexcept { return in.size_bytes / 4u; }
};

static_assert(sizeof(Op) == 64, "one cache line per instruction");

// The instruction after `op`.
inline const Op* next(const Op& op) noexcept { return &op + op.dwords(); }
template <unsigned Dwords>
inline const Op* next(const Op& op) noexcept {
  return &op + Dwords;
}

// What becomes of the memory accesses of translated code (observe.hpp).
enum class MemoryPolicy : uint8_t {
  direct,    // memory is accessed where it is
  observed,  // the same, and the executor's observer sees every access
  cached,    // observed, and through the executor's caches
};

// Translators, one per family: return the handler that executes `in` on this machine, or nullptr when the instruction is not supported.
// They may rewrite operands of `in` (e.g. a float64 inline constant) for their handler. Pure; thread-safe.
Handler translate_scalar(
    Instruction& in,
    MemoryPolicy policy) noexcept;                   // SOP*, SMEM                  (scalar*.cpp)
Handler translate_vector(Instruction& in) noexcept;  // VOP1, VOP2, VOPC, VOP3, VOP3P (vector/*.cpp)
Handler translate_memory(
    Instruction& in,
    MemoryPolicy policy) noexcept;  // FLAT, MUBUF, MTBUF, DS       (memory*.cpp)

}  // namespace uptempo::vgpu::gfx9
