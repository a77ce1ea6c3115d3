#include "test/vgpu/gfx9/llvm/llvm_float.hpp"

#include <llvm/ADT/APFloat.h>
#include <llvm/ADT/APInt.h>
#include <llvm/ADT/APSInt.h>
#include <llvm/Config/llvm-config.h>

namespace uptempo::vgpu::gfx9::test::apfloat {
namespace {

const llvm::fltSemantics& semantics(Format format) {
  switch (format) {
    case Format::f16:
      return llvm::APFloat::IEEEhalf();
    case Format::f32:
      return llvm::APFloat::IEEEsingle();
    case Format::f64:
      return llvm::APFloat::IEEEdouble();
#if LLVM_VERSION_MAJOR >= 19
    case Format::fp8:
      return llvm::APFloat::Float8E4M3FNUZ();
    case Format::bf8:
      return llvm::APFloat::Float8E5M2FNUZ();
#else
    case Format::fp8:
    case Format::bf8:
      break;
#endif
  }
  return llvm::APFloat::Bogus();
}
unsigned width(Format format) {
  switch (format) {
    case Format::f16:
      return 16;
    case Format::f32:
      return 32;
    case Format::f64:
      return 64;
    case Format::fp8:
    case Format::bf8:
      break;
  }
  return 8;
}

llvm::APFloat number(Format format, Bits bits) {
  return {semantics(format), llvm::APInt(width(format), bits)};
}
Bits bits(const llvm::APFloat& value) { return value.bitcastToAPInt().getZExtValue(); }

llvm::RoundingMode mode(Rounding rounding) {
  switch (rounding) {
    case Rounding::nearest_even:
      return llvm::RoundingMode::NearestTiesToEven;
    case Rounding::up:
      return llvm::RoundingMode::TowardPositive;
    case Rounding::down:
      return llvm::RoundingMode::TowardNegative;
    case Rounding::to_zero:
      return llvm::RoundingMode::TowardZero;
  }
  return llvm::RoundingMode::Invalid;
}

}  // namespace

Bits add(Format format, Bits a, Bits b, Rounding rounding) {
  llvm::APFloat result = number(format, a);
  result.add(number(format, b), mode(rounding));
  return bits(result);
}
Bits multiply(Format format, Bits a, Bits b, Rounding rounding) {
  llvm::APFloat result = number(format, a);
  result.multiply(number(format, b), mode(rounding));
  return bits(result);
}
Bits divide(Format format, Bits a, Bits b, Rounding rounding) {
  llvm::APFloat result = number(format, a);
  result.divide(number(format, b), mode(rounding));
  return bits(result);
}
Bits multiply_add(Format format, Bits a, Bits b, Bits c, Rounding rounding) {
  llvm::APFloat result = number(format, a);
  result.fusedMultiplyAdd(number(format, b), number(format, c), mode(rounding));
  return bits(result);
}
Bits to_integral(Format format, Bits a, Rounding rounding) {
  llvm::APFloat result = number(format, a);
  result.roundToIntegral(mode(rounding));
  return bits(result);
}
Bits scale(Format format, Bits a, int exponent, Rounding rounding) {
  return bits(llvm::scalbn(number(format, a), exponent, mode(rounding)));
}
Bits convert(Format from, Format to, Bits a, Rounding rounding) {
  llvm::APFloat result = number(from, a);
  bool loses = false;
  result.convert(semantics(to), mode(rounding), &loses);
  return bits(result);
}

Bits lesser(Format format, Bits a, Bits b) {
  const llvm::APFloat x = number(format, a), y = number(format, b);
  if (x.isZero() && y.isZero()) return x.isNegative() ? a : b;
  return bits(llvm::minnum(x, y));
}
Bits greater(Format format, Bits a, Bits b) {
  const llvm::APFloat x = number(format, a), y = number(format, b);
  if (x.isZero() && y.isZero()) return x.isNegative() ? b : a;
  return bits(llvm::maxnum(x, y));
}

Bits to_integer(Format format, Bits a, unsigned result_width, bool is_signed) {
  llvm::APSInt result(result_width, !is_signed);
  bool exact = false;
  number(format, a).convertToInteger(result, llvm::RoundingMode::TowardZero, &exact);
  return result.getZExtValue();
}
Bits from_integer(Format format, Bits value, unsigned value_width, bool is_signed,
                  Rounding rounding) {
  llvm::APFloat result(semantics(format));
  result.convertFromAPInt(llvm::APInt(value_width, value), is_signed, mode(rounding));
  return bits(result);
}

Bits significand(Format format, Bits a) {
  int ignored = 0;
  return bits(llvm::frexp(number(format, a), ignored, llvm::RoundingMode::NearestTiesToEven));
}
int exponent(Format format, Bits a) {
  int result = 0;
  llvm::frexp(number(format, a), result, llvm::RoundingMode::NearestTiesToEven);
  return result;
}

bool equal(Format format, Bits a, Bits b) {
  return number(format, a).compare(number(format, b)) == llvm::APFloat::cmpEqual;
}
bool is_nan(Format format, Bits a) { return number(format, a).isNaN(); }
bool is_infinite(Format format, Bits a) { return number(format, a).isInfinity(); }
bool is_signalling(Format format, Bits a) { return number(format, a).isSignaling(); }
bool is_denormal(Format format, Bits a) { return number(format, a).isDenormal(); }
bool is_finite_nonzero(Format format, Bits a) { return number(format, a).isFiniteNonZero(); }

}  // namespace uptempo::vgpu::gfx9::test::apfloat
