#include "test/vgpu/gfx9/semantics/semantics.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <stdexcept>
#include <tuple>

#include "gfx9/vector/entry.hpp"
#include "test/support/catch.hpp"

namespace uptempo::vgpu::gfx9::test {
namespace {

using u64 = uint64_t;

constexpr u64 kInts[] = {
    0,          1,          2,          3,          5,          7,          8,          15,
    16,         24,         31,         32,         33,         63,         64,         0x7f,
    0x80,       0xff,       0x100,      0x7fff,     0x8000,     0xffff,     0x10000,    0x7fffff,
    0x800000,   0xffffff,   0x1000000,  0x3fffffff, 0x40000000, 0x7ffffffe, 0x7fffffff, 0x80000000,
    0x80000001, 0xaaaaaaaa, 0x55555555, 0xfffffffe, 0xffffffff, 0x01020304, 0x0c070004, 0xdeadbeef};
constexpr u64 kLongs[] = {0,
                          1,
                          2,
                          31,
                          32,
                          63,
                          64,
                          0x7fffffff,
                          0x80000000,
                          0xffffffff,
                          0x100000000,
                          0x7fffffffffffffff,
                          0x8000000000000000,
                          0x8000000000000001,
                          0xffffffffffffffff,
                          0xfffffffffffffffe,
                          0x123456789abcdef0,
                          0xffffffff00000000,
                          0x00000000ffffffff};
constexpr u64 kF32[] = {
    0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x3f000000, 0xbf000000, 0x40000000, 0xc0000000,
    0x40490fdb, 0x3fc00000, 0xbfc00000, 0x40200000, 0xc0200000, 0x7f800000, 0xff800000, 0x7fc00000,
    0xffc00000, 0x7fc12345, 0x7f800001, 0xff812345, 0x00000001, 0x80000001, 0x007fffff, 0x807fffff,
    0x00800000, 0x80800000, 0x7f7fffff, 0xff7fffff, 0x4effffff, 0x4f000000, 0xcf000000, 0xcf000001,
    0x4f7fffff, 0x4f800000, 0x33800000, 0x477fe000, 0x477ff000, 0x38800000, 0x387fc000, 0x33000000,
    0x33000001, 0x42fe0000, 0x437f0000, 0x437f8000, 0x3effffff, 0x3f7fffff, 0x4b000001, 0x4b800001,
    0x3dcccccd, 0xc2fe8000};
constexpr u64 kF64[] = {
    0x0000000000000000, 0x8000000000000000, 0x3ff0000000000000, 0xbff0000000000000,
    0x3fe0000000000000, 0x4000000000000000, 0x400921fb54442d18, 0x3ff8000000000000,
    0xbff8000000000000, 0x4004000000000000, 0x7ff0000000000000, 0xfff0000000000000,
    0x7ff8000000000000, 0x7ff0000000000001, 0xfff8123456789abc, 0x0000000000000001,
    0x800fffffffffffff, 0x0010000000000000, 0x7fefffffffffffff, 0xffefffffffffffff,
    0x41dfffffffc00000, 0x41e0000000000000, 0xc1e0000000000000, 0xc1e0000000200000,
    0x41efffffffe00000, 0x41f0000000000000, 0x4330000000000001, 0x47efffffe0000000,
    0x47effffff0000000, 0x36a0000000000000, 0x3690000000000000, 0x3690000000000001,
    0x3810000000000000, 0x3fb999999999999a, 0xbfdfffffffffffff, 0x3fefffffffffffff};
constexpr u64 kF16[] = {0x0000, 0x8000, 0x3c00, 0xbc00, 0x3800, 0xb800, 0x4000, 0xc000, 0x4248,
                        0x3e00, 0xbe00, 0x4100, 0x7c00, 0xfc00, 0x7e00, 0xfe01, 0x7c01, 0xfd23,
                        0x0001, 0x8001, 0x03ff, 0x83ff, 0x0400, 0x8400, 0x7bff, 0xfbff, 0x6400,
                        0x6401, 0x67ff, 0x5bff, 0x2e66, 0x3bff, 0x3555};

template <size_t N>
u64 pick(const u64 (&values)[N], std::mt19937_64& random) {
  return values[random() % N];
}

u64 number(Fill fill, std::mt19937_64& random) {
  const bool wild = random() % 4 == 0;
  switch (fill) {
    case Fill::ints:
      return wild ? random() & 0xffffffff : pick(kInts, random);
    case Fill::longs:
      return wild ? random() : pick(kLongs, random);
    case Fill::f32:
      return wild ? random() & 0xffffffff : pick(kF32, random);
    case Fill::f64:
      return wild ? random() : pick(kF64, random);
    case Fill::f16: {
      const u64 low = wild ? random() & 0xffff : pick(kF16, random),
                high = random() % 4 == 0 ? random() & 0xffff : pick(kF16, random);
      return low | high << 16;
    }
  }
  return 0;
}

bool nan32(u64 v) { return (v & 0x7fffffff) > 0x7f800000; }
bool nan64(u64 v) { return (v & 0x7fffffffffffffff) > 0x7ff0000000000000; }
bool nan16(u64 v) { return (v & 0x7fff) > 0x7c00; }

// The distance in representable values, across zero.
int64_t steps(int64_t a, int64_t b, int64_t sign) {
  const auto ordered = [&](int64_t v) { return v & sign ? -(v & ~sign) : v; };
  return std::abs(ordered(a) - ordered(b));
}

bool matches(Match match, unsigned result_bits, u64 got, u64 want) {
  if (got == want) return true;
  switch (match) {
    case Match::exact:
      return false;
    case Match::any_nan:
      return result_bits == 64 ? nan64(got) && nan64(want) : nan32(got) && nan32(want);
    case Match::ulp1:
      if (nan32(got) || nan32(want)) return nan32(got) && nan32(want);
      return steps(static_cast<int64_t>(got), static_cast<int64_t>(want), 0x80000000) <= 1;
    case Match::ulp_f16:
      if (got >> 16 != want >> 16) return false;
      if (nan16(got) || nan16(want)) return nan16(got) && nan16(want);
      return steps(static_cast<int64_t>(got & 0xffff), static_cast<int64_t>(want & 0xffff),
                   0x8000) <= 1;
    case Match::ulp_f64: {
      if (nan64(got) || nan64(want)) return nan64(got) && nan64(want);
      const double g = f64(got), w = f64(want);
      return std::abs(g - w) <= std::abs(w) * 0x1p-26 ||
             (std::abs(g - w) <= std::numeric_limits<double>::denorm_min());
    }
  }
  return false;
}

std::set<Opcode>& checked() {
  static std::set<Opcode> opcodes;
  return opcodes;
}

constexpr u64 kExecShapes[] = {~u64{0},
                               ~u64{0},
                               ~u64{0},
                               0x5555555555555555,
                               0x00000000ffffffff,
                               0xffff0000ffff0001,
                               0x8000000000000000,
                               0};

void fill_registers(LaneBench& bench, Fill fill, std::mt19937_64& random) {
  for (unsigned reg = 0; reg < 8; reg += 2) {
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      u64 value = number(fill, random);
      if (fill != Fill::longs && fill != Fill::f64) value |= random() << 32;
      bench.registers[reg].lane[lane] = static_cast<uint32_t>(value);
      bench.registers[reg + 1].lane[lane] = static_cast<uint32_t>(value >> 32);
    }
  }
}

u64 lane_value(const std::vector<Vgpr>& registers, unsigned reg, unsigned lane, bool wide) {
  return registers[reg].lane[lane] | (wide ? u64{registers[reg + 1].lane[lane]} << 32 : 0);
}

}  // namespace

float f32(u64 value) noexcept { return std::bit_cast<float>(static_cast<uint32_t>(value)); }
double f64(u64 value) noexcept { return std::bit_cast<double>(value); }
u64 bits(float value) noexcept { return std::bit_cast<uint32_t>(value); }
u64 bits(double value) noexcept { return std::bit_cast<u64>(value); }

double f16(u64 half) noexcept {
  const int exponent = static_cast<int>(half >> 10 & 31);
  const double fraction = static_cast<double>(half & 0x3ff);
  const double sign = half & 0x8000 ? -1.0 : 1.0;
  if (exponent == 31)
    return half & 0x3ff ? std::numeric_limits<double>::quiet_NaN()
                        : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(fraction + 1024, exponent - 25);
}

u64 half_bits(double value) noexcept {
  const u64 sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::abs(value);
  if (std::isnan(value)) return 0x7e00;
  if (magnitude >= 65520.0) return sign | 0x7c00;
  // The unit in the last place: 2^-24 for denormals, else 2^(exponent - 10).
  const int exponent = magnitude < 0x1p-14 ? -14 : std::ilogb(magnitude);
  const double scaled = std::ldexp(magnitude, 10 - exponent);
  const auto rounded =
      static_cast<u64>(std::nearbyint(scaled));  // the default rounding: nearest even
  // A carry out of the fraction increments the exponent.
  if (exponent == -14 && rounded < 1024) return sign | rounded;
  return sign | ((static_cast<u64>(exponent + 15) << 10) + (rounded - 1024));
}

u64 half_fma(u64 a, u64 b, u64 c) noexcept {
  const double x = f16(a), y = f16(b), z = f16(c);
  if (!std::isfinite(x) || !std::isfinite(y) || !std::isfinite(z)) return half_bits(x * y + z);
  // Products are multiples of 2^-48, sums at most 2^33, so 128 bits are exact. Bits below a
  // double's precision only break ties.
  const auto fixed = [](double v, int scale) {
    return static_cast<__int128>(std::ldexp(v, scale));
  };
  const __int128 sum = fixed(x * y, 48) + fixed(z, 48);
  if (sum == 0) return half_bits(x * y + z);
  const bool negative = sum < 0;
  auto magnitude = static_cast<unsigned __int128>(negative ? -sum : sum);
  int scale = -48;
  unsigned sticky = 0;
  while (magnitude >> 50) {
    sticky |= static_cast<unsigned>(magnitude & 1);
    magnitude >>= 1;
    ++scale;
  }
  const double value =
      std::ldexp(static_cast<double>(static_cast<u64>(magnitude) << 1 | sticky), scale - 1);
  return half_bits(negative ? -value : value);
}

LaneBench::LaneBench(Target target) : registers(512), target_(target), assembler_(target) {
  wave.vgpr = registers.data();
  for (unsigned code = 0; code < 128; ++code) wave.scalar[code] = 0;
  for (unsigned code = 128; code <= 192; ++code) wave.scalar[code] = code - 128;
  for (unsigned code = 193; code <= 208; ++code) wave.scalar[code] = 192u - code;
  constexpr float kFloats[] = {0.5f, -0.5f, 1.0f, -1.0f, 2.0f, -2.0f, 4.0f, -4.0f};
  for (unsigned i = 0; i < 8; ++i) wave.scalar[240 + i] = std::bit_cast<uint32_t>(kFloats[i]);
  wave.scalar[248] = 0x3e22f983;  // 1 / (2 pi)
  for (unsigned i = 0; i < 9; ++i)
    wave.scalar[kFirstHalfConstant + i] =
        static_cast<uint32_t>(half_bits(f32(wave.scalar[240 + i])));
  wave.mode = 0x3f0;  // nearest even, denormals kept, DX10 clamp, IEEE
  wave.set_exec(~u64{0});
}

void LaneBench::run(const std::string& text) {
  static std::map<std::tuple<vector::Simd, Target, std::string>, std::vector<Op>> prepared;
  auto& ops = prepared[{vector::simd_in_use(), target_, text}];
  if (ops.empty()) {
    const std::vector<uint32_t> words = assembler_.assemble(text);
    for (size_t at = 0; at < words.size();) {
      Op op{};
      op.in = decode(std::span(words).subspan(at), target_);
      if (op.in.opcode == Opcode::invalid)
        throw std::runtime_error("decoder refuses \"" + text + "\"");
      checked().insert(op.in.opcode);
      at += op.dwords();
      const Format format = op.in.format;
      const bool vector = format >= Format::vop1 && format <= Format::vop3p;
      op.handler = vector ? translate_vector(op.in) : translate_scalar(op.in, MemoryPolicy::direct);
      if (!op.handler) throw std::runtime_error("not supported: \"" + text + "\"");
      ops.push_back(op);
    }
  }
  for (const Op& op : ops) {
    // A handler returns the next entry, which is not used here.
    if (op.handler(op, wave) != &op + op.dwords())
      throw std::runtime_error("the handler did not continue after \"" + text + "\"");
  }
}

namespace {

void check_on_one_simd(std::span<const Row> rows, uint32_t mode, const char* simd) {
  LaneBench bench;
  bench.wave.mode = mode;
  std::mt19937_64 random(7);
  for (const Row& row : rows) {
    const bool mask_result = row.result_bits == 1, wide = row.result_bits == 64;
    const std::string text = row.text;
    const unsigned mask_at = text.find("s[10:11]") != text.npos ? 10 : kVccLo;
    bool failed = false;
    for (unsigned round = 0; round < 24 && !failed; ++round) {
      fill_registers(bench, row.fill, random);
      const u64 exec = kExecShapes[round % std::size(kExecShapes)];
      bench.wave.set_exec(exec);
      const u64 carry_in = random();
      bench.wave.set_pair(12, carry_in);  // s[12:13]: carry-in and selector
      if (mask_result) bench.wave.set_pair(mask_at, random());
      const std::vector<Vgpr> before(bench.registers.begin(), bench.registers.begin() + 8);
      try {
        bench.run(text);
      } catch (const std::runtime_error& error) {
        FAIL_CHECK(simd << ": " << error.what());
        break;
      }
      for (unsigned lane = 0; lane < kLanes && !failed; ++lane) {
        const bool active = exec >> lane & 1;
        const Lane x{lane_value(before, 0, lane, true), lane_value(before, 2, lane, true),
                     lane_value(before, 4, lane, true), lane_value(before, 6, lane, true),
                     (carry_in >> lane & 1) != 0};
        u64 got, want;
        if (mask_result) {
          got = bench.wave.pair(mask_at) >> lane & 1;
          want = active ? row.reference(x) : 0;
        } else {
          got = lane_value(bench.registers, 6, lane, wide);
          want = active ? row.reference(x) : x.old;
          if (want == kOpen) continue;
          if (!wide) want &= 0xffffffff;
        }
        if (!(active ? matches(row.match, row.result_bits, got, want) : got == want)) {
          failed = true;
          FAIL_CHECK(
              fmt::format("{} on {}: lane {} ({}) a={:#x} b={:#x} c={:#x} old={:#x} mask={}: got "
                          "{:#x}, want {:#x}",
                          row.text, simd, lane, active ? "active" : "inactive", x.a, x.b, x.c,
                          x.old, x.bit, got, want));
        }
      }
    }
    if (!failed) SUCCEED(row.text);
  }
}

}  // namespace

// On every SIMD target that this machine can run.
void check(std::span<const Row> rows, uint32_t mode) {
  const vector::Simd best = vector::simd_in_use();
  constexpr std::pair<vector::Simd, const char*> kSimds[] = {{vector::Simd::avx512, "avx512"},
                                                             {vector::Simd::avx2, "avx2"},
                                                             {vector::Simd::baseline, "baseline"}};
  for (const auto& [simd, name] : kSimds) {
    if (vector::use_simd(simd)) check_on_one_simd(rows, mode, name);
  }
  vector::use_simd(best);
}

const std::set<Opcode>& checked_opcodes() { return checked(); }

void count_as_checked(const std::string& text) {
  static LlvmMc assembler(Target::gfx90a);
  const std::vector<uint32_t> words = assembler.assemble(text);
  for (size_t at = 0; at < words.size();) {
    const Instruction in = decode(std::span(words).subspan(at), Target::gfx90a);
    checked().insert(in.opcode);
    at += in.size_bytes / 4;
  }
}

}  // namespace uptempo::vgpu::gfx9::test
