// IEEE 754 arithmetic of LLVM's APFloat, which computes in software: an oracle of float
// instructions in every rounding mode. Numbers are bit patterns.
#pragma once

#include <cstdint>

namespace uptempo::vgpu::gfx9::test::apfloat {

// fp8, bf8: gfx942's, from LLVM 19 on (their rules changed before).
enum class Format : uint8_t { f16, f32, f64, fp8, bf8 };
enum class Rounding : uint8_t { nearest_even, up, down, to_zero };  // as in MODE

using Bits = uint64_t;

Bits add(Format format, Bits a, Bits b, Rounding rounding);
Bits multiply(Format format, Bits a, Bits b, Rounding rounding);
Bits divide(Format format, Bits a, Bits b, Rounding rounding);
Bits multiply_add(Format format, Bits a, Bits b, Bits c, Rounding rounding);  // rounds once
Bits to_integral(Format format, Bits a, Rounding rounding);
Bits scale(Format format, Bits a, int exponent, Rounding rounding);  // a * 2^exponent
Bits convert(Format from, Format to, Bits a, Rounding rounding);
// If one operand is a NaN, returns the other one; -0 is below +0.
Bits lesser(Format format, Bits a, Bits b);
Bits greater(Format format, Bits a, Bits b);
// Truncates and saturates; NaN gives 0.
Bits to_integer(Format format, Bits a, unsigned width, bool is_signed);
Bits from_integer(Format format, Bits value, unsigned width, bool is_signed, Rounding rounding);
// Significand in [0.5, 1) and exponent, both as the instructions give them for finite numbers other
// than 0.
Bits significand(Format format, Bits a);
int exponent(Format format, Bits a);

// Compares numbers: zeros are equal, a NaN equals nothing.
bool equal(Format format, Bits a, Bits b);
bool is_nan(Format format, Bits a);
bool is_infinite(Format format, Bits a);
bool is_signalling(Format format, Bits a);
bool is_denormal(Format format, Bits a);
bool is_finite_nonzero(Format format, Bits a);

}  // namespace uptempo::vgpu::gfx9::test::apfloat
