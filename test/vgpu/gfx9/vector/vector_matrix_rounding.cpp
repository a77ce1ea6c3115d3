// The order of additions and the rounding of float matrix instructions. AMD publishes neither. The
// reference follows the statements of MMA-Sim, a model that its authors compared with hardware, for
// CDNA1, CDNA2 and CDNA3 (github.com/microsoft/MMA-Sim, commit c785138, mmasim/simulator/amd.py;
// arXiv 2511.10909).
#include <algorithm>
#include <cmath>
#include <span>
#include <sstream>

#include "test/support/catch.hpp"
#include "test/vgpu/gfx9/matrix/layouts.hpp"
#include "test/vgpu/gfx9/vector/vector_machine.hpp"

namespace uptempo::vgpu::gfx9::test {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;

double value8(unsigned fraction_bits, int bias, u64 encoded) {
  const auto exponent = static_cast<int>((encoded & 0x7f) >> fraction_bits);
  const u64 fraction = encoded & ((u64{1} << fraction_bits) - 1);
  const u64 significand = fraction | (exponent != 0 ? u64{1} << fraction_bits : 0);
  const double magnitude =
      std::ldexp(significand, std::max(exponent, 1) - bias - static_cast<int>(fraction_bits));
  return (encoded & 0x80) != 0 ? -magnitude : magnitude;
}

double value(Element element, u64 encoded) {
  switch (element) {
    case Element::fp8:
      return value8(3, 8, encoded);
    case Element::bf8:
      return value8(2, 16, encoded);
    case Element::xf32:
      return static_cast<double>(f32(encoded >> 13 << 13));
    case Element::f64:
      return f64(encoded);
    case Element::f32:
      return static_cast<double>(f32(encoded));
    case Element::f16:
      return f16(encoded);
    default:
      return static_cast<double>(f32(encoded << 16));
  }
}

// A float of the type: its exponent field is `exponent` + [0, spread), sign and fraction are
// random.
u64 random_float(VectorMachine& m, Element element, unsigned exponent, unsigned spread) {
  const unsigned fraction_bits = element == Element::f64                               ? 52
                                 : element == Element::f32 || element == Element::xf32 ? 23
                                 : element == Element::f16                             ? 10
                                 : element == Element::bf16                            ? 7
                                 : element == Element::fp8                             ? 3
                                                                                       : 2;
  const u64 wide = static_cast<u64>(m.random()) << 32 | m.random();
  const u64 field = exponent + (spread == 0 ? 0 : m.random() % spread);
  const u64 magnitude = (wide & ((u64{1} << fraction_bits) - 1)) | field << fraction_bits;
  // 8-bit floats have no negative zero; its bits are the NaN.
  const u64 sign = magnitude == 0 ? 0 : m.random() >> 31;
  return magnitude | sign << (width_bits(element) - 1);
}

unsigned one_exponent(Element element) {
  return element == Element::f64   ? 1023
         : element == Element::f16 ? 15
         : element == Element::fp8 ? 8
         : element == Element::bf8 ? 16
                                   : 127;
}

void fill(VectorMachine& m, unsigned first, unsigned registers, Element element, unsigned exponent,
          unsigned spread) {
  const unsigned width = width_bits(element);
  for (unsigned reg = 0; reg < registers; reg += width == 64 ? 2 : 1) {
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      u64 bits = 0;
      for (unsigned at = 0; at < std::max(width, 32u); at += width)
        bits |= random_float(m, element, exponent, spread) << at;
      m.registers[first + reg].lane[lane] = static_cast<u32>(bits);
      if (width == 64) m.registers[first + reg + 1].lane[lane] = static_cast<u32>(bits >> 32);
    }
  }
}

// Number of products of 16-bit types that are added in pairs before they are added to the result.
unsigned added_together(const MatrixInstruction& what) {
  if (what.a_type == Element::f16) return 4;
  if (what.a_type == Element::bf16) return what.name.ends_with("_1k") ? 4 : 2;
  return 1;
}

// CDNA2: denormals of 16-bit types and of their sums are flushed.
bool flushes(const MatrixInstruction& what) {
  return what.target == Target::gfx90a &&
         (what.a_type == Element::f16 || what.a_type == Element::bf16);
}
float flushed_sum(float x) { return std::fabs(x) < 0x1p-126f ? x * 0.0f : x; }

float pairwise(const std::vector<float>& a, const std::vector<float>& b, unsigned first,
               unsigned count, bool flush) {
  float sum = 0;
  if (count == 1) {
    sum = std::fma(a[first], b[first], 0.0f);
  } else {
    const float low = pairwise(a, b, first, count / 2, flush);
    sum = low + pairwise(a, b, first + count / 2, count / 2, flush);
  }
  return flush ? flushed_sum(sum) : sum;
}

// CDNA3: number of products that are added at once; 0: each is a fused addition.
unsigned fused_together(const MatrixInstruction& what) {
  if (what.target != Target::gfx942) return 0;
  switch (what.a_type) {
    case Element::f16:
    case Element::bf16:
      return std::min(8u, what.k);
    case Element::xf32:
      return 4;
    case Element::fp8:
    case Element::bf8:
      return 16;
    default:
      return 0;
  }
}

// A number as significand and exponent. The significand of a denormal is below 1.
struct Parts {
  double significand = 0;
  int exponent = 0;
};
Parts parts(double x, Element element) {
  if (x == 0) return {0, -126};
  const int smallest = element == Element::f16   ? -14
                       : element == Element::fp8 ? -7
                       : element == Element::bf8 ? -15
                                                 : -126;
  const int exponent = std::max(std::ilogb(x), smallest);
  return {std::ldexp(x, -exponent), exponent};
}

// Aligned to the largest exponent, truncated to 24 bits after the point, and added.
Parts truncated_sum(const std::vector<Parts>& all) {
  Parts sum{0, all[0].exponent};
  for (const Parts& each : all) sum.exponent = std::max(sum.exponent, each.exponent);
  for (const Parts& each : all) {
    sum.significand += std::ldexp(
        std::trunc(std::ldexp(each.significand, 24 + each.exponent - sum.exponent)), -24);
  }
  return sum;
}
double rounded_down(const Parts& x, int exponent, int bits) {
  return std::ldexp(std::floor(std::ldexp(x.significand, bits + x.exponent - exponent)), -bits);
}

float fused_group(const MatrixInstruction& what, const double* a, const double* b, float c,
                  unsigned count) {
  double rough = static_cast<double>(c);
  std::vector<Parts> products;
  for (unsigned k = 0; k < count; ++k) {
    rough += a[k] * b[k];
    const Parts x = parts(a[k], what.a_type), y = parts(b[k], what.b_type);
    products.push_back({x.significand * y.significand, x.exponent + y.exponent});
  }
  if (!std::isfinite(rough)) return static_cast<float>(rough);
  const Parts addend = parts(static_cast<double>(c), Element::f32);
  Parts sum;
  const bool by_parity = width_bits(what.a_type) == 8;
  if (by_parity) {
    std::vector<Parts> half[2];
    for (unsigned k = 0; k < count; ++k) half[k % 2].push_back(products[k]);
    const Parts even = truncated_sum(half[0]), odd = truncated_sum(half[1]);
    sum.exponent = std::max(even.exponent, odd.exponent);
    sum.significand = rounded_down(even, sum.exponent, 24) + rounded_down(odd, sum.exponent, 24);
  } else {
    sum = truncated_sum(products);
  }
  const int exponent = std::max(sum.exponent, addend.exponent);
  const double s = rounded_down(sum, exponent, 31);
  const bool ignored = by_parity && addend.exponent < exponent - 25;
  const double from_c = ignored ? 0 : rounded_down(addend, exponent, 24);
  return static_cast<float>(std::ldexp(s + from_c, exponent));
}

u64 expected(const MatrixInstruction& what, const std::vector<double>& a,
             const std::vector<double>& b, double c) {
  if (what.out == Element::f64) {
    double sum = c;
    for (unsigned k = 0; k < what.k; ++k) sum = std::fma(a[k], b[k], sum);
    return bits(sum);
  }
  if (const unsigned group = fused_together(what); group != 0) {
    auto sum = static_cast<float>(c);
    for (unsigned k = 0; k < what.k; k += group) sum = fused_group(what, &a[k], &b[k], sum, group);
    return bits(sum);
  }
  std::vector<float> x(a.begin(), a.end()), y(b.begin(), b.end());
  auto sum = static_cast<float>(c);
  const bool flush = flushes(what);
  if (flush) {
    const float smallest = what.a_type == Element::f16 ? 0x1p-14f : 0x1p-126f;
    for (std::vector<float>* const inputs : {&x, &y})
      for (float& input : *inputs)
        if (std::fabs(input) < smallest) input = 0;
    if (std::fabs(sum) < 0x1p-126f) sum = 0;
  }
  const unsigned group = added_together(what);
  for (unsigned k = 0; k < what.k; k += group) {
    if (group == 1) {
      sum = std::fma(x[k], y[k], sum);
    } else {
      sum = sum + pairwise(x, y, k, group, flush);
    }
    if (flush) sum = flushed_sum(sum);
  }
  return bits(sum);
}

// Executes with the present registers of A, B and C. Returns the first difference from the
// reference and the number of differences.
std::string difference(const MatrixInstruction& what, VectorMachine& m) {
  const Files files{.a = 0, .b = 0, .cd = 1};
  const unsigned file = kFileRegisters;
  const std::vector<Vgpr> before = m.registers;
  m.run(decode(encode(what, files, 0, 0, 0), what.target));
  std::ostringstream text;
  unsigned wrong = 0;
  for (unsigned block = 0; block < what.blocks; ++block) {
    for (unsigned i = 0; i < what.m; ++i) {
      for (unsigned j = 0; j < what.n; ++j) {
        std::vector<double> a, b;
        for (unsigned k = 0; k < what.k; ++k) {
          a.push_back(
              value(what.a_type, entry_bits(before, kA, what.a_type, what.a[0].at(block, i, k))));
          b.push_back(
              value(what.b_type, entry_bits(before, kB, what.b_type, what.b[0].at(block, k, j))));
        }
        const double c =
            value(what.out, entry_bits(before, kC + file, what.out, what.c[0].at(block, i, j)));
        const u64 want = expected(what, a, b, c);
        const u64 got = entry_bits(m.registers, kD + file, what.out, what.d[0].at(block, i, j));
        if (got == want || wrong++ != 0) continue;
        text << "D[" << i << "][" << j << "] of block " << block << ": got " << value(what.out, got)
             << ", expected " << value(what.out, want) << "; ";
      }
    }
  }
  if (wrong != 0) text << wrong << " entries of D differ";
  return text.str();
}

// Runs every float instruction on every SIMD target; `prepare` fills the operands.
template <class Prepare>
void check_all(Prepare prepare) {
  const std::vector<MatrixInstruction> layouts = read_layouts();
  const vector::Simd best = vector::simd_in_use();
  unsigned checked = 0;
  for (const vector::Simd simd : simd_targets()) {
    vector::use_simd(simd);
    for (const MatrixInstruction& what : layouts) {
      if (what.a_type == Element::i8 || what.sparse) continue;  // sparse: no source
      VectorMachine m(static_cast<u32>(what.name.size() + what.k));
      if (!prepare(what, m)) continue;
      ++checked;
      const std::string text = difference(what, m);
      CAPTURE(name(simd), name(what.target), what.name);
      CHECK(text == "");
    }
  }
  vector::use_simd(best);
  CHECK(checked > 10);
}

}  // namespace

TEST_CASE("float matrix instructions add in the order and round as MMA-Sim states") {
  check_all([](const MatrixInstruction& what, VectorMachine& m) {
    fill(m, kA, what.registers[0], what.a_type, one_exponent(what.a_type) - 3, 6);
    fill(m, kB, what.registers[1], what.b_type, one_exponent(what.b_type) - 3, 6);
    fill(m, kC + kFileRegisters, what.registers[2], what.out, one_exponent(what.out) - 3, 8);
    return true;
  });
}

// Products and addends whose exponents differ so much that alignment drops bits, or all of them.
TEST_CASE("matrix instructions of gfx942 drop the bits that MMA-Sim states") {
  check_all([](const MatrixInstruction& what, VectorMachine& m) {
    if (fused_together(what) == 0) return false;
    const unsigned spread = what.a_type == Element::fp8   ? 14
                            : what.a_type == Element::f16 ? 28
                                                          : 30;
    fill(m, kA, what.registers[0], what.a_type,
         width_bits(what.a_type) < 16 || spread == 28 ? 1 : 112, spread);
    fill(m, kB, what.registers[1], what.b_type, one_exponent(what.b_type) - 4, 8);
    fill(m, kC + kFileRegisters, what.registers[2], what.out, 127 - 40, 80);
    return true;
  });
}

// PyTorch's "Numerical accuracy" note: among the AMD GPUs that it supports, only MI200 (gfx90a)
// flushes, and only in float16 and bfloat16 instructions.
TEST_CASE(
    "matrix instructions keep denormals of float32 and float64, and gfx908 those of 16-bit types") {
  check_all([](const MatrixInstruction& what, VectorMachine& m) {
    if (flushes(what)) return false;
    fill(m, kA, what.registers[0], what.a_type, 0, 0);
    fill(m, kB, what.registers[1], what.b_type, one_exponent(what.b_type) - 1, 3);
    fill(m, kC + kFileRegisters, what.registers[2], what.out, 0, 0);
    return true;
  });
}

// PyTorch's note and MIOpen's page on MI200: those of inputs and outputs become zero.
TEST_CASE("matrix instructions of gfx90a on 16-bit floats flush denormal inputs and sums") {
  for (const unsigned exponent : {0u, 1u}) {  // of A: only denormals; the smallest normal numbers
    check_all([exponent](const MatrixInstruction& what, VectorMachine& m) {
      if (!flushes(what)) return false;
      fill(m, kA, what.registers[0], what.a_type, exponent, exponent + 1);
      fill(m, kB, what.registers[1], what.b_type, one_exponent(what.b_type) - 4, 4);
      fill(m, kC + kFileRegisters, what.registers[2], what.out, 0, 2);
      return true;
    });
  }
}

// A matrix of denormals times ones is zero, and not a sum of denormals.
TEST_CASE("a product of denormal halves and ones is 0 on gfx90a, and not on gfx908") {
  for (const Target target : {Target::gfx90a, Target::gfx908}) {
    for (const MatrixInstruction& what : read_layouts()) {
      if (what.target != target || what.a_type != Element::f16) continue;
      CAPTURE(what.name);
      VectorMachine m(1);
      for (unsigned reg = 0; reg < what.registers[0]; ++reg)
        m.registers[kA + reg] = m.registers[kB + reg] = {};
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        for (unsigned reg = 0; reg < what.registers[0]; ++reg) {
          m.registers[kA + reg].lane[lane] = 0x03ff03ff;
          m.registers[kB + reg].lane[lane] = 0x3c003c00;
        }
        for (unsigned reg = 0; reg < what.registers[2]; ++reg)
          m.registers[kC + kFileRegisters + reg].lane[lane] = 0;
      }
      m.run(decode(encode(what, {.a = 0, .b = 0, .cd = 1}, 0, 0, 0), what.target));
      const double entry = value(
          what.out, entry_bits(m.registers, kD + kFileRegisters, what.out, what.d[0].at(0, 0, 0)));
      CHECK(entry == (target == Target::gfx90a ? 0 : what.k * std::ldexp(1023.0, -24)));
    }
  }
}

// The rules of MFMA and SMFMAC instructions in AMD's CDNA ISA manual: with FP16_OVFL, F32 and I32
// results are clamped on overflow. All entries of A are equal, and those of B and C.
TEST_CASE("with FP16_OVFL, matrix results of gfx942 that overflow are the largest number") {
  struct Uniform {
    u32 a, b, c, clamped;
  };
  constexpr u32 kHuge = 0x71800000, kMinus = 0x80000000, kInfinity = 0x7f800000, kMax = 0x7f7fffff;
  constexpr Uniform kFloats[] = {{kHuge, kHuge, 0, kMax},  // 2^100
                                 {kHuge | kMinus, kHuge, kMax, kMax | kMinus},
                                 {kInfinity, kHuge, 0, kInfinity},
                                 {kHuge, kInfinity | kMinus, 0, kInfinity | kMinus},
                                 {kHuge, kHuge, kInfinity, kInfinity}};
  constexpr Uniform kIntegers[] = {{0x01010101, 0x01010101, 0x7fffffff, 0x7fffffff},
                                   {~0u, 0x01010101, 0x80000000, 0x80000000}};
  unsigned checked = 0;
  const vector::Simd best = vector::simd_in_use();
  for (const vector::Simd simd : simd_targets()) {
    vector::use_simd(simd);
    for (const MatrixInstruction& what : read_layouts()) {
      const bool integer = what.a_type == Element::i8, halves = what.a_type == Element::bf16;
      // Products of the other types do not exceed float32, or the result is a float64.
      if (!integer && !halves && what.a_type != Element::f32 && what.a_type != Element::xf32)
        continue;
      for (const bool clamps : {false, true}) {
        for (const Uniform& each : integer ? std::span<const Uniform>(kIntegers) : kFloats) {
          VectorMachine m(1);
          if (clamps) m.wave.mode |= 1u << 23;
          const auto set = [&](unsigned first, unsigned registers, u32 bits) {
            for (unsigned reg = first; reg < first + registers; ++reg)
              for (u32& lane : m.registers[reg].lane) lane = bits;
          };
          const auto input = [&](u32 bits) { return halves ? bits | bits >> 16 : bits; };
          set(kA, what.registers[0], input(each.a));
          set(kB, what.registers[1], input(each.b));
          set((what.sparse ? kD : kC) + kFileRegisters, what.registers[2], each.c);
          m.run(decode(encode(what, {.a = 0, .b = 0, .cd = 1}, 0, 0, 0), what.target));
          u32 want = each.clamped;
          if (!clamps || what.target != Target::gfx942) {
            const u32 products = what.sparse ? what.k / 2 : what.k;
            if (integer) want = each.a == ~0u ? each.c - products : each.c + products;
            if (!integer) want = (want & kMinus) | kInfinity;
          }
          CAPTURE(name(simd), name(what.target), what.name, clamps, each.a, each.b, each.c);
          for (unsigned reg = 0; reg < what.registers[3]; ++reg)
            for (const u32 lane : m.registers[kD + kFileRegisters + reg].lane)
              REQUIRE(lane == want);
          ++checked;
        }
      }
    }
  }
  vector::use_simd(best);
  CHECK(checked > 100);
}

}  // namespace uptempo::vgpu::gfx9::test
