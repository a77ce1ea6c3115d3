// A random OpenCL C kernel with its meaning: the generator emits each piece as source text and as a
// function that computes the same on the host. So no second compiler determines the expected
// result.
//
// Programs avoid undefined behaviour (signed overflow, shifts past the width, conversions out of
// range, NaN payloads) and the code that clang 15 miscompiles for gfx9: 64-bit division, unsigned
// division of a number that it knows to be small and sign-extended (it divides 24 bits), selects
// between floats (it emits min and max, which order zeros), and integers reinterpreted as floats
// (it may fold an extension into the float instruction's SDWA operand).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>

namespace uptempo::vgpu::gfx9::test {

class RandomProgram {
 public:
  // The same seed gives the same program on every machine.
  explicit RandomProgram(uint32_t seed);

  // kernel void run(global const ulong* in, global ulong* out), for workgroups of kWorkItems: item
  // i computes out[i] from in[2 * i] and in[2 * i + 1].
  static constexpr unsigned kWorkItems = 128;
  const std::string& source() const { return source_; }
  uint64_t expected(uint64_t a, uint64_t b) const;

  static constexpr unsigned kArray = 16;
  // The state of one work-item's program.
  struct State {
    std::array<uint64_t, 18> variable;  // as bits of its type, zero-extended
    std::array<uint32_t, kArray> stack, shared;
  };

 private:
  std::string source_;
  std::function<void(State&)> body_;
};

}  // namespace uptempo::vgpu::gfx9::test
