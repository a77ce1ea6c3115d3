// Executes single vector instructions in one wave, and compares their effects with a scalar
// reference over all SIMD targets of this machine, operand kinds and shapes of EXEC.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gfx9/op.hpp"
#include "gfx9/vector/entry.hpp"

namespace uptempo::vgpu::gfx9::test {

// MODE of compute kernels: nearest even, denormals, DX10 clamp, IEEE.
inline constexpr uint32_t kKernelMode = 0x3f0;

class VectorMachine {
 public:
  explicit VectorMachine(uint32_t seed);
  VectorMachine(const VectorMachine&) = delete;
  VectorMachine& operator=(const VectorMachine&) = delete;

  // Translates and executes. Fails the test if the instruction is unsupported or does not lead to
  // the next one.
  void run(Instruction in);

  uint64_t pair(unsigned reg, unsigned lane) const;
  uint32_t random() noexcept;
  // Numbers at which integer and float instructions change their behaviour, mixed with random ones.
  uint32_t edge() noexcept;

  std::vector<Vgpr> registers;
  Wave wave{};

 private:
  uint32_t state_;
};

// The SIMD targets that this machine can run.
std::vector<vector::Simd> simd_targets();
std::string name(vector::Simd simd);

// Shapes of EXEC: all, none, single lanes, halves, stripes, random.
const std::vector<uint64_t>& exec_shapes();

// An instruction in VOP3 form on registers that do not overlap: sources v[10..], v[20..], v[30..],
// result v[40..], scalar result s[20:21].
Instruction vop3(Opcode opcode, unsigned sources);

enum class Compare { bits, floats32, floats64, floats16 };  // floats: any NaN equals any NaN

struct Case {
  Opcode opcode;
  unsigned sources;
  std::array<unsigned, 3> registers = {1, 1, 1};  // per operand
  unsigned result_registers = 1;
  Compare compare = Compare::bits;
  unsigned carry_source = 0;  // index in src of a lane mask, 0: none
};
using Reference = std::function<uint64_t(uint64_t a, uint64_t b, uint64_t c, bool carry)>;

// Executes the case on every SIMD target, with every combination of vector and scalar sources and
// every shape of EXEC, and compares all 64 lanes: active ones with the reference, inactive ones
// with their previous value.
void check_lanes(const Case& what, const Reference& reference);

// The same for instructions with one result bit per lane in a scalar pair. Bits of inactive lanes
// are 0.
void check_bits(const Case& what, const std::function<bool(uint64_t a, uint64_t b)>& reference,
                bool writes_exec);

inline float f32(uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }
inline double f64(uint64_t bits) { return std::bit_cast<double>(bits); }
inline uint64_t bits(float v) { return std::bit_cast<uint32_t>(v); }
inline uint64_t bits(double v) { return std::bit_cast<uint64_t>(v); }

// Float16 by its definition, computed in double, independent of the implementation's.
double f16(uint64_t bits);
uint64_t nearest_f16(double v);

}  // namespace uptempo::vgpu::gfx9::test
