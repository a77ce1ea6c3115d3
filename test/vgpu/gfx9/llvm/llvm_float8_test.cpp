// gfx942's conversions between float32 and 8-bit floats, compared with LLVM's APFloat
// (Float8E4M3FNUZ, Float8E5M2FNUZ).
#include <bit>
#include <random>
#include <string>
#include <vector>

#include "test/support/catch.hpp"
#include "test/vgpu/gfx9/fragment.hpp"
#include "test/vgpu/gfx9/llvm/llvm_float.hpp"

namespace uptempo::vgpu::gfx9::test {
namespace {

using u32 = uint32_t;
using apfloat::Format;
using apfloat::Rounding;

struct Kind {
  const char* name;
  Format format;
  unsigned fraction_bits;
};
constexpr Kind kKinds[] = {{"fp8", Format::fp8, 3}, {"bf8", Format::bf8, 2}};

bool same_float(u32 a, u32 b) {
  return a == b || (apfloat::is_nan(Format::f32, a) && apfloat::is_nan(Format::f32, b));
}

// float32 numbers of every kind, most of them near the range of the 8-bit formats.
std::vector<u32> inputs(const Kind& kind) {
  std::mt19937 random(8);
  std::vector<u32> result{0,          0x80000000, 0x7f800000, 0xff800000, 0x7fc00000,
                          0x7f800001, 1,          0x807fffff, 0x7f7fffff};
  for (u32 code = 0; code < 256; ++code) {
    const auto exact =
        static_cast<u32>(apfloat::convert(kind.format, Format::f32, code, Rounding::nearest_even));
    // The number, its neighbours, and the middle to the next one with its neighbours.
    for (const u32 step : {0u, 1u << (22 - kind.fraction_bits)})
      for (const u32 off : {~0u, 0u, 1u}) result.push_back(exact + step + off);
  }
  for (unsigned i = 0; i < 4000; ++i) {
    const u32 exponent = 127 - 22 + static_cast<u32>(random() % 42);
    result.push_back((random() & 0x807fffff) | exponent << 23);
  }
  result.resize((result.size() + kLanes - 1) / kLanes * kLanes);
  return result;
}

}  // namespace

TEST_CASE("8-bit floats widen to the float32 of the same value, from every byte of a register") {
  for (const Kind& kind : kKinds) {
    const std::string f = kind.name;
    Fragment fragment(Target::gfx942);
    for (u32 first = 0; first < 256; first += kLanes) {
      Wave& wave = fragment.prepare(
          "v_cvt_f32_" + f + " v1, v0\nv_cvt_f32_" + f +
          "_sdwa v2, v0 src0_sel:BYTE_1\nv_cvt_f32_" + f +
          "_sdwa v3, v0 src0_sel:BYTE_3\nv_cvt_pk_f32_" + f + " v[4:5], v0\nv_cvt_pk_f32_" + f +
          "_sdwa v[6:7], v0 src0_sel:WORD_1\nv_cvt_f32_" + f + "_e64 v8, v0 clamp");
      const auto byte = [&](unsigned lane, unsigned i) { return (first + lane + 85 * i) & 0xff; };
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        wave.vgpr[0].lane[lane] =
            byte(lane, 0) | byte(lane, 1) << 8 | byte(lane, 2) << 16 | byte(lane, 3) << 24;
      }
      fragment.finish();
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        const auto value = [&](unsigned i) {
          return static_cast<u32>(
              apfloat::convert(kind.format, Format::f32, byte(lane, i), Rounding::nearest_even));
        };
        CAPTURE(f, byte(lane, 0));
        REQUIRE(same_float(wave.vgpr[1].lane[lane], value(0)));
        REQUIRE(same_float(wave.vgpr[2].lane[lane], value(1)));
        REQUIRE(same_float(wave.vgpr[3].lane[lane], value(3)));
        REQUIRE(same_float(wave.vgpr[4].lane[lane], value(0)));
        REQUIRE(same_float(wave.vgpr[5].lane[lane], value(1)));
        REQUIRE(same_float(wave.vgpr[6].lane[lane], value(2)));
        REQUIRE(same_float(wave.vgpr[7].lane[lane], value(3)));
        const float x = std::bit_cast<float>(value(0));
        const float clamped = x > 1 ? 1.0f : x > 0 ? x : 0.0f;
        REQUIRE(wave.vgpr[8].lane[lane] == std::bit_cast<u32>(clamped));
      }
    }
  }
}

TEST_CASE("float32 narrows to 8-bit floats by rounding to nearest even, past the range to NaN") {
  for (const Kind& kind : kKinds) {
    const std::string f = kind.name;
    const std::vector<u32> numbers = inputs(kind);
    Fragment fragment(Target::gfx942);
    for (size_t first = 0; first < numbers.size(); first += kLanes) {
      Wave& wave = fragment.prepare("v_cvt_pk_" + f + "_f32 v2, v0, v1\nv_cvt_pk_" + f +
                                    "_f32 v3, -v0, |v1| op_sel:[0,0,1]");
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        wave.vgpr[0].lane[lane] = numbers[first + lane];
        wave.vgpr[1].lane[lane] = numbers[numbers.size() - 1 - first - lane];
        wave.vgpr[2].lane[lane] = wave.vgpr[3].lane[lane] = 0x12345678;
      }
      fragment.finish();
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        const u32 a = wave.vgpr[0].lane[lane], b = wave.vgpr[1].lane[lane];
        CAPTURE(f, a, b);
        const auto narrow = [&](u32 x) {
          return static_cast<u32>(
              apfloat::convert(Format::f32, kind.format, x, Rounding::nearest_even));
        };
        REQUIRE(wave.vgpr[2].lane[lane] == (0x12340000 | narrow(a) | narrow(b) << 8));
        const u32 high = narrow(a ^ 0x80000000) | narrow(b & 0x7fffffff) << 8;
        REQUIRE(wave.vgpr[3].lane[lane] == (0x5678 | high << 16));
      }
    }
  }
}

// The CDNA ISA manual's table "FP16_OVFL rule": a NaN stays a NaN, infinities and numbers past the
// range become the largest number of their sign.
TEST_CASE("with FP16_OVFL, infinities and what is past the range become the largest 8-bit float") {
  for (const Kind& kind : kKinds) {
    const std::string f = kind.name;
    const std::vector<u32> numbers = inputs(kind);
    Fragment fragment(Target::gfx942);
    for (size_t first = 0; first < numbers.size(); first += kLanes) {
      Wave& wave = fragment.prepare("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), 1\nv_cvt_pk_" +
                                    f + "_f32 v2, v0, v0\nv_cvt_sr_" + f +
                                    "_f32 v3, v0, 0\nv_cvt_sr_" + f + "_f32 v4, v0, -1");
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        wave.vgpr[0].lane[lane] = numbers[first + lane];
        for (unsigned reg = 2; reg < 5; ++reg) wave.vgpr[reg].lane[lane] = 0;
      }
      fragment.finish();
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        const u32 x = wave.vgpr[0].lane[lane];
        CAPTURE(f, x);
        const auto narrow = [&](Rounding rounding) -> u32 {
          if (apfloat::is_nan(Format::f32, x)) return 0x80;
          const auto result =
              static_cast<u32>(apfloat::convert(Format::f32, kind.format, x, rounding));
          return apfloat::is_nan(kind.format, result) ? (x >> 24 & 0x80) | 0x7f : result;
        };
        REQUIRE(wave.vgpr[2].lane[lane] == narrow(Rounding::nearest_even) * 0x101);
        const u32 truncated = narrow(Rounding::to_zero);
        REQUIRE(wave.vgpr[3].lane[lane] == truncated);
        const u32 up = wave.vgpr[4].lane[lane];
        REQUIRE((up == truncated || up == narrow((x >> 31) != 0 ? Rounding::down : Rounding::up)));
      }
    }
  }
}

// Stochastic rounding of x with seed s gives the neighbour above exactly if the dropped bits plus
// the seed's high bits carry. Between the bounds 0 and all ones both neighbours occur, and each as
// often as its distance states.
TEST_CASE("stochastic rounding gives both neighbours, as often as their distances state") {
  for (const Kind& kind : kKinds) {
    const std::string f = kind.name;
    const std::vector<u32> numbers = inputs(kind);
    Fragment fragment(Target::gfx942);
    for (size_t first = 0; first < numbers.size(); first += kLanes) {
      Wave& wave = fragment.prepare("v_cvt_sr_" + f + "_f32 v2, v0, 0\nv_cvt_sr_" + f +
                                    "_f32 v3, v0, -1 op_sel:[0,0,1,1]\nv_cvt_sr_" + f +
                                    "_f32 v4, -|v0|, s0 op_sel:[0,0,0,1]");
      wave.scalar[0] = 0;
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        wave.vgpr[0].lane[lane] = numbers[first + lane];
        for (unsigned reg = 2; reg < 5; ++reg) wave.vgpr[reg].lane[lane] = 0xa5a5a5a5;
      }
      fragment.finish();
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        const u32 x = wave.vgpr[0].lane[lane];
        CAPTURE(f, x);
        const auto narrow = [&](u32 number, Rounding rounding) {
          return static_cast<u32>(apfloat::convert(Format::f32, kind.format, number, rounding));
        };
        const u32 down = wave.vgpr[2].lane[lane] & 0xff;
        CHECK(wave.vgpr[2].lane[lane] == (0xa5a5a500 | down));
        const bool finite = (x & 0x7f800000) != 0x7f800000;
        const u32 truncated = narrow(x, Rounding::to_zero);
        // APFloat keeps the largest number when it truncates one past the range; hardware has no
        // number there.
        const u32 one_past = kind.format == Format::fp8 ? 0x43800000 : 0x47800000;
        const bool past = (x & 0x7fffffff) >= one_past;
        REQUIRE(down == (!finite || past ? 0x80 : truncated));
        const u32 up = wave.vgpr[3].lane[lane] >> 24;
        REQUIRE((wave.vgpr[3].lane[lane] & 0xffffff) == 0xa5a5a5);
        const u32 away = narrow(x, (x >> 31) != 0 ? Rounding::down : Rounding::up);
        // Without a carry: exact numbers, and those whose dropped bits are below all seed bits.
        REQUIRE((up == down || up == away));
        const u32 negative = wave.vgpr[4].lane[lane] >> 16 & 0xff;
        REQUIRE(negative == (down == 0 || down == 0x80 ? down : down | 0x80));
      }
    }
    // 1 + 3/8 of a step: 3 of 8 equidistant seeds round up.
    const u32 step = 1u << (23 - kind.fraction_bits);
    Wave& wave = fragment.prepare("v_cvt_sr_" + f + "_f32 v2, v0, v1");
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      wave.vgpr[0].lane[lane] = 0x3f800000 + 3 * (step / 8);
      wave.vgpr[1].lane[lane] = lane << 26;
    }
    fragment.finish();
    unsigned ups = 0;
    const auto one = static_cast<u32>(
        apfloat::convert(Format::f32, kind.format, 0x3f800000, Rounding::nearest_even));
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const u32 got = wave.vgpr[2].lane[lane] & 0xff;
      REQUIRE((got == one || got == one + 1));
      ups += got - one;
    }
    CHECK(ups == 3 * kLanes / 8);
  }
}

}  // namespace uptempo::vgpu::gfx9::test
