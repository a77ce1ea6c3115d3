// Description of one opcode for the vector unit: the types of its operands, and the functions that
// execute it.
//
// An instruction has one `core`, which computes all 64 lanes from staged operands. It may have
// `fast` handlers, which fetch, compute and write back in one pass over the registers. The general
// handler (general.cpp) serves all other forms: SDWA, DPP, modifiers, special operands, unusual
// MODE. It stages the operands and calls the core, so that every form of an instruction shares one
// definition.
//
// Thread safety: entries and tables are immutable once made.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "gfx9/op.hpp"

namespace uptempo::vgpu::gfx9::vector {

// Operand types. 16-bit values are in the low half of a 32-bit lane, 64-bit values in two
// consecutive registers.
enum class Type : uint8_t { none, u32, i32, f32, u16, i16, f16, u64, i64, f64, bit };

// The same as names for signatures: op<F32(F32, F32)>.
struct U32 {
  static constexpr Type kType = Type::u32;
};
struct I32 {
  static constexpr Type kType = Type::i32;
};
struct F32 {
  static constexpr Type kType = Type::f32;
};
struct U16 {
  static constexpr Type kType = Type::u16;
};
struct I16 {
  static constexpr Type kType = Type::i16;
};
struct F16 {
  static constexpr Type kType = Type::f16;
};
struct U64 {
  static constexpr Type kType = Type::u64;
};
struct I64 {
  static constexpr Type kType = Type::i64;
};
struct F64 {
  static constexpr Type kType = Type::f64;
};
struct Bit {
  static constexpr Type kType = Type::bit;
};  // one bit per lane, in a scalar pair: compare result, carry, selector
struct LaneId {
  static constexpr Type kType = Type::none;
};  // the lane's number; not an operand
template <class T>
struct WithCarry {
  static constexpr Type kType = T::kType;
};  // result T, and one bit per lane to `sdst`

constexpr bool is_wide(Type type) noexcept {
  return type == Type::u64 || type == Type::i64 || type == Type::f64;
}
constexpr bool is_short(Type type) noexcept {
  return type == Type::u16 || type == Type::i16 || type == Type::f16;
}
constexpr bool is_float(Type type) noexcept {
  return type == Type::f32 || type == Type::f16 || type == Type::f64;
}

// One instruction's operands, 64 lanes each, modifiers applied; [operand][half of a 64-bit value].
struct Lanes {
  const uint32_t* src[3][2] = {};
  uint32_t* dst[2] = {};
  uint64_t mask_in = 0;   // carry-in, selector
  uint64_t mask_out = 0;  // compare result, carry-out
};
using Core = void (*)(Lanes&);

// How VOP3P applies a core to its operands. `pairs`: two 16-bit halves of src0 and src1 each, as
// v_dot2 multiplies them; src2 is 32 bits wide.
enum class Packing : uint8_t { none, halves, dwords, mix, mix_low, mix_high, pairs };

enum Flag : unsigned {
  kCold = 1,  // seldom executed: has no fast handlers, to save code
  kIeee = 2,  // signalling NaN inputs matter when MODE.ieee is set (min, max, med3)
  // A 16-bit result keeps the destination's high half (the gfx9 forms of mad, fma, div_fixup).
  kKeepsHigh = 4,
  kExact = 8,  // copies bits: MODE does not apply
  kWritesExec = 16,
  // Computed in 64-bit lanes although no operand is that wide: float32 and float16 through float64.
  kWide = 32,
  // Divides by its second source, or by its only one: a zero there gives a true infinity.
  kDivides = 64,
};

struct Entry {
  Opcode opcode = Opcode::invalid;
  Core core = nullptr;
  Core saturating = nullptr;      // with the clamp bit, integer results
  Core flushing = nullptr;        // of Instruction::flushes
  const Handler* fast = nullptr;  // indexed by a mask: bit i, src[i] is scalar
  Handler modified = nullptr;     // any operand kinds, with abs, neg, clamp or VOP3P selects
  Handler own = nullptr;          // executes every form itself (v_readlane_b32)
  uint8_t sources = 0;            // operands in src[], masks not counted
  int8_t mask_source = -1;        // src[] index of the Bit operand; 3: VCC implied
  Type source[3] = {};
  Type result = Type::none;
  bool carry_out = false;
  Packing packing = Packing::none;
  unsigned flags = 0;
};

// An instruction whose handler executes every form.
constexpr Entry own(Opcode opcode, Handler handler, uint8_t sources) noexcept {
  Entry entry;
  entry.opcode = opcode;
  entry.own = handler;
  entry.sources = sources;
  return entry;
}

// The MODE bits that affect an instruction on these types, and the setting of compute kernels:
// nearest even, denormals kept.
constexpr uint32_t mode_mask(Type type) noexcept {
  return type == Type::f32 ? 0x33u : type == Type::f16 || type == Type::f64 ? 0xccu : 0u;
}
constexpr uint32_t mode_usual(Type type) noexcept {
  return type == Type::f32 ? 0x30u : type == Type::f16 || type == Type::f64 ? 0xc0u : 0u;
}
inline constexpr uint32_t kModeDx10Clamp = 0x100, kModeIeee = 0x200, kModeFp16Ovfl = 0x800000;

using Table = std::array<Entry, kOpcodeCount>;

// The entries of the SIMD target in use. An entry without core and own means an unsupported opcode.
const Table& table() noexcept;

// The handler of the SIMD target in use for any form of a supported instruction.
Handler general_handler() noexcept;

// SIMD targets, best first.
enum class Simd : uint8_t { avx512, avx2, baseline };
Simd simd_in_use() noexcept;
// Throws std::runtime_error if this build has one SIMD target alone and this machine lacks it.
void require_simd();
// For tests and measurements. Later translations and executions use `simd`. Returns false when this
// machine or this build lacks it.
//
// Thread safety: do not call it while other threads execute instructions.
bool use_simd(Simd simd) noexcept;

// The families in plain scalar code, the same for every SIMD target. table.cpp lists the others.
std::span<const Entry> lane_entries();
std::span<const Entry> media_entries();
std::span<const Entry> convert8_entries();
std::span<const Entry> matrix_fused_entries();

// Returns a source operand as one scalar value. Constants are 32 bits wide, or 64 for such a type;
// translate_vector() has replaced those that are 16-bit floats. Literals of 64-bit floats are the
// high half.
uint64_t scalar_operand(const Wave& wave, const Instruction& in, unsigned index,
                        Type type) noexcept;

}  // namespace uptempo::vgpu::gfx9::vector
