// An oracle of vector instructions: each row is one instruction in assembly and a scalar reference
// of it, written from AMD's instruction set documents ("Vega" and "CDNA2"). The instruction takes
// the whole path: LLVM's assembler, our decoder, the translator, and 64 lanes of execution.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "gfx9/op.hpp"
#include "test/vgpu/gfx9/llvm/llvm_mc.hpp"

namespace uptempo::vgpu::gfx9::test {

// The content of the source registers: values at which an operation changes its behaviour, and
// random ones.
enum class Fill : uint8_t { ints, longs, f32, f64, f16 };

// The criterion for a correct result.
enum class Match : uint8_t {
  exact,
  any_nan,  // exact, except that all NaNs are equal
  ulp1,     // float32 within one unit in the last place, as the instruction set document states
  ulp_f64,  // float64 within 2^-26 relative: software refines the double-precision estimates
  ulp_f16,  // float16 within one unit in the last place
};

// The operands of one lane: v[0:1], v[2:3], v[4:5], the previous v[6:7], and its bit of s[12:13].
struct Lane {
  uint64_t a, b, c, old;
  bool bit;
};
// A reference returns this if the instruction set leaves the result undefined.
inline constexpr uint64_t kOpen = 0x8000dead8000dead;
using Reference = uint64_t (*)(const Lane& lane);

struct Row {
  const char* text;  // the result is v6, v[6:7] or, if 1 bit wide, s[10:11] or VCC
  Fill fill;
  unsigned result_bits;  // 1, 32, 64
  Match match;
  Reference reference;
};

// Runs every row with all operand values and shapes of EXEC. Inactive lanes must keep their value,
// and their bits of a lane mask must be 0.
void check(std::span<const Row> rows, uint32_t mode = 0x3f0);

// The opcodes that any LaneBench of this program has executed, and those of count_as_checked().
const std::set<Opcode>& checked_opcodes();
// For tests that execute assembly by other means.
void count_as_checked(const std::string& text);

// Executes assembly in one wave, instruction by instruction, without a program around it.
class LaneBench {
 public:
  explicit LaneBench(Target target = Target::gfx90a);
  // Assembles, decodes, translates and executes each instruction of `text`. Errors: throws
  // std::runtime_error if one is not supported.
  void run(const std::string& text);

  std::vector<Vgpr> registers;
  Wave wave{};

 private:
  Target target_;
  LlvmMc assembler_;
};

// ---- numbers ----

float f32(uint64_t bits) noexcept;
double f64(uint64_t bits) noexcept;
double f16(uint64_t bits) noexcept;  // the value of a half
uint64_t bits(float value) noexcept;
uint64_t bits(double value) noexcept;
// Rounds once, to nearest even. `value` must be exact, or a correctly rounded double that may be
// rounded again to half precision.
uint64_t half_bits(double value) noexcept;
// a * b + c of halves, rounded once.
uint64_t half_fma(uint64_t a, uint64_t b, uint64_t c) noexcept;

}  // namespace uptempo::vgpu::gfx9::test
