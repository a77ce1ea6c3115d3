// The places of matrix entries in the registers of matrix instructions, as AMD's matrix instruction
// calculator prints them. The head of layouts.txt says how it is made and what a line means.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "gfx9/decode/decoder.hpp"
#include "gfx9/wave.hpp"

namespace uptempo::vgpu::gfx9::test {

enum class Element : uint8_t { f64, f32, xf32, i32, f16, bf16, i8, fp8, bf8 };

unsigned width_bits(Element element) noexcept;

// The place of one entry: the register of the operand, the lane, and the entry's first bit there.
// An f64 entry also occupies the next register.
struct Place {
  unsigned reg = 0, lane = 0, bit = 0;
};

// The places of one matrix under one setting of the modifiers.
struct Layout {
  unsigned cbsz = 0, abid = 0, blgp = 0;
  bool negated = false;
  Place start;
  std::array<std::vector<Place>, 3> steps;  // for block, row, column; one per bit of the coordinate

  Place at(unsigned block, unsigned row, unsigned column) const noexcept;
};

// The bits of an operand's entry; the operand begins at register `first`.
uint64_t entry_bits(const std::vector<Vgpr>& registers, unsigned first, Element element,
                    Place place);

struct MatrixInstruction {
  Target target{};
  std::string name;
  unsigned m = 0, n = 0, k = 0, blocks = 0;
  Element a_type{}, b_type{}, out{};
  bool sparse = false;                  // C is D
  std::array<unsigned, 4> registers{};  // 32-bit registers of A, B, C, D
  std::array<std::string, 3> files;     // of A, of B, of C and D: v VGPRs, a accumulation registers
  // a: one per CBSZ and ABID; b: one per BLGP; c, d: one. Where BLGP negates, a and c have one per
  // BLGP. indices: of sparse instructions, one per CBSZ and ABID.
  std::vector<Layout> a, b, c, d, indices;
};

// Reads layouts.txt. Errors: throws std::runtime_error, which names the line, for an unknown line,
// a coordinate without steps for its size, and an instruction that lacks a matrix.
std::vector<MatrixInstruction> read_layouts();

std::string name(Target target);

// The register file that holds an operand: 0 VGPRs, 1 accumulation registers.
struct Files {
  unsigned a = 0, b = 0, cd = 0;
};
// First registers of the operands in their files. They are even, as gfx90a requires of wide
// operands.
inline constexpr unsigned kA = 16, kB = 24, kC = 64, kD = 128;
// Accumulation registers follow the VGPRs in a wave's registers.
inline constexpr unsigned kFileRegisters = 256;

// Returns the instruction with operands at kA to kD, encoded as in the VOP3P-MAI diagram of the
// calculator's README. gfx908 has no bit for the file of C and D, which is always the second. The
// indices of a sparse instruction are at kC, and its C is at kD.
std::array<uint32_t, 2> encode(const MatrixInstruction& what, Files files, unsigned cbsz,
                               unsigned abid, unsigned blgp);

}  // namespace uptempo::vgpu::gfx9::test
