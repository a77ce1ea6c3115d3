// The executable form of an instruction: a handler and its operands, prepared once per code page.
//
// A page of code is an array of Ops, one per dword, so that a branch is pointer arithmetic:
// `&op + displacement`. An entry whose dword has not been reached yet has the decoding handler. The
// entry after the page's last dword leads to the next page.
#pragma once

#include <cstdint>

#include "gfx9/decode/decoder.hpp"
#include "gfx9/wave.hpp"

namespace uptempo::vgpu::gfx9 {

// Executes one instruction and returns the next one. A handler that ends the wave's slice stores
// wave.pc and wave.stop and returns nullptr (see stop.hpp). The run loop reads wave.stop only then.
using Handler = const Op* (*)(const Op& op, Wave& wave);

struct alignas(64) Op {
  Handler handler;  // published last (release); a thread that reads it (acquire) sees `in`
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

// How translated code accesses memory (observe.hpp).
enum class MemoryPolicy : uint8_t {
  direct,    // memory is accessed in place
  observed,  // the same, and the executor's observer sees every access
  cached,    // observed, and through the executor's caches
};

// Translators, one per family. Each returns the handler that executes `in` on this machine, or
// nullptr when the instruction is not supported. They may rewrite operands of `in` for their
// handler, for example a float64 inline constant. Pure.
//
// Thread safety: thread-safe.
// SOP*, SMEM (scalar/).
Handler translate_scalar(Instruction& in, MemoryPolicy policy) noexcept;
// VOP1, VOP2, VOPC, VOP3, VOP3P (vector/).
Handler translate_vector(Instruction& in) noexcept;
// FLAT, MUBUF, MTBUF, DS (memory/).
Handler translate_memory(Instruction& in, Target target, MemoryPolicy policy) noexcept;

}  // namespace uptempo::vgpu::gfx9
