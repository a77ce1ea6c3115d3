// Float instructions against LLVM's APFloat, in every rounding mode, with denormals kept and
// flushed, on every SIMD target.
#include <array>
#include <functional>
#include <random>
#include <string>

#include "gfx9/vector/entry.hpp"
#include "test/support/catch.hpp"
#include "test/vgpu/gfx9/llvm/llvm_float.hpp"
#include "test/vgpu/gfx9/semantics/semantics.hpp"

namespace uptempo::vgpu::gfx9::test {
namespace {

using apfloat::Bits;
using apfloat::Format;
using apfloat::Rounding;

// A register's value: a float of some format, or an integer.
enum class Kind : uint8_t { none, f16, f32, f64, i16, u16, i32, u32 };

constexpr bool is_float(Kind kind) {
  return kind == Kind::f16 || kind == Kind::f32 || kind == Kind::f64;
}
constexpr Format format(Kind kind) {
  return kind == Kind::f16 ? Format::f16 : kind == Kind::f32 ? Format::f32 : Format::f64;
}
constexpr unsigned width(Kind kind) {
  switch (kind) {
    case Kind::f16:
    case Kind::i16:
    case Kind::u16:
      return 16;
    case Kind::f64:
      return 64;
    default:
      return 32;
  }
}
constexpr Bits low(Bits value, unsigned width) {
  return width == 64 ? value : value & ((Bits{1} << width) - 1);
}

// MODE, as LLVM's AMDGPU usage guide and the ISA documents define it: rounding of float32, rounding
// of float64 and float16, then denormals likewise (inputs kept, results kept), DX10 clamp, IEEE,
// FP16_OVFL.
struct Mode {
  Rounding single = Rounding::nearest_even, other = Rounding::nearest_even;
  bool single_denormals = true, other_denormals = true, ieee = true, clamps_halves = false;

  uint32_t bits() const {
    return static_cast<uint32_t>(single) | static_cast<uint32_t>(other) << 2 |
           (single_denormals ? 0x30u : 0u) | (other_denormals ? 0xc0u : 0u) | 0x100u |
           (ieee ? 0x200u : 0u) | (clamps_halves ? 1u << 23 : 0u);
  }
  Rounding of(Format f) const { return f == Format::f32 ? single : other; }
  bool keeps_denormals(Format f) const {
    return f == Format::f32 ? single_denormals : other_denormals;
  }
};

using Operands = std::array<Bits, 4>;  // a, b, c, and the previous value of the destination

struct ModeRow {
  const char* text;
  Kind result;
  std::array<Kind, 3> sources;
  std::function<Bits(const Operands& x, const Mode& mode)>
      expected;  // receives operands whose denormals are flushed
};

Bits flushed(Format f, Bits value) {
  if (!apfloat::is_denormal(f, value)) return value;
  const unsigned sign = f == Format::f16 ? 15 : f == Format::f32 ? 31 : 63;
  return value & Bits{1} << sign;
}
Bits smallest_normal(Format f) {
  return f == Format::f16 ? Bits{1} << 10 : f == Format::f32 ? Bits{1} << 23 : Bits{1} << 52;
}
Bits negated(Format f, Bits value) {
  return value ^ Bits { 1 } << (f == Format::f16 ? 15 : f == Format::f32 ? 31 : 63);
}

template <Format kFormat>
Bits sum(const Operands& x, const Mode& mode) {
  return apfloat::add(kFormat, x[0], x[1], mode.of(kFormat));
}
template <Format kFormat>
Bits difference(const Operands& x, const Mode& mode) {
  return apfloat::add(kFormat, x[0], negated(kFormat, x[1]), mode.of(kFormat));
}
template <Format kFormat>
Bits reverse_difference(const Operands& x, const Mode& mode) {
  return apfloat::add(kFormat, x[1], negated(kFormat, x[0]), mode.of(kFormat));
}
template <Format kFormat>
Bits product(const Operands& x, const Mode& mode) {
  return apfloat::multiply(kFormat, x[0], x[1], mode.of(kFormat));
}
template <Format kFormat>
Bits fused(const Operands& x, const Mode& mode) {
  return apfloat::multiply_add(kFormat, x[0], x[1], x[2], mode.of(kFormat));
}
// With IEEE on, a signalling NaN becomes a quiet one. Otherwise it is treated like any NaN.
template <Format kFormat, bool kGreater>
Bits extreme_of(Bits a, Bits b, const Mode& mode) {
  if (mode.ieee) {
    const Bits nan = apfloat::add(kFormat, a, b, Rounding::nearest_even);
    if (apfloat::is_signalling(kFormat, a) || apfloat::is_signalling(kFormat, b)) return nan;
  }
  if (apfloat::is_nan(kFormat, a)) return b;
  if (apfloat::is_nan(kFormat, b)) return a;
  return kGreater ? apfloat::greater(kFormat, a, b) : apfloat::lesser(kFormat, a, b);
}
template <Format kFormat, bool kGreater>
Bits extreme(const Operands& x, const Mode& mode) {
  return extreme_of<kFormat, kGreater>(x[0], x[1], mode);
}
template <Format kFormat, bool kGreater>
Bits extreme3(const Operands& x, const Mode& mode) {
  return extreme_of<kFormat, kGreater>(extreme_of<kFormat, kGreater>(x[0], x[1], mode), x[2], mode);
}
// As LLVM's instruction combiner defines v_med3: the greater of the two operands other than the
// largest. A NaN among the operands gives the least, as in LLVM since release 21 ("med3 with a nan
// input acts like v_min_f32(v_min_f32(s0, s1), s2)").
template <Format kFormat>
Bits median(const Operands& x, const Mode& mode) {
  for (unsigned n = 0; n < 3; ++n) {
    if (apfloat::is_nan(kFormat, x[n])) return extreme3<kFormat, false>(x, mode);
  }
  const Bits most = apfloat::greater(kFormat, apfloat::greater(kFormat, x[0], x[1]), x[2]);
  if (apfloat::equal(kFormat, most, x[0])) return apfloat::greater(kFormat, x[1], x[2]);
  if (apfloat::equal(kFormat, most, x[1])) return apfloat::greater(kFormat, x[0], x[2]);
  return apfloat::greater(kFormat, x[0], x[1]);
}
template <Format kFormat, Rounding kRounding>
Bits integral(const Operands& x, const Mode&) {
  return apfloat::to_integral(kFormat, x[0], kRounding);
}
template <Format kFormat>
Bits scaled(const Operands& x, const Mode& mode) {
  const int by = kFormat == Format::f16 ? static_cast<int16_t>(x[1]) : static_cast<int32_t>(x[1]);
  return apfloat::scale(kFormat, x[0],
                        by < -5000  ? -5000
                        : by > 5000 ? 5000
                                    : by,
                        mode.of(kFormat));
}
template <Format kFrom, Format kTo>
Bits converted(const Operands& x, const Mode& mode) {
  return apfloat::convert(kFrom, kTo, x[0], mode.of(kTo));
}
template <Format kFrom, unsigned kWidth, bool kSigned>
Bits integer(const Operands& x, const Mode&) {
  return apfloat::to_integer(kFrom, x[0], kWidth, kSigned);
}
template <Format kTo, unsigned kWidth, bool kSigned>
Bits from_integer(const Operands& x, const Mode& mode) {
  return apfloat::from_integer(kTo, x[0], kWidth, kSigned, mode.of(kTo));
}
template <unsigned kByte>
Bits from_byte(const Operands& x, const Mode&) {
  return apfloat::from_integer(Format::f32, x[0] >> 8 * kByte & 0xff, 32, false,
                               Rounding::nearest_even);
}

constexpr Kind kH = Kind::f16, kF = Kind::f32, kD = Kind::f64, kN = Kind::none;
constexpr Format kHalf = Format::f16, kSingle = Format::f32, kDouble = Format::f64;
constexpr Rounding kNearest = Rounding::nearest_even, kUp = Rounding::up, kDown = Rounding::down,
                   kZero = Rounding::to_zero;

// clang-format off
const ModeRow kRows[] = {
    {"v_add_f32 v6, v0, v2",                     kF, {kF, kF, kN}, sum<kSingle>},
    {"v_sub_f32 v6, v0, v2",                     kF, {kF, kF, kN}, difference<kSingle>},
    {"v_subrev_f32 v6, v0, v2",                  kF, {kF, kF, kN}, reverse_difference<kSingle>},
    {"v_mul_f32 v6, v0, v2",                     kF, {kF, kF, kN}, product<kSingle>},
    {"v_fma_f32 v6, v0, v2, v4",                 kF, {kF, kF, kF}, fused<kSingle>},
    {"v_min_f32 v6, v0, v2",                     kF, {kF, kF, kN}, extreme<kSingle, false>},
    {"v_max_f32 v6, v0, v2",                     kF, {kF, kF, kN}, extreme<kSingle, true>},
    {"v_min3_f32 v6, v0, v2, v4",                kF, {kF, kF, kF}, extreme3<kSingle, false>},
    {"v_max3_f32 v6, v0, v2, v4",                kF, {kF, kF, kF}, extreme3<kSingle, true>},
    {"v_med3_f32 v6, v0, v2, v4",                kF, {kF, kF, kF}, median<kSingle>},
    {"v_trunc_f32 v6, v0",                       kF, {kF, kN, kN}, integral<kSingle, kZero>},
    {"v_ceil_f32 v6, v0",                        kF, {kF, kN, kN}, integral<kSingle, kUp>},
    {"v_floor_f32 v6, v0",                       kF, {kF, kN, kN}, integral<kSingle, kDown>},
    {"v_rndne_f32 v6, v0",                       kF, {kF, kN, kN}, integral<kSingle, kNearest>},
    {"v_ldexp_f32 v6, v0, v2",                   kF, {kF, Kind::i32, kN}, scaled<kSingle>},
    {"v_add_f64 v[6:7], v[0:1], v[2:3]",         kD, {kD, kD, kN}, sum<kDouble>},
    {"v_mul_f64 v[6:7], v[0:1], v[2:3]",         kD, {kD, kD, kN}, product<kDouble>},
    {"v_fma_f64 v[6:7], v[0:1], v[2:3], v[4:5]", kD, {kD, kD, kD}, fused<kDouble>},
    {"v_min_f64 v[6:7], v[0:1], v[2:3]",         kD, {kD, kD, kN}, extreme<kDouble, false>},
    {"v_max_f64 v[6:7], v[0:1], v[2:3]",         kD, {kD, kD, kN}, extreme<kDouble, true>},
    {"v_trunc_f64 v[6:7], v[0:1]",               kD, {kD, kN, kN}, integral<kDouble, kZero>},
    {"v_ceil_f64 v[6:7], v[0:1]",                kD, {kD, kN, kN}, integral<kDouble, kUp>},
    {"v_floor_f64 v[6:7], v[0:1]",               kD, {kD, kN, kN}, integral<kDouble, kDown>},
    {"v_rndne_f64 v[6:7], v[0:1]",               kD, {kD, kN, kN}, integral<kDouble, kNearest>},
    {"v_ldexp_f64 v[6:7], v[0:1], v2",           kD, {kD, Kind::i32, kN}, scaled<kDouble>},
    {"v_add_f16 v6, v0, v2",                     kH, {kH, kH, kN}, sum<kHalf>},
    {"v_sub_f16 v6, v0, v2",                     kH, {kH, kH, kN}, difference<kHalf>},
    {"v_subrev_f16 v6, v0, v2",                  kH, {kH, kH, kN}, reverse_difference<kHalf>},
    {"v_mul_f16 v6, v0, v2",                     kH, {kH, kH, kN}, product<kHalf>},
    {"v_fma_f16 v6, v0, v2, v4",                 kH, {kH, kH, kH}, fused<kHalf>},
    {"v_fma_legacy_f16 v6, v0, v2, v4",          kH, {kH, kH, kH}, fused<kHalf>},
    {"v_min_f16 v6, v0, v2",                     kH, {kH, kH, kN}, extreme<kHalf, false>},
    {"v_max_f16 v6, v0, v2",                     kH, {kH, kH, kN}, extreme<kHalf, true>},
    {"v_min3_f16 v6, v0, v2, v4",                kH, {kH, kH, kH}, extreme3<kHalf, false>},
    {"v_max3_f16 v6, v0, v2, v4",                kH, {kH, kH, kH}, extreme3<kHalf, true>},
    {"v_med3_f16 v6, v0, v2, v4",                kH, {kH, kH, kH}, median<kHalf>},
    {"v_trunc_f16 v6, v0",                       kH, {kH, kN, kN}, integral<kHalf, kZero>},
    {"v_ceil_f16 v6, v0",                        kH, {kH, kN, kN}, integral<kHalf, kUp>},
    {"v_floor_f16 v6, v0",                       kH, {kH, kN, kN}, integral<kHalf, kDown>},
    {"v_rndne_f16 v6, v0",                       kH, {kH, kN, kN}, integral<kHalf, kNearest>},
    {"v_ldexp_f16 v6, v0, v2",                   kH, {kH, Kind::i16, kN}, scaled<kHalf>},
    {"v_cvt_f16_f32 v6, v0",                     kH, {kF, kN, kN}, converted<kSingle, kHalf>},
    {"v_cvt_f32_f16 v6, v0",                     kF, {kH, kN, kN}, converted<kHalf, kSingle>},
    {"v_cvt_f64_f32 v[6:7], v0",                 kD, {kF, kN, kN}, converted<kSingle, kDouble>},
    {"v_cvt_f32_f64 v6, v[0:1]",                 kF, {kD, kN, kN}, converted<kDouble, kSingle>},
    {"v_cvt_i32_f32 v6, v0",                     Kind::i32, {kF, kN, kN}, integer<kSingle, 32, true>},
    {"v_cvt_u32_f32 v6, v0",                     Kind::u32, {kF, kN, kN}, integer<kSingle, 32, false>},
    {"v_cvt_i32_f64 v6, v[0:1]",                 Kind::i32, {kD, kN, kN}, integer<kDouble, 32, true>},
    {"v_cvt_u32_f64 v6, v[0:1]",                 Kind::u32, {kD, kN, kN}, integer<kDouble, 32, false>},
    {"v_cvt_i16_f16 v6, v0",                     Kind::i16, {kH, kN, kN}, integer<kHalf, 16, true>},
    {"v_cvt_u16_f16 v6, v0",                     Kind::u16, {kH, kN, kN}, integer<kHalf, 16, false>},
    {"v_cvt_f32_i32 v6, v0",                     kF, {Kind::i32, kN, kN}, from_integer<kSingle, 32, true>},
    {"v_cvt_f32_u32 v6, v0",                     kF, {Kind::u32, kN, kN}, from_integer<kSingle, 32, false>},
    {"v_cvt_f64_i32 v[6:7], v0",                 kD, {Kind::i32, kN, kN}, from_integer<kDouble, 32, true>},
    {"v_cvt_f64_u32 v[6:7], v0",                 kD, {Kind::u32, kN, kN}, from_integer<kDouble, 32, false>},
    {"v_cvt_f16_i16 v6, v0",                     kH, {Kind::i16, kN, kN}, from_integer<kHalf, 16, true>},
    {"v_cvt_f16_u16 v6, v0",                     kH, {Kind::u16, kN, kN}, from_integer<kHalf, 16, false>},
    {"v_cvt_f32_ubyte0 v6, v0",                  kF, {Kind::u32, kN, kN}, from_byte<0>},
    {"v_cvt_f32_ubyte1 v6, v0",                  kF, {Kind::u32, kN, kN}, from_byte<1>},
    {"v_cvt_f32_ubyte2 v6, v0",                  kF, {Kind::u32, kN, kN}, from_byte<2>},
    {"v_cvt_f32_ubyte3 v6, v0",                  kF, {Kind::u32, kN, kN}, from_byte<3>},
};
// clang-format on

Bits number(Kind kind, std::mt19937_64& random) {
  constexpr Bits kHalves[] = {
      0x0000, 0x8000, 0x3c00, 0xbc00, 0x3800, 0x4000, 0x4248, 0x3e00, 0x7c00, 0xfc00, 0x7e00,
      0xfe01, 0x7c01, 0xfd23, 0x0001, 0x8001, 0x0002, 0x03ff, 0x83ff, 0x0400, 0x8400, 0x0401,
      0x7bff, 0xfbff, 0x6400, 0x6401, 0x67ff, 0x5bff, 0x2e66, 0x3bff, 0x3c01, 0x1000, 0x1400};
  constexpr Bits kSingles[] = {
      0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x3f000000, 0x40000000, 0x40490fdb,
      0x3fc00000, 0x40200000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x7f800001,
      0xff812345, 0x00000001, 0x80000001, 0x007fffff, 0x807fffff, 0x00800000, 0x80800000,
      0x00800001, 0x7f7fffff, 0xff7fffff, 0x4effffff, 0x4f000000, 0xcf000000, 0x4f7fffff,
      0x4f800000, 0x33800000, 0x33800001, 0x477fe000, 0x477ff000, 0x477fefff, 0x38800000,
      0x387fe000, 0x387fefff, 0x387ff000, 0x33000000, 0x33000001, 0x32ffffff, 0x3effffff,
      0x3f7fffff, 0x3f800001, 0x4b000001, 0x4b800001, 0x4affffff, 0x3f802000, 0x3f801000,
      0x3f803000, 0x20000000, 0x1f800000, 0x00ffffff};
  constexpr Bits kDoubles[] = {
      0x0000000000000000, 0x8000000000000000, 0x3ff0000000000000, 0xbff0000000000000,
      0x3fe0000000000000, 0x4000000000000000, 0x400921fb54442d18, 0x3ff8000000000000,
      0x4004000000000000, 0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000,
      0x7ff0000000000001, 0xfff8123456789abc, 0x0000000000000001, 0x8000000000000001,
      0x800fffffffffffff, 0x0010000000000000, 0x0010000000000001, 0x7fefffffffffffff,
      0xffefffffffffffff, 0x41dfffffffc00000, 0x41dfffffffe00000, 0x41e0000000000000,
      0xc1e0000000000000, 0xc1e0000000100000, 0xc1e0000000200000, 0x41efffffffe00000,
      0x41effffffff00000, 0x41f0000000000000, 0x4330000000000001, 0x47efffffe0000000,
      0x47efffffefffffff, 0x47effffff0000000, 0x36a0000000000000, 0x3690000000000000,
      0x3690000000000001, 0x368fffffffffffff, 0x3810000000000000, 0x380fffffe0000000,
      0x380ffffff0000000, 0x3ff0000010000000, 0x3ff0000030000000, 0x3fdfffffffffffff,
      0x3fefffffffffffff};
  const auto pick = [&](const auto& values) { return values[random() % std::size(values)]; };
  const unsigned way = random() % 8;
  switch (kind) {
    case Kind::none:
      return random();
    case Kind::f16:
      return way < 4 ? pick(kHalves) : random() & 0xffff;
    case Kind::f32:
      // Similar exponents, so that sums round; and any exponents.
      return way < 4   ? pick(kSingles)
             : way < 7 ? 0x3e000000 + (random() & 0x81ffffff)
                       : random() & 0xffffffff;
    case Kind::f64:
      return way < 4   ? pick(kDoubles)
             : way < 7 ? 0x3fc0000000000000 + (random() & 0x803fffffffffffff)
                       : random();
    case Kind::i16:
    case Kind::u16: {
      constexpr Bits kShorts[] = {0,     1,     2,      10,     14,     15,     24,     25,
                                  0x7ff, 0x801, 0x1001, 0x7fff, 0x8000, 0xfff0, 0xffe8, 0xffff};
      return way < 5 ? pick(kShorts) : random() & 0xffff;
    }
    case Kind::i32:
    case Kind::u32: {
      constexpr Bits kInts[] = {
          0,          1,          2,          23,         24,         126,        127,
          149,        150,        277,        1023,       1074,       2098,       0x7fffffff,
          0x80000000, 0x80000001, 0xffffffff, 0xfffffffe, 0xffffff81, 0xffffff6a, 0xfffffbce,
          0x01000001, 0x01000003, 0x7fffffbf, 0x7fffffc0, 0xffffff7f, 0xffffff80};
      return way < 5 ? pick(kInts) : random() & 0xffffffff;
    }
  }
  return 0;
}

bool same(Kind kind, Bits got, Bits want) {
  if (got == want) return true;
  return is_float(kind) && apfloat::is_nan(format(kind), got) &&
         apfloat::is_nan(format(kind), want);
}

// True if a flushed result may differ: at the smallest normal number, "tiny before rounding" and
// "tiny after rounding" disagree, and IEEE 754 allows both.
bool is_border(Kind kind, Bits exact, const Mode& mode) {
  const Format f = format(kind);
  return !mode.keeps_denormals(f) && low(exact, width(kind) - 1) == smallest_normal(f);
}

// FP16_OVFL by LLVM's AMDGPU usage guide: an infinite operand or a division by zero still gives an
// infinity; any other overflow becomes the largest float16. None of the instructions here divides.
Bits clamped(const ModeRow& row, const Operands& x, Bits result) {
  if (row.result != Kind::f16 || !apfloat::is_infinite(Format::f16, result)) return result;
  for (unsigned n = 0; n < 3; ++n) {
    const Kind kind = row.sources[n];
    if (is_float(kind) && apfloat::is_infinite(format(kind), low(x[n], width(kind)))) return result;
  }
  return result & 0x8000 ? 0xfbff : 0x7bff;
}

void check(const ModeRow& row, const Mode& mode, LaneBench& bench, std::mt19937_64& random) {
  const bool wide = row.result == Kind::f64;
  std::array<Operands, kLanes> operands;
  std::array<Bits, kLanes> want;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    Operands seen;
    for (unsigned n = 0; n < 3; ++n) {
      const Kind kind = row.sources[n];
      operands[lane][n] = seen[n] = number(kind, random);
      if (is_float(kind) && !mode.keeps_denormals(format(kind)))
        seen[n] = flushed(format(kind), seen[n]);
    }
    operands[lane][3] = seen[3] = random();
    want[lane] = row.expected(seen, mode);
    if (mode.clamps_halves) want[lane] = clamped(row, seen, want[lane]);
  }
  const vector::Simd best = vector::simd_in_use();
  for (const vector::Simd simd :
       {vector::Simd::avx512, vector::Simd::avx2, vector::Simd::baseline}) {
    if (!vector::use_simd(simd)) continue;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      for (unsigned n = 0; n < 4; ++n) {
        // The bits above a short operand are ignored.
        Bits value = operands[lane][n];
        if (n < 3 && width(row.sources[n]) == 16) value |= 0xdead0000;
        bench.registers[2 * n].lane[lane] = static_cast<uint32_t>(value);
        bench.registers[2 * n + 1].lane[lane] = static_cast<uint32_t>(value >> 32);
      }
    }
    bench.wave.mode = mode.bits();
    bench.wave.set_exec(~uint64_t{0});
    bench.run(row.text);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      Bits got = bench.registers[6].lane[lane];
      if (wide) got |= Bits{bench.registers[7].lane[lane]} << 32;
      got = low(got, width(row.result));
      Bits result = want[lane];
      if (is_float(row.result) && !mode.keeps_denormals(format(row.result))) {
        if (is_border(row.result, result, mode) && flushed(format(row.result), got) == got) {
          // Zero or the smallest normal number, with the right sign.
          if (got == result || low(got, width(row.result) - 1) == 0) continue;
        }
        result = flushed(format(row.result), result);
      }
      if (!same(row.result, got, result)) {
        const Operands& x = operands[lane];
        CAPTURE(row.text, mode.bits(), static_cast<unsigned>(simd), x[0], x[1], x[2]);
        CHECK(got == result);
        vector::use_simd(best);
        return;
      }
    }
  }
  vector::use_simd(best);
}

std::vector<Mode> modes() {
  std::vector<Mode> all;
  for (const Rounding single : {kNearest, kUp, kDown, kZero}) {
    for (const bool denormals : {true, false}) {
      for (const bool ieee : {true, false}) {
        // The two fields differ, so that using the wrong one is detected.
        const auto other =
            static_cast<Rounding>((static_cast<unsigned>(single) + (ieee ? 0 : 1)) % 4);
        all.push_back({single, other, denormals, ieee ? denormals : !denormals, ieee});
      }
    }
  }
  for (const Rounding half : {kNearest, kUp, kDown, kZero}) {
    for (const bool denormals : {true, false})
      all.push_back({kNearest, half, denormals, denormals, true, true});
  }
  return all;
}

}  // namespace

TEST_CASE("float instructions round and flush as APFloat does, in every MODE") {
  LaneBench bench;
  std::mt19937_64 random(11);
  for (const ModeRow& row : kRows) {
    for (const Mode& mode : modes()) {
      for (unsigned round = 0; round < 6; ++round) check(row, mode, bench, random);
    }
    SUCCEED(row.text);
  }
}

}  // namespace uptempo::vgpu::gfx9::test
