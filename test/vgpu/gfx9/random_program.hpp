// A random OpenCL C kernel together with what it means: each piece is generated as source text and, beside it, as a function that computes the same
// on the host. No second compiler has a say in the expected result.
//
// Programs avoid what the language leaves open (signed overflow, shifts past the width, conversions out of range, NaN payloads) and what clang 15
// miscompiles for gfx9: division of 64 bits, unsigned division of a number that it knows to be a small one sign-extended (it divides 24 bits), selects
// between floats (they become min and max, which order zeros), and integers reinterpreted as floats (an extension may be folded into the
// float instruction's SDWA operand).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>

namespace uptempo::vgpu::gfx9::test {

class RandomProgram {
 public:
  // The same seed makes the same program everywhere.
  explicit RandomProgram(uint32_t seed);

  // kernel void run(global const ulong* in, global ulong* out), for workgroups of kWorkItems: out[i] is what item i makes of in[2 * i] and in[2 * i + 1].
  static constexpr unsigned kWorkItems = 128;
  const std::string& source() const { return source_; }
  uint64_t expected(uint64_t a, uint64_t b) const;

  static constexpr unsigned kArray = 16;
  // What one work-item's program works on.
  struct State {
    std::array<uint64_t, 18> variable;  // as bits of its type, zero-extended
    std::array<uint32_t, kArray> stack, shared;
  };

 private:
  std::string source_;
  std::function<void(State&)> body_;
};

}  // namespace uptempo::vgpu::gfx9::test
