// An oracle of vector instructions: each row is one instruction as assembly and a scalar reference of it, written from AMD's instruction set documents
// ("Vega" and "CDNA2"). The instruction goes the whole way: LLVM's assembler, our decoder, the translator, and 64 lanes of execution.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "gfx9/op.hpp"
#include "test/vgpu/gfx9/llvm/llvm_mc.hpp"

namespace uptempo::vgpu::gfx9::test {

// What the source registers are filled with: the values at which an operation changes its behaviour, and random ones.
enum class Fill : uint8_t { ints, longs, f32, f64, f16 };

// When a result counts as right.
enum class Match : uint8_t {
  exact,
  any_nan,  // exact, except that one NaN is as good as another
  ulp1,  // float32 within one unit in the last place, the precision the instruction set document gives
  ulp_f64,  // float64 within 2^-26 relative: the double-precision estimates are refined by software
  ulp_f16,  // float16 within one unit in the last place
};

// What one lane has: v[0:1], v[2:3], v[4:5], what v[6:7] held before, and its bit of s[12:13].
struct Lane {
  uint64_t a, b, c, old;
  bool bit;
};
// What a reference returns where the instruction set leaves the result open.
inline constexpr uint64_t kOpen = 0x8000dead8000dead;
using Reference = uint64_t (*)(const Lane& lane);

struct Row {
  const char* text;  // the result is v6, v[6:7] or, of 1 bit, s[10:11] or VCC
  Fill fill;
  unsigned result_bits;  // 1, 32, 64
  Match match;
  Reference reference;
};

// Runs every row over all kinds of lanes and shapes of EXEC; inactive lanes must keep their value, and their bits of a lane mask must be 0.
void check(std::span<const Row> rows, uint32_t mode = 0x3f0);

// Opcodes that any LaneBench of this program has executed, and those counted by hand.
const std::set<Opcode>& checked_opcodes();
// For tests that execute assembly by other means.
void count_as_checked(const std::string& text);

// One wave to execute assembly on, instruction by instruction, without a program around it.
class LaneBench {
 public:
  explicit LaneBench(Target target = Target::gfx90a);
  // Assembles, decodes, translates and executes each instruction of `text`. Throws std::runtime_error when one is not supported.
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
// Rounded to nearest even once; `value` must be exact or a correctly rounded double of which halving the precision is safe.
uint64_t half_bits(double value) noexcept;
// a * b + c of halves, rounded once.
uint64_t half_fma(uint64_t a, uint64_t b, uint64_t c) noexcept;

}  // namespace uptempo::vgpu::gfx9::test
