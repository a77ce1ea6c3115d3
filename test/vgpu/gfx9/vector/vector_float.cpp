// Float instructions: exact ones against the host's arithmetic, approximations against long double.
#include <cfenv>
#include <cmath>

#include "test/support/catch.hpp"
#include "test/vgpu/gfx9/vector/vector_machine.hpp"

namespace uptempo::vgpu::gfx9::test {
namespace {

using u64 = uint64_t;

void two(Opcode opcode, float (*f)(float, float)) {
  check_lanes({opcode, 2, {1, 1, 1}, 1, Compare::floats32},
              [&](u64 a, u64 b, u64, bool) { return bits(f(f32(a), f32(b))); });
}
void three(Opcode opcode, float (*f)(float, float, float)) {
  check_lanes({opcode, 3, {1, 1, 1}, 1, Compare::floats32},
              [&](u64 a, u64 b, u64 c, bool) { return bits(f(f32(a), f32(b), f32(c))); });
}
void one(Opcode opcode, float (*f)(float)) {
  check_lanes({opcode, 1, {1, 1, 1}, 1, Compare::floats32},
              [&](u64 a, u64, u64, bool) { return bits(f(f32(a))); });
}
void two_doubles(Opcode opcode, double (*f)(double, double)) {
  check_lanes({opcode, 2, {2, 2, 1}, 2, Compare::floats64},
              [&](u64 a, u64 b, u64, bool) { return bits(f(f64(a), f64(b))); });
}
void one_double(Opcode opcode, double (*f)(double)) {
  check_lanes({opcode, 1, {2, 1, 1}, 2, Compare::floats64},
              [&](u64 a, u64, u64, bool) { return bits(f(f64(a))); });
}
void halves(Opcode opcode, unsigned sources, double (*f)(double, double, double)) {
  check_lanes({opcode, sources, {1, 1, 1}, 1, Compare::floats16}, [&](u64 a, u64 b, u64 c, bool) {
    return nearest_f16(f(f16(a & 0xffff), f16(b & 0xffff), f16(c & 0xffff)));
  });
}

// minNum and maxNum of IEEE 754-2008, with signed zeros ordered and MODE.ieee's rule for signalling
// NaNs.
bool signalling(float v) { return std::isnan(v) && !(bits(v) & 0x400000); }
template <bool kMax>
float extreme(float a, float b) {
  if (signalling(a) || signalling(b)) return NAN;
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  if (a == b) return std::signbit(a) == kMax ? b : a;
  return (a < b) == kMax ? b : a;
}

float flushed(float v) { return std::fabs(v) < 0x1p-126f ? std::copysign(0.0f, v) : v; }

}  // namespace

TEST_CASE("float32 arithmetic is IEEE, nearest even, with denormals") {
  two(Opcode::v_add_f32, [](float a, float b) { return a + b; });
  two(Opcode::v_sub_f32, [](float a, float b) { return a - b; });
  two(Opcode::v_subrev_f32, [](float a, float b) { return b - a; });
  two(Opcode::v_mul_f32, [](float a, float b) { return a * b; });
  three(Opcode::v_fma_f32, [](float a, float b, float c) { return std::fma(a, b, c); });
  two(Opcode::v_mul_legacy_f32, [](float a, float b) { return a == 0 || b == 0 ? 0.0f : a * b; });
}

TEST_CASE("v_mad_f32 rounds twice and flushes denormals") {
  three(Opcode::v_mad_f32, [](float a, float b, float c) {
    const volatile float product = flushed(flushed(a) * flushed(b));
    return flushed(product + flushed(c));
  });
}

TEST_CASE("min and max ignore quiet NaNs and order zeros") {
  two(Opcode::v_min_f32, extreme<false>);
  two(Opcode::v_max_f32, extreme<true>);
  three(Opcode::v_min3_f32,
        [](float a, float b, float c) { return extreme<false>(extreme<false>(a, b), c); });
  three(Opcode::v_max3_f32,
        [](float a, float b, float c) { return extreme<true>(extreme<true>(a, b), c); });
}

TEST_CASE("rounding to integral values keeps the sign of zero") {
  one(Opcode::v_trunc_f32, [](float a) { return std::trunc(a); });
  one(Opcode::v_ceil_f32, [](float a) { return std::ceil(a); });
  one(Opcode::v_floor_f32, [](float a) { return std::floor(a); });
  one(Opcode::v_rndne_f32, [](float a) { return std::nearbyint(a); });
  one_double(Opcode::v_trunc_f64, [](double a) { return std::trunc(a); });
  one_double(Opcode::v_ceil_f64, [](double a) { return std::ceil(a); });
  one_double(Opcode::v_floor_f64, [](double a) { return std::floor(a); });
  one_double(Opcode::v_rndne_f64, [](double a) { return std::nearbyint(a); });
}

TEST_CASE("a fraction stays below one") {
  one(Opcode::v_fract_f32, [](float a) {
    const float fraction = a - std::floor(a);
    return fraction > 0x1.fffffep-1f ? 0x1.fffffep-1f : fraction;
  });
}

TEST_CASE("float64 arithmetic is IEEE") {
  two_doubles(Opcode::v_add_f64, [](double a, double b) { return a + b; });
  two_doubles(Opcode::v_mul_f64, [](double a, double b) { return a * b; });
  one_double(Opcode::v_sqrt_f64, [](double a) { return std::sqrt(a); });
  check_lanes({Opcode::v_fma_f64, 3, {2, 2, 2}, 2, Compare::floats64},
              [](u64 a, u64 b, u64 c, bool) { return bits(std::fma(f64(a), f64(b), f64(c))); });
}

TEST_CASE("ldexp and frexp cover denormals and overflow") {
  check_lanes({Opcode::v_ldexp_f32, 2, {1, 1, 1}, 1, Compare::floats32},
              [](u64 a, u64 n, u64, bool) {
                return bits(static_cast<float>(std::scalbln(
                    static_cast<double>(f32(a)), std::clamp(static_cast<int>(n), -1000, 700))));
              });
  check_lanes({Opcode::v_ldexp_f64, 2, {2, 1, 1}, 2, Compare::floats64},
              [](u64 a, u64 n, u64, bool) {
                return bits(std::ldexp(f64(a), static_cast<int>(static_cast<uint32_t>(n))));
              });
  const auto exponent = [](double v) {
    int e = 0;
    std::frexp(v, &e);
    return static_cast<u64>(std::isfinite(v) ? static_cast<uint32_t>(e) : 0u);
  };
  check_lanes({Opcode::v_frexp_exp_i32_f32, 1},
              [&](u64 a, u64, u64, bool) { return exponent(f32(a)); });
  check_lanes({Opcode::v_frexp_exp_i32_f64, 1, {2, 1, 1}},
              [&](u64 a, u64, u64, bool) { return exponent(f64(a)); });
  const auto significand = [](double v) {
    int e = 0;
    return std::isfinite(v) ? std::frexp(v, &e) : v;
  };
  check_lanes({Opcode::v_frexp_mant_f32, 1, {1, 1, 1}, 1, Compare::floats32},
              [&](u64 a, u64, u64, bool) { return bits(static_cast<float>(significand(f32(a)))); });
  check_lanes({Opcode::v_frexp_mant_f64, 1, {2, 1, 1}, 2, Compare::floats64},
              [&](u64 a, u64, u64, bool) { return bits(significand(f64(a))); });
}

TEST_CASE("float16 arithmetic rounds once") {
  halves(Opcode::v_add_f16, 2, [](double a, double b, double) { return a + b; });
  halves(Opcode::v_sub_f16, 2, [](double a, double b, double) { return a - b; });
  halves(Opcode::v_mul_f16, 2, [](double a, double b, double) { return a * b; });
  halves(Opcode::v_sqrt_f16, 1, [](double a, double, double) { return std::sqrt(a); });
  halves(Opcode::v_rcp_f16, 1, [](double a, double, double) { return 1.0 / a; });
  halves(Opcode::v_floor_f16, 1, [](double a, double, double) { return std::floor(a); });
  halves(Opcode::v_fma_legacy_f16, 3, [](double a, double b, double c) { return a * b + c; });
  halves(Opcode::v_mad_legacy_f16, 3,
         [](double a, double b, double c) { return f16(nearest_f16(a * b)) + c; });
}

TEST_CASE("conversions saturate and turn NaN into zero") {
  check_lanes({Opcode::v_cvt_i32_f32, 1}, [](u64 a, u64, u64, bool) {
    const float v = f32(a);
    const double limited =
        std::isnan(v) ? 0.0
                      : std::clamp(std::trunc(static_cast<double>(v)), -2147483648.0, 2147483647.0);
    return static_cast<u64>(static_cast<uint32_t>(static_cast<int64_t>(limited)));
  });
  check_lanes({Opcode::v_cvt_u32_f32, 1}, [](u64 a, u64, u64, bool) {
    const float v = f32(a);
    return static_cast<u64>(
        std::isnan(v) ? 0.0 : std::clamp(std::trunc(static_cast<double>(v)), 0.0, 4294967295.0));
  });
  check_lanes({Opcode::v_cvt_i32_f64, 1, {2, 1, 1}}, [](u64 a, u64, u64, bool) {
    const double limited =
        std::isnan(f64(a)) ? 0.0 : std::clamp(std::trunc(f64(a)), -2147483648.0, 2147483647.0);
    return static_cast<u64>(static_cast<uint32_t>(static_cast<int64_t>(limited)));
  });
  check_lanes({Opcode::v_cvt_u32_f64, 1, {2, 1, 1}}, [](u64 a, u64, u64, bool) {
    return static_cast<u64>(std::isnan(f64(a)) ? 0.0
                                               : std::clamp(std::trunc(f64(a)), 0.0, 4294967295.0));
  });
  check_lanes({Opcode::v_cvt_f32_u32, 1}, [](u64 a, u64, u64, bool) {
    return bits(static_cast<float>(static_cast<uint32_t>(a)));
  });
  check_lanes({Opcode::v_cvt_f32_i32, 1}, [](u64 a, u64, u64, bool) {
    return bits(static_cast<float>(static_cast<int32_t>(a)));
  });
  check_lanes({Opcode::v_cvt_f64_u32, 1, {1, 1, 1}, 2}, [](u64 a, u64, u64, bool) {
    return bits(static_cast<double>(static_cast<uint32_t>(a)));
  });
  check_lanes({Opcode::v_cvt_f64_i32, 1, {1, 1, 1}, 2}, [](u64 a, u64, u64, bool) {
    return bits(static_cast<double>(static_cast<int32_t>(a)));
  });
  check_lanes({Opcode::v_cvt_f64_f32, 1, {1, 1, 1}, 2, Compare::floats64},
              [](u64 a, u64, u64, bool) { return bits(static_cast<double>(f32(a))); });
  check_lanes({Opcode::v_cvt_f32_f64, 1, {2, 1, 1}, 1, Compare::floats32},
              [](u64 a, u64, u64, bool) { return bits(static_cast<float>(f64(a))); });
  check_lanes({Opcode::v_cvt_f16_f32, 1, {1, 1, 1}, 1, Compare::floats16},
              [](u64 a, u64, u64, bool) { return nearest_f16(f32(a)); });
  check_lanes({Opcode::v_cvt_f32_f16, 1, {1, 1, 1}, 1, Compare::floats32},
              [](u64 a, u64, u64, bool) { return bits(static_cast<float>(f16(a & 0xffff))); });
  check_lanes({Opcode::v_cvt_f32_ubyte2, 1},
              [](u64 a, u64, u64, bool) { return bits(static_cast<float>(a >> 16 & 0xff)); });
  check_lanes({Opcode::v_cvt_pk_i16_i32, 2}, [](u64 a, u64 b, u64, bool) {
    const auto limited = [](u64 v) {
      return static_cast<u64>(std::clamp(static_cast<int32_t>(v), -32768, 32767)) & 0xffff;
    };
    return limited(a) | limited(b) << 16;
  });
}

TEST_CASE("v_cvt_pkrtz_f16_f32 rounds toward zero") {
  check_lanes({Opcode::v_cvt_pkrtz_f16_f32, 2}, [](u64 a, u64 b, u64, bool) {
    const auto convert = [](float v) -> u64 {
      if (std::isnan(v)) return (bits(v) >> 16 & 0x8000) | 0x7e00 | (bits(v) >> 13 & 0x1ff);
      u64 nearest = nearest_f16(v);
      if (std::isinf(v)) return nearest;
      if (std::fabs(f16(nearest)) > std::fabs(static_cast<double>(v))) --nearest;
      return nearest;
    };
    return convert(f32(a)) | convert(f32(b)) << 16;
  });
}

TEST_CASE("approximations stay within their tolerance") {
  struct Approximation {
    Opcode opcode;
    long double (*exact)(long double);
    double ulps;
  };
  constexpr long double kTurn = 6.283185307179586476925286766559L;
  const Approximation cases[] = {
      {Opcode::v_rcp_f32, [](long double x) { return 1 / x; }, 0.5},
      {Opcode::v_rsq_f32, [](long double x) { return 1 / std::sqrt(x); }, 0.51},
      {Opcode::v_sqrt_f32, [](long double x) { return std::sqrt(x); }, 0.5},
      {Opcode::v_exp_f32, [](long double x) { return std::exp2(x); }, 0.51},
      {Opcode::v_log_f32, [](long double x) { return std::log2(x); }, 0.51},
      {Opcode::v_sin_f32, [](long double x) { return std::sin(kTurn * std::remainder(x, 1.0L)); },
       0.51},
      {Opcode::v_cos_f32, [](long double x) { return std::cos(kTurn * std::remainder(x, 1.0L)); },
       0.51}};
  for (const Approximation& c : cases) {
    for (const vector::Simd simd : simd_targets()) {
      vector::use_simd(simd);
      VectorMachine machine(77);
      for (int round = 0; round < 40; ++round) {
        for (uint32_t& lane : machine.registers[10].lane) {
          const float v = std::ldexp(static_cast<float>(machine.random() >> 8),
                                     static_cast<int>(machine.random() % 24) - 30);
          lane = std::bit_cast<uint32_t>(
              c.opcode == Opcode::v_sqrt_f32 || c.opcode == Opcode::v_rsq_f32 ||
                      c.opcode == Opcode::v_log_f32 || machine.random() % 2
                  ? v
                  : -v);
        }
        machine.run(vop3(c.opcode, 1));
        for (unsigned lane = 0; lane < kLanes; ++lane) {
          const float x = f32(machine.registers[10].lane[lane]);
          if ((c.opcode == Opcode::v_sin_f32 || c.opcode == Opcode::v_cos_f32) &&
              std::fabs(x) > 256)
            continue;
          const float got = f32(machine.registers[40].lane[lane]);
          const long double exact = c.exact(x);
          if (std::fabs(exact) > 3.4e38L || x == 0) continue;
          const float ulp =
              std::max(std::nextafter(std::fabs(got), INFINITY) - std::fabs(got), 0x1p-149f);
          CAPTURE(name(simd), static_cast<unsigned>(c.opcode), x, got, static_cast<double>(exact));
          REQUIRE(std::fabs(static_cast<double>(got - exact)) <= c.ulps * ulp * 1.001 + 1e-17);
        }
      }
    }
  }
  vector::use_simd(simd_targets().front());
}

TEST_CASE("transcendental instructions give their special values") {
  struct Special {
    Opcode opcode;
    float in, out;
  };
  const float inf = INFINITY;
  const Special cases[] = {{Opcode::v_rcp_f32, 0.0f, inf},
                           {Opcode::v_rcp_f32, -0.0f, -inf},
                           {Opcode::v_rcp_f32, inf, 0.0f},
                           {Opcode::v_rsq_f32, 0.0f, inf},
                           {Opcode::v_rsq_f32, -1.0f, NAN},
                           {Opcode::v_sqrt_f32, -0.0f, -0.0f},
                           {Opcode::v_exp_f32, -inf, 0.0f},
                           {Opcode::v_exp_f32, inf, inf},
                           {Opcode::v_exp_f32, 3.0f, 8.0f},
                           {Opcode::v_exp_f32, 128.0f, inf},
                           {Opcode::v_log_f32, 0.0f, -inf},
                           {Opcode::v_log_f32, -1.0f, NAN},
                           {Opcode::v_log_f32, inf, inf},
                           {Opcode::v_log_f32, 1.0f, 0.0f},
                           {Opcode::v_log_f32, 0x1p-126f, -126.0f},
                           {Opcode::v_sin_f32, 0.25f, 1.0f},
                           {Opcode::v_log_f32, 0x1p-127f, -inf},
                           {Opcode::v_rcp_f32, -0x1p-149f, -inf},
                           {Opcode::v_rcp_f32, -0x1p127f, -0.0f},
                           {Opcode::v_rcp_f32, 0x1p126f, 0x1p-126f},
                           {Opcode::v_rsq_f32, 0x1p-127f, inf},
                           {Opcode::v_sqrt_f32, 0x1p-127f, 0.0f},
                           {Opcode::v_exp_f32, -126.0f, 0x1p-126f},
                           {Opcode::v_exp_f32, -127.0f, 0.0f},
                           {Opcode::v_sin_f32, 0x1p-149f, 0x6p-149f},
                           {Opcode::v_sin_f32, -0.0f, -0.0f},
                           {Opcode::v_sin_f32, 257.3f, 0.0f},
                           {Opcode::v_sin_f32, inf, NAN},
                           {Opcode::v_cos_f32, 0.5f, -1.0f},
                           {Opcode::v_cos_f32, 0.0f, 1.0f},
                           {Opcode::v_cos_f32, 300.0f, 1.0f}};
  for (const vector::Simd simd : simd_targets()) {
    vector::use_simd(simd);
    for (const Special& c : cases) {
      VectorMachine machine(1);
      machine.registers[10].lane[5] = static_cast<uint32_t>(bits(c.in));
      machine.run(vop3(c.opcode, 1));
      const float got = f32(machine.registers[40].lane[5]);
      CAPTURE(name(simd), static_cast<unsigned>(c.opcode), c.in, got);
      CHECK((std::isnan(c.out) ? std::isnan(got) : bits(got) == bits(c.out)));
    }
  }
  vector::use_simd(simd_targets().front());
}

TEST_CASE("float32 division as compilers expand it is correctly rounded") {
  for (const vector::Simd simd : simd_targets()) {
    vector::use_simd(simd);
    VectorMachine m(4242);
    const auto step = [&](Opcode opcode, unsigned dst, std::initializer_list<unsigned> sources,
                          unsigned negated = 0) {
      Instruction in = vop3(opcode, 0);
      unsigned i = 0;
      for (const unsigned s : sources) in.src[i++] = static_cast<OperandCode>(kFirstVgpr + s);
      in.neg = static_cast<uint8_t>(negated);
      in.dst = static_cast<uint16_t>(dst);
      in.sdst = opcode == Opcode::v_div_scale_f32 && dst == 3 ? kVccLo : 40;
      m.run(in);
    };
    for (int round = 0; round < 200; ++round) {
      for (unsigned lane = 0; lane < kLanes; ++lane)
        m.registers[0].lane[lane] = m.edge(), m.registers[1].lane[lane] = m.edge();
      for (unsigned lane = 0; lane < kLanes; ++lane) m.registers[9].lane[lane] = 0x3f800000;
      // v0 / v1: the sequence of LLVM's LowerFDIV32.
      step(Opcode::v_div_scale_f32, 2, {1, 1, 0});
      step(Opcode::v_div_scale_f32, 3, {0, 1, 0});
      step(Opcode::v_rcp_f32, 4, {2});
      step(Opcode::v_fma_f32, 5, {2, 4, 9}, 1);
      step(Opcode::v_fma_f32, 4, {5, 4, 4});
      step(Opcode::v_mul_f32, 6, {3, 4});
      step(Opcode::v_fma_f32, 7, {2, 6, 3}, 1);
      step(Opcode::v_fma_f32, 6, {7, 4, 6});
      step(Opcode::v_fma_f32, 7, {2, 6, 3}, 1);
      step(Opcode::v_div_fmas_f32, 7, {7, 4, 6});
      step(Opcode::v_div_fixup_f32, 8, {7, 1, 0});
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        const float a = f32(m.registers[0].lane[lane]), b = f32(m.registers[1].lane[lane]),
                    got = f32(m.registers[8].lane[lane]);
        const float exact = a / b;
        CAPTURE(name(simd), a, b, got, exact);
        if (std::isnan(exact)) {
          REQUIRE(std::isnan(got));
        } else if (std::fabs(exact) < 0x1p-126f) {
          // Scaling a denormal result back rounds a second time.
          REQUIRE(std::fabs(got - exact) <= 0x1p-149f);
        } else {
          REQUIRE(bits(got) == bits(exact));
        }
      }
    }
  }
  vector::use_simd(simd_targets().front());
}

TEST_CASE("MODE selects rounding and flushing") {
  for (const vector::Simd simd : simd_targets()) {
    vector::use_simd(simd);
    CAPTURE(name(simd));
    const auto sum = [](uint32_t mode, Opcode opcode, uint32_t a, uint32_t b) {
      VectorMachine m(1);
      m.wave.mode = mode;
      m.registers[10].lane[0] = a;
      m.registers[20].lane[0] = b;
      m.run(vop3(opcode, 2));
      return m.registers[40].lane[0];
    };
    const uint32_t tiny = 0x30000000;  // far below half an ulp of one
    CHECK(sum(0x3f0, Opcode::v_add_f32, 0x3f800000, tiny) == 0x3f800000);
    CHECK(sum(0x3f1, Opcode::v_add_f32, 0x3f800000, tiny) == 0x3f800001);
    CHECK(sum(0x3f2, Opcode::v_add_f32, 0x3f800000, tiny) == 0x3f800000);
    CHECK(sum(0x3f2, Opcode::v_add_f32, 0xbf800000, tiny | 0x80000000) == 0xbf800001);
    CHECK(sum(0x3f3, Opcode::v_add_f32, 0xbf800000, tiny | 0x80000000) == 0xbf800000);
    // Denormal sum: kept, flushed at the input, flushed at the output.
    CHECK(sum(0x3f0, Opcode::v_add_f32, 0x00000003, 0x00000004) == 7);
    CHECK(sum(0x3c0, Opcode::v_add_f32, 0x00000003, 0x00000004) == 0);
    CHECK(sum(0x3e0, Opcode::v_add_f32, 0x00000003, 0x00800000) == 0x00800000);
    CHECK(sum(0x3d0, Opcode::v_sub_f32, 0x00800000, 0x00000001) == 0);
    CHECK(sum(0x3c0, Opcode::v_max_f32, 0x00000003, 0x80000000) == 0);
    CHECK(sum(0x330, Opcode::v_add_f16, 0x0003, 0x0004) == 0);
    CHECK(sum(0x3f0, Opcode::v_add_f16, 0x0003, 0x0004) == 7);
    CHECK(sum(0x3f4, Opcode::v_add_f16, 0x3c00, 0x0001) == 0x3c01);
    // With MODE.ieee off a signalling NaN is ignored like any other.
    CHECK(sum(0x1f0, Opcode::v_max_f32, 0x7f800001, 0x3f800000) == 0x3f800000);
    CHECK(sum(0x3f0, Opcode::v_max_f32, 0x7f800001, 0x3f800000) == 0x7fc00001);
  }
  vector::use_simd(simd_targets().front());
}

TEST_CASE("v_trig_preop_f64 gives segments of 2/pi") {
  VectorMachine m(1);
  const double x = 1.0;
  const auto encoded = bits(x);
  m.registers[10].lane[0] = static_cast<uint32_t>(encoded);
  m.registers[11].lane[0] = static_cast<uint32_t>(encoded >> 32);
  Instruction in = vop3(Opcode::v_trig_preop_f64, 2);
  double sum = 0;
  for (const unsigned segment : {2u, 1u, 0u}) {
    in.src[1] = static_cast<OperandCode>(128 + segment);
    m.run(in);
    sum += f64(m.pair(40, 0));
  }
  CHECK(sum == 0.63661977236758134308);
}

}  // namespace uptempo::vgpu::gfx9::test
