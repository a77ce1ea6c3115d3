// Instructions that compilers emit for llvm.amdgcn intrinsics, against the results of LLVM's
// optimiser at compile time.
#include <fmt/format.h>

#include <cmath>
#include <random>
#include <string>

#include "test/support/catch.hpp"
#include "test/vgpu/gfx9/llvm/llvm_float.hpp"
#include "test/vgpu/gfx9/llvm/llvm_fold.hpp"
#include "test/vgpu/gfx9/semantics/semantics.hpp"

namespace uptempo::vgpu::gfx9::test {
namespace {

using Bits = uint64_t;

enum class Operand : uint8_t { none, f16, f32, f64, i32, select, mask };
enum class Close : uint8_t {
  exact,
  ulp,
  wave
};  // `ulp`: one unit in the last place; `wave`: 2^-19, for v_sin and v_cos

struct Folded {
  const char* text;       // operands in v0, v2, v4; result in v6, or s[10:11] for i1
  const char* intrinsic;  // with its type: "float @llvm.amdgcn.rcp.f32"
  Operand operands[3];
  unsigned result_bits;  // 1, 16, 32, 64
  Close close = Close::exact;
};

// clang-format off
const Folded kRows[] = {
    {"v_perm_b32 v6, v0, v2, v4",              "i32 @llvm.amdgcn.perm",                {Operand::i32, Operand::i32, Operand::select}, 32},
    {"v_bfe_u32 v6, v0, v2, v4",               "i32 @llvm.amdgcn.ubfe.i32",            {Operand::i32, Operand::i32, Operand::i32}, 32},
    {"v_bfe_i32 v6, v0, v2, v4",               "i32 @llvm.amdgcn.sbfe.i32",            {Operand::i32, Operand::i32, Operand::i32}, 32},
    {"v_alignbit_b32 v6, v0, v2, v4",          "i32 @llvm.fshr.i32",                   {Operand::i32, Operand::i32, Operand::i32}, 32},
    {"v_cubeid_f32 v6, v0, v2, v4",            "float @llvm.amdgcn.cubeid",            {Operand::f32, Operand::f32, Operand::f32}, 32},
    {"v_cubema_f32 v6, v0, v2, v4",            "float @llvm.amdgcn.cubema",            {Operand::f32, Operand::f32, Operand::f32}, 32},
    {"v_cubesc_f32 v6, v0, v2, v4",            "float @llvm.amdgcn.cubesc",            {Operand::f32, Operand::f32, Operand::f32}, 32},
    {"v_cubetc_f32 v6, v0, v2, v4",            "float @llvm.amdgcn.cubetc",            {Operand::f32, Operand::f32, Operand::f32}, 32},
    {"v_mul_legacy_f32 v6, v0, v2",            "float @llvm.amdgcn.fmul.legacy",       {Operand::f32, Operand::f32, Operand::none}, 32},
    {"v_med3_f32 v6, v0, v2, v4",              "float @llvm.amdgcn.fmed3.f32",         {Operand::f32, Operand::f32, Operand::f32}, 32},
    {"v_med3_f16 v6, v0, v2, v4",              "half @llvm.amdgcn.fmed3.f16",          {Operand::f16, Operand::f16, Operand::f16}, 16},
    {"v_cvt_pkrtz_f16_f32 v6, v0, v2",         "<2 x half> @llvm.amdgcn.cvt.pkrtz",    {Operand::f32, Operand::f32, Operand::none}, 32},
    {"v_fract_f16 v6, v0",                     "half @llvm.amdgcn.fract.f16",          {Operand::f16, Operand::none, Operand::none}, 16},
    {"v_fract_f32 v6, v0",                     "float @llvm.amdgcn.fract.f32",         {Operand::f32, Operand::none, Operand::none}, 32},
    {"v_fract_f64 v[6:7], v[0:1]",             "double @llvm.amdgcn.fract.f64",        {Operand::f64, Operand::none, Operand::none}, 64},
    {"v_frexp_mant_f16 v6, v0",                "half @llvm.amdgcn.frexp.mant.f16",     {Operand::f16, Operand::none, Operand::none}, 16},
    {"v_frexp_mant_f32 v6, v0",                "float @llvm.amdgcn.frexp.mant.f32",    {Operand::f32, Operand::none, Operand::none}, 32},
    {"v_frexp_mant_f64 v[6:7], v[0:1]",        "double @llvm.amdgcn.frexp.mant.f64",   {Operand::f64, Operand::none, Operand::none}, 64},
    {"v_frexp_exp_i16_f16 v6, v0",             "i16 @llvm.amdgcn.frexp.exp.i16.f16",   {Operand::f16, Operand::none, Operand::none}, 16},
    {"v_frexp_exp_i32_f32 v6, v0",             "i32 @llvm.amdgcn.frexp.exp.i32.f32",   {Operand::f32, Operand::none, Operand::none}, 32},
    {"v_frexp_exp_i32_f64 v6, v[0:1]",         "i32 @llvm.amdgcn.frexp.exp.i32.f64",   {Operand::f64, Operand::none, Operand::none}, 32},
    {"v_ldexp_f16 v6, v0, v2",                 "half @llvm.amdgcn.ldexp.f16",          {Operand::f16, Operand::mask, Operand::none}, 16},
    {"v_ldexp_f32 v6, v0, v2",                 "float @llvm.amdgcn.ldexp.f32",         {Operand::f32, Operand::i32, Operand::none}, 32},
    {"v_ldexp_f64 v[6:7], v[0:1], v2",         "double @llvm.amdgcn.ldexp.f64",        {Operand::f64, Operand::i32, Operand::none}, 64},
    {"v_cmp_class_f16 s[10:11], v0, v2",       "i1 @llvm.amdgcn.class.f16",            {Operand::f16, Operand::mask, Operand::none}, 1},
    {"v_cmp_class_f32 s[10:11], v0, v2",       "i1 @llvm.amdgcn.class.f32",            {Operand::f32, Operand::mask, Operand::none}, 1},
    {"v_cmp_class_f64 s[10:11], v[0:1], v2",   "i1 @llvm.amdgcn.class.f64",            {Operand::f64, Operand::mask, Operand::none}, 1},
    {"v_rcp_f16 v6, v0",                       "half @llvm.amdgcn.rcp.f16",            {Operand::f16, Operand::none, Operand::none}, 16, Close::ulp},
    {"v_rcp_f32 v6, v0",                       "float @llvm.amdgcn.rcp.f32",           {Operand::f32, Operand::none, Operand::none}, 32, Close::ulp},
    {"v_rcp_f64 v[6:7], v[0:1]",               "double @llvm.amdgcn.rcp.f64",          {Operand::f64, Operand::none, Operand::none}, 64, Close::ulp},
    {"v_sin_f32 v6, v0",                       "float @llvm.amdgcn.sin.f32",           {Operand::f32, Operand::none, Operand::none}, 32, Close::wave},
    {"v_cos_f32 v6, v0",                       "float @llvm.amdgcn.cos.f32",           {Operand::f32, Operand::none, Operand::none}, 32, Close::wave},
    {"v_sin_f16 v6, v0",                       "half @llvm.amdgcn.sin.f16",            {Operand::f16, Operand::none, Operand::none}, 16, Close::wave},
    {"v_cos_f16 v6, v0",                       "half @llvm.amdgcn.cos.f16",            {Operand::f16, Operand::none, Operand::none}, 16, Close::wave},
};
// clang-format on

unsigned width(Operand operand) {
  return operand == Operand::f16 ? 16 : operand == Operand::f64 ? 64 : 32;
}
const char* type(Operand operand) {
  switch (operand) {
    case Operand::f16:
      return "half";
    case Operand::f32:
      return "float";
    case Operand::f64:
      return "double";
    default:
      return "i32";
  }
}
Bits number(Operand operand, std::mt19937_64& random) {
  constexpr Bits kHalves[] = {0x0000, 0x8000, 0x3c00, 0xbc00, 0x3800, 0xb800, 0x4248, 0x7c00,
                              0xfc00, 0x7e00, 0x7c01, 0x0001, 0x8001, 0x03ff, 0x83ff, 0x0400,
                              0x8400, 0x7bff, 0xfbff, 0x6400, 0x3bff, 0xbbff, 0x3400, 0x3a00};
  constexpr Bits kSingles[] = {
      0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x3f000000, 0xbf000000, 0x40490fdb,
      0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x7f800001, 0x00000001, 0x80000001,
      0x007fffff, 0x807fffff, 0x00800000, 0x80800000, 0x7f7fffff, 0xff7fffff, 0x3effffff,
      0x3f7fffff, 0xbf7fffff, 0xb3000000, 0xb2800000, 0x477fe000, 0x477ff000, 0x477fffff,
      0x33800000, 0x337fffff, 0x38800000, 0x387fffff, 0x40000000, 0xc0000000, 0x3e800000};
  constexpr Bits kDoubles[] = {
      0x0000000000000000, 0x8000000000000000, 0x3ff0000000000000, 0xbff0000000000000,
      0x3fe0000000000000, 0x400921fb54442d18, 0x7ff0000000000000, 0xfff0000000000000,
      0x7ff8000000000000, 0x7ff0000000000001, 0x0000000000000001, 0x800fffffffffffff,
      0x0010000000000000, 0x7fefffffffffffff, 0xbfefffffffffffff, 0xbc90000000000000,
      0xbc80000000000000, 0x3fefffffffffffff, 0x4330000000000001};
  constexpr Bits kInts[] = {0,          1,          2,          7,          8,         15,
                            16,         24,         31,         32,         33,        63,
                            64,         65,         128,        1074,       0x7fff,    0x8000,
                            0x7fffffff, 0x80000000, 0xffffffff, 0xffffff81, 0xfffffb00};
  const auto pick = [&](const auto& values) { return values[random() % std::size(values)]; };
  const bool edge = random() % 2 != 0;
  switch (operand) {
    case Operand::none:
      return random();
    case Operand::f16:
      return edge ? pick(kHalves) : random() & 0xffff;
    case Operand::f32:
      return edge                ? pick(kSingles)
             : random() % 2 != 0 ? 0x3b000000 + (random() & 0x87ffffff)
                                 : random() & 0xffffffff;
    case Operand::f64:
      return edge ? pick(kDoubles) : random();
    case Operand::i32:
      return edge ? pick(kInts) : random() & 0xffffffff;
    case Operand::select: {  // bytes that v_perm_b32 distinguishes: 0 to 13, and above
      Bits value = 0;
      for (unsigned byte = 0; byte < 4; ++byte)
        value |= (random() % 8 == 0 ? random() & 0xff : random() % 14) << 8 * byte;
      return value;
    }
    case Operand::mask:
      return random() & 0x3ff;
  }
  return 0;
}

std::string declaration(const Folded& row) {
  const std::string signature = row.intrinsic;
  const size_t at = signature.find('@');
  std::string text = "declare " + signature.substr(0, at) + signature.substr(at) + "(";
  for (unsigned n = 0; n < 3 && row.operands[n] != Operand::none; ++n)
    text += std::string(n == 0 ? "" : ", ") + type(row.operands[n]);
  return text + ")";
}

// Constants are written as bit patterns, so that no decimal conversion is involved.
std::string body(const Folded& row, const std::array<Bits, 3>& x) {
  std::string text, arguments;
  for (unsigned n = 0; n < 3 && row.operands[n] != Operand::none; ++n) {
    const Operand operand = row.operands[n];
    const auto value = static_cast<int64_t>(x[n] << (64 - width(operand))) >> (64 - width(operand));
    text += fmt::format("  %x{} = bitcast i{} {} to {}\n", n, width(operand), value, type(operand));
    arguments += fmt::format("{}{} %x{}", n == 0 ? "" : ", ", type(operand), n);
  }
  const std::string signature = row.intrinsic, result = signature.substr(0, signature.find(" @"));
  return text + fmt::format("  %y = call {}({})\n  %r = bitcast {} %y to i{}\n  ret i{} %r",
                            signature, arguments, result, row.result_bits, row.result_bits);
}

apfloat::Format format(unsigned bits) {
  return bits == 16   ? apfloat::Format::f16
         : bits == 32 ? apfloat::Format::f32
                      : apfloat::Format::f64;
}
double value_of(unsigned bits, Bits v) {
  return bits == 16 ? f16(v) : bits == 32 ? double{f32(v)} : f64(v);
}

bool matches(const Folded& row, Bits got, Bits want) {
  if (got == want) return true;
  const std::string result = row.intrinsic;
  if (result.starts_with("<2 x half>")) {
    for (const unsigned at : {0u, 16u}) {
      const Bits g = got >> at & 0xffff, w = want >> at & 0xffff;
      if (g != w &&
          !(apfloat::is_nan(apfloat::Format::f16, g) && apfloat::is_nan(apfloat::Format::f16, w)))
        return false;
    }
    return true;
  }
  if (result.front() == 'i') return false;
  const apfloat::Format f = format(row.result_bits);
  if (apfloat::is_nan(f, got) || apfloat::is_nan(f, want))
    return apfloat::is_nan(f, got) && apfloat::is_nan(f, want);
  if (row.close == Close::wave)
    return std::abs(value_of(row.result_bits, got) - value_of(row.result_bits, want)) <=
           (row.result_bits == 16 ? 0x1p-11 : 0x1p-19);
  // Consecutive numbers of one sign have consecutive patterns.
  return row.close == Close::ulp && (got - want == 1 || want - got == 1);
}

// The cases in which LLVM 15's fold differs from its code generator and later releases.
bool is_excluded(const Folded& row, const std::array<Bits, 3>& x) {
  const std::string_view text = row.text;
  // LLVM 15 folds it to the maximum of the others if the third operand is a NaN; LLVM 21 and later
  // to the minimum ("med3 with a nan input acts like v_min_f32(v_min_f32(s0, s1), s2)").
  // llvm_float_test.cpp checks the instruction against the latter.
  if (text.starts_with("v_med3_f32"))
    return apfloat::is_nan(apfloat::Format::f32, x[0]) ||
           apfloat::is_nan(apfloat::Format::f32, x[1]) ||
           apfloat::is_nan(apfloat::Format::f32, x[2]);
  if (text.starts_with("v_med3_f16"))
    return apfloat::is_nan(apfloat::Format::f16, x[0]) ||
           apfloat::is_nan(apfloat::Format::f16, x[1]) ||
           apfloat::is_nan(apfloat::Format::f16, x[2]);
  // The fold keeps denormals; the instruction flushes them ("1ULP accuracy, denormals are flushed",
  // CDNA3 ISA manual). LLVM's lowering of divisions takes that into account.
  if (text.starts_with("v_rcp_f32"))
    return apfloat::is_denormal(apfloat::Format::f32, x[0]) || (x[0] & 0x7fffffff) > 0x7e800000;
  return false;
}

void check(const Folded& row, unsigned rounds) {
  std::mt19937_64 random(5);
  LaneBench bench;
  std::vector<std::array<Bits, 3>> operands(rounds * kLanes);
  std::vector<std::string> bodies;
  for (auto& x : operands) {
    for (unsigned n = 0; n < 3; ++n) x[n] = number(row.operands[n], random);
    bodies.push_back(body(row, x));
  }
  const auto want = llvm_fold(declaration(row), "i" + std::to_string(row.result_bits), bodies);
  unsigned compared = 0;
  for (unsigned round = 0; round < rounds; ++round) {
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      for (unsigned n = 0; n < 3; ++n) {
        const Bits value = operands[round * kLanes + lane][n];
        bench.registers[2 * n].lane[lane] = static_cast<uint32_t>(value);
        bench.registers[2 * n + 1].lane[lane] = static_cast<uint32_t>(value >> 32);
      }
    }
    bench.run(row.text);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const size_t at = round * kLanes + lane;
      if (!want[at] || is_excluded(row, operands[at])) continue;
      Bits got =
          row.result_bits == 1 ? bench.wave.pair(10) >> lane & 1 : bench.registers[6].lane[lane];
      if (row.result_bits == 64) got |= Bits{bench.registers[7].lane[lane]} << 32;
      if (row.result_bits == 16) got &= 0xffff;
      ++compared;
      if (!matches(row, got, *want[at])) {
        CAPTURE(row.text, operands[at][0], operands[at][1], operands[at][2]);
        CHECK(got == *want[at]);
        return;
      }
    }
  }
  CAPTURE(row.text, compared);
  CHECK(compared > rounds * kLanes / 8);  // LLVM does fold the intrinsic
}

}  // namespace

TEST_CASE("instructions give the results to which LLVM folds their intrinsics") {
  for (const Folded& row : kRows) check(row, 16);
}

}  // namespace uptempo::vgpu::gfx9::test
