// Packed and mixed-precision float instructions with every selection and sign, against APFloat.
// LLVM's syntax of modifiers (AMDGPUModifierSyntax) defines op_sel, op_sel_hi, neg_lo and neg_hi.
#include <fmt/format.h>

#include <array>
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
using u32 = uint32_t;

struct Modifiers {
  unsigned op_sel, op_sel_hi, neg, neg_hi;

  std::string text(unsigned sources, const char* low, const char* high) const {
    const auto list = [&](const char* name, unsigned bits) {
      std::string out = fmt::format(" {}:[{}", name, bits & 1);
      for (unsigned i = 1; i < sources; ++i) out += fmt::format(",{}", bits >> i & 1);
      return out + "]";
    };
    return list("op_sel", op_sel) + list("op_sel_hi", op_sel_hi) + list(low, neg) +
           list(high, neg_hi);
  }
};
Modifiers any_modifiers(unsigned sources, std::mt19937_64& random) {
  const auto bits = [&] { return static_cast<unsigned>(random() >> (64 - sources)); };
  return {bits(), bits(), bits(), bits()};
}

Bits half_number(std::mt19937_64& random) {
  constexpr Bits kEdges[] = {0x0000, 0x8000, 0x3c00, 0xbc00, 0x3800, 0x4248, 0x7c00, 0xfc00,
                             0x7e00, 0x7c01, 0x0001, 0x8001, 0x03ff, 0x0400, 0x8400, 0x7bff,
                             0xfbff, 0x6401, 0x2e66, 0x3bff, 0x3c01, 0x1400};
  return random() % 2 != 0 ? kEdges[random() % std::size(kEdges)] : random() & 0xffff;
}
Bits single_number(std::mt19937_64& random) {
  constexpr Bits kEdges[] = {0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x3f000000, 0x7f800000,
                             0xff800000, 0x7fc00000, 0x7f7fffff, 0x00800000, 0x00000001, 0x807fffff,
                             0x33800000, 0x38800000, 0x477fe000, 0x477ff000};
  switch (random() % 4) {
    case 0:
      return kEdges[random() % std::size(kEdges)];
    case 1:
      return random() & 0xffffffff;
    default:
      return 0x3e000000 + (random() & 0x81ffffff);
  }
}
// A register of two halves, or a float32.
Bits number(bool halves, std::mt19937_64& random) {
  return halves ? half_number(random) | half_number(random) << 16 : single_number(random);
}

bool same(Format f, Bits got, Bits want) {
  return got == want || (apfloat::is_nan(f, got) && apfloat::is_nan(f, want));
}

constexpr std::array kRoundings{Rounding::nearest_even, Rounding::up, Rounding::down,
                                Rounding::to_zero};

struct Bench : LaneBench {
  using LaneBench::LaneBench;
  // Rounding of float32, then of float64 and float16; denormals kept, DX10 clamp, IEEE; FP16_OVFL.
  void set_mode(Rounding single, Rounding other, bool single_denormals = true,
                bool clamps_halves = false) {
    wave.mode = static_cast<u32>(single) | static_cast<u32>(other) << 2 |
                (single_denormals ? 0x3f0u : 0x3c0u) | (clamps_halves ? 1u << 23 : 0u);
  }
};

// FP16_OVFL: a half that overflowed is the largest one, unless an operand was infinite (LLVM's
// AMDGPU usage guide).
Bits clamped(Bits half, Format operands_format, const std::array<Bits, 3>& operands) {
  if (!apfloat::is_infinite(Format::f16, half)) return half;
  for (const Bits operand : operands)
    if (apfloat::is_infinite(operands_format, operand)) return half;
  return half & 0x8000 ? 0xfbff : 0x7bff;
}

using Operation = Bits (*)(Format f, const std::array<Bits, 3>& x, Rounding rounding);

struct Packed {
  const char* name;
  unsigned sources;
  bool halves;  // else two float32 in a pair of registers
  Operation operation;
};
Bits sum(Format f, const std::array<Bits, 3>& x, Rounding r) {
  return apfloat::add(f, x[0], x[1], r);
}
Bits product(Format f, const std::array<Bits, 3>& x, Rounding r) {
  return apfloat::multiply(f, x[0], x[1], r);
}
Bits fused(Format f, const std::array<Bits, 3>& x, Rounding r) {
  return apfloat::multiply_add(f, x[0], x[1], x[2], r);
}
template <bool kGreater>
Bits extreme(Format f, const std::array<Bits, 3>& x, Rounding r) {
  if (apfloat::is_signalling(f, x[0]) || apfloat::is_signalling(f, x[1]))
    return apfloat::add(f, x[0], x[1], r);
  if (apfloat::is_nan(f, x[0])) return x[1];
  if (apfloat::is_nan(f, x[1])) return x[0];
  return kGreater ? apfloat::greater(f, x[0], x[1]) : apfloat::lesser(f, x[0], x[1]);
}
constexpr Packed kPacked[] = {
    {"v_pk_add_f16", 2, true, sum},           {"v_pk_mul_f16", 2, true, product},
    {"v_pk_fma_f16", 3, true, fused},         {"v_pk_min_f16", 2, true, extreme<false>},
    {"v_pk_max_f16", 2, true, extreme<true>}, {"v_pk_add_f32", 2, false, sum},
    {"v_pk_mul_f32", 2, false, product},      {"v_pk_fma_f32", 3, false, fused},
};

void check_packed(const Packed& which, Rounding rounding, bool clamps, const Modifiers& m,
                  Bench& bench, std::mt19937_64& random) {
  const Format f = which.halves ? Format::f16 : Format::f32;
  const Bits sign = which.halves ? 0x8000 : 0x80000000;
  const std::string registers =
      which.halves
          ? (which.sources == 3 ? " v6, v0, v2, v4" : " v6, v0, v2")
          : (which.sources == 3 ? " v[6:7], v[0:1], v[2:3], v[4:5]" : " v[6:7], v[0:1], v[2:3]");
  const std::string text = which.name + registers + m.text(which.sources, "neg_lo", "neg_hi");
  const Rounding wrong = kRoundings[(static_cast<unsigned>(rounding) + 1) % 4];
  bench.set_mode(which.halves ? wrong : rounding, which.halves ? rounding : wrong, true, clamps);
  std::array<std::array<Bits, 2>, 3> x[kLanes];  // [source][half]
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    for (unsigned n = 0; n < 3; ++n) {
      x[lane][n] = {which.halves ? half_number(random) : single_number(random),
                    which.halves ? half_number(random) : single_number(random)};
      bench.registers[2 * n].lane[lane] =
          static_cast<u32>(which.halves ? x[lane][n][0] | x[lane][n][1] << 16 : x[lane][n][0]);
      bench.registers[2 * n + 1].lane[lane] = static_cast<u32>(x[lane][n][1]);
    }
  }
  bench.run(text);
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    for (unsigned half = 0; half < 2; ++half) {
      std::array<Bits, 3> operands{};
      for (unsigned n = 0; n < which.sources; ++n) {
        const unsigned select = (half == 0 ? m.op_sel : m.op_sel_hi) >> n & 1,
                       negate = (half == 0 ? m.neg : m.neg_hi) >> n & 1;
        operands[n] = x[lane][n][select] ^ (negate != 0 ? sign : 0);
      }
      Bits want = which.operation(f, operands, rounding);
      if (which.halves && clamps) want = clamped(want, f, operands);
      const Bits got = which.halves ? bench.registers[6].lane[lane] >> 16 * half & 0xffff
                                    : bench.registers[6 + half].lane[lane];
      if (!same(f, got, want)) {
        CAPTURE(text, bench.wave.mode, half, operands[0], operands[1], operands[2]);
        CHECK(got == want);
        return;
      }
    }
  }
  SUCCEED(text);
}

// op_sel_hi: the source is a half, which op_sel selects. neg negates; neg_hi takes the absolute
// value.
struct Mixed {
  const char* name;
  Target target;
  enum { whole, low, high } result;
  bool fused;
};
constexpr Mixed kMixed[] = {{"v_fma_mix_f32", Target::gfx90a, Mixed::whole, true},
                            {"v_fma_mixlo_f16", Target::gfx90a, Mixed::low, true},
                            {"v_fma_mixhi_f16", Target::gfx90a, Mixed::high, true},
                            {"v_mad_mix_f32", Target::gfx900, Mixed::whole, false},
                            {"v_mad_mixlo_f16", Target::gfx900, Mixed::low, false},
                            {"v_mad_mixhi_f16", Target::gfx900, Mixed::high, false}};

Bits flushed(Bits value) {
  return apfloat::is_denormal(Format::f32, value) ? value & 0x80000000 : value;
}

void check_mixed(const Mixed& which, Rounding single, Rounding other, bool clamps, Bench& bench,
                 std::mt19937_64& random) {
  const Modifiers m = any_modifiers(3, random);
  std::string operands;
  for (unsigned n = 0; n < 3; ++n) {
    const std::string name = fmt::format("v{}", 2 * n);
    operands += fmt::format(", {}{}", m.neg >> n & 1 ? "-" : "",
                            m.neg_hi >> n & 1 ? "|" + name + "|" : name);
  }
  const std::string text = fmt::format("{} v6{} op_sel:[{},{},{}] op_sel_hi:[{},{},{}]", which.name,
                                       operands, m.op_sel & 1, m.op_sel >> 1 & 1, m.op_sel >> 2 & 1,
                                       m.op_sel_hi & 1, m.op_sel_hi >> 1 & 1, m.op_sel_hi >> 2 & 1);
  bench.set_mode(single, other, which.fused, clamps);
  std::array<Bits, 4> x[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    for (unsigned n = 0; n < 3; ++n)
      bench.registers[2 * n].lane[lane] =
          static_cast<u32>(x[lane][n] = number((m.op_sel_hi >> n & 1) != 0, random));
    bench.registers[6].lane[lane] = static_cast<u32>(x[lane][3] = random() & 0xffffffff);
  }
  bench.run(text);
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    std::array<Bits, 3> v{};
    for (unsigned n = 0; n < 3; ++n) {
      v[n] = (m.op_sel_hi >> n & 1) != 0
                 ? apfloat::convert(Format::f16, Format::f32,
                                    x[lane][n] >> ((m.op_sel >> n & 1) * 16) & 0xffff, single)
                 : x[lane][n];
      if (m.neg_hi >> n & 1) v[n] &= 0x7fffffff;
      if (m.neg >> n & 1) v[n] ^= 0x80000000;
      if (!which.fused) v[n] = flushed(v[n]);
    }
    Bits want;
    if (which.fused) {
      want = apfloat::multiply_add(Format::f32, v[0], v[1], v[2], single);
    } else {
      // v_mad rounds its product and flushes denormals.
      const Bits rounded = apfloat::multiply(Format::f32, v[0], v[1], single);
      if ((rounded & 0x7fffffff) == 0x00800000)
        continue;  // tiny before or after rounding: both are allowed
      want = apfloat::add(Format::f32, flushed(rounded), v[2], single);
      if ((want & 0x7fffffff) == 0x00800000) continue;
      want = flushed(want);
    }
    Bits got = bench.registers[6].lane[lane];
    Format f = Format::f32;
    if (which.result != Mixed::whole) {
      // LLVM selects it for a conversion of the float32 result, so the result is rounded twice.
      want = apfloat::convert(Format::f32, Format::f16, want, other);
      if (clamps) want = clamped(want, Format::f32, v);
      const unsigned at = which.result == Mixed::high ? 16 : 0;
      CHECK((got >> (16 - at) & 0xffff) == (x[lane][3] >> (16 - at) & 0xffff));
      got = got >> at & 0xffff;
      f = Format::f16;
    }
    if (!same(f, got, want)) {
      CAPTURE(text, bench.wave.mode, x[lane][0], x[lane][1], x[lane][2]);
      CHECK(got == want);
      return;
    }
  }
  SUCCEED(text);
}

// Both products are exact in float32; each sum rounds. `flushes`: denormals become zeros.
void check_dot2(const Modifiers& m, Bench& bench, std::mt19937_64& random, bool flushes,
                bool accumulates = false) {
  const std::string text = accumulates
                               ? "v_dot2c_f32_f16 v6, v0, v2"
                               : "v_dot2_f32_f16 v6, v0, v2, v4" + m.text(3, "neg_lo", "neg_hi");
  const auto settled = [flushes](Bits sum) { return flushes ? flushed(sum) : sum; };
  bench.set_mode(Rounding::nearest_even, Rounding::nearest_even);
  std::array<Bits, 3> x[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    for (unsigned n = 0; n < 3; ++n)
      bench.registers[2 * n].lane[lane] = static_cast<u32>(x[lane][n] = number(n < 2, random));
    bench.registers[6].lane[lane] = bench.registers[4].lane[lane];
  }
  bench.run(text);
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    Bits want = settled(x[lane][2] ^ ((m.neg >> 2 & 1) != 0 ? 0x80000000 : 0));
    for (unsigned half = 0; half < 2; ++half) {
      Bits factor[2];
      for (unsigned n = 0; n < 2; ++n) {
        const unsigned select = (half == 0 ? m.op_sel : m.op_sel_hi) >> n & 1,
                       negate = (half == 0 ? m.neg : m.neg_hi) >> n & 1;
        Bits bits = (x[lane][n] >> 16 * select & 0xffff) ^ (negate != 0 ? 0x8000 : 0);
        if (flushes && (bits & 0x7c00) == 0) bits = 0;
        factor[n] = apfloat::convert(Format::f16, Format::f32, bits, Rounding::nearest_even);
      }
      want = settled(
          apfloat::add(Format::f32, want,
                       apfloat::multiply(Format::f32, factor[0], factor[1], Rounding::nearest_even),
                       Rounding::nearest_even));
    }
    const Bits got = bench.registers[6].lane[lane];
    if (!same(Format::f32, got, want)) {
      CAPTURE(text, x[lane][0], x[lane][1], x[lane][2]);
      CHECK(got == want);
      return;
    }
  }
  SUCCEED(text);
}

}  // namespace

TEST_CASE(
    "packed floats use the halves and signs that their modifiers name, and round as MODE says") {
  Bench bench(Target::gfx90a);
  std::mt19937_64 random(13);
  const vector::Simd best = vector::simd_in_use();
  for (const vector::Simd simd :
       {vector::Simd::avx512, vector::Simd::avx2, vector::Simd::baseline}) {
    if (!vector::use_simd(simd)) continue;
    CAPTURE(static_cast<unsigned>(simd));
    for (const Packed& which : kPacked) {
      for (unsigned round = 0; round < 24; ++round)
        check_packed(which, kRoundings[round % 4], round / 4 % 2 != 0,
                     round < 4 ? Modifiers{0, 7, 0, 0} : any_modifiers(which.sources, random),
                     bench, random);
    }
  }
  vector::use_simd(best);
}

TEST_CASE("mixed-precision multiply-adds use halves and singles as their modifiers say") {
  std::mt19937_64 random(14);
  const vector::Simd best = vector::simd_in_use();
  for (const vector::Simd simd :
       {vector::Simd::avx512, vector::Simd::avx2, vector::Simd::baseline}) {
    if (!vector::use_simd(simd)) continue;
    CAPTURE(static_cast<unsigned>(simd));
    for (const Mixed& which : kMixed) {
      Bench bench(which.target);
      for (unsigned round = 0; round < 24; ++round)
        check_mixed(which, kRoundings[round % 4], kRoundings[round / 4 % 4], round % 3 == 1, bench,
                    random);
    }
  }
  vector::use_simd(best);
}

TEST_CASE(
    "v_dot2_f32_f16 uses the halves and signs that its modifiers name, and flushes denormals on "
    "gfx90a only") {
  for (const Target target : {Target::gfx908, Target::gfx90a}) {
    const bool flushes = target == Target::gfx90a;
    CAPTURE(flushes);
    Bench bench(target);
    std::mt19937_64 random(15);
    check_dot2({0, 7, 0, 0}, bench, random, flushes);
    check_dot2({0, 7, 0, 0}, bench, random, flushes, true);
    check_dot2({0, 7, 1, 1}, bench, random, flushes);  // as LLVM emits fdot2(-a, b, c)
    check_dot2({0, 7, 4, 4}, bench, random, flushes);  // and fdot2(a, b, -c)
    for (unsigned round = 0; round < 16; ++round)
      check_dot2(any_modifiers(3, random), bench, random, flushes);
  }
}

}  // namespace uptempo::vgpu::gfx9::test
