#include "test/vgpu/gfx9/vector/vector_machine.hpp"

#include <cmath>

#include "test/support/catch.hpp"

namespace uptempo::vgpu::gfx9::test {
namespace {

constexpr unsigned kSource[3] = {10, 20, 30};
constexpr unsigned kResult = 40, kScalarResult = 20, kScalarSource = 30, kCarry = 60;

constexpr uint32_t kEdges[] = {
    0u,          1u,          2u,          3u,          7u,          8u,          15u,
    16u,         31u,         32u,         33u,         63u,         64u,         127u,
    128u,        255u,        256u,        0x7fffu,     0x8000u,     0xffffu,     0x10000u,
    0x7fffffu,   0x800000u,   0xffffffu,   0x1000000u,  0x7fffffffu, 0x80000000u, 0x80000001u,
    0xfffffffeu, 0xffffffffu, 0x3f800000u, 0xbf800000u, 0x3f000000u, 0x40000000u, 0x3fc00000u,
    0xc0200000u, 0x00400000u, 0x807fffffu, 0x00800000u, 0x7f7fffffu, 0xff7fffffu, 0x7f800000u,
    0xff800000u, 0x7fc00000u, 0xffc12345u, 0x7f800001u, 0x4f000000u, 0xcf000000u, 0x4f800000u,
    0x4effffffu, 0x3c003c00u, 0x7c00fc00u, 0x7bff0001u, 0x03ff83ffu, 0x7e007d00u, 0x3ff00000u,
    0x7ff00000u, 0x7ff80000u, 0xfff00000u, 0x41dfffffu, 0x43300000u, 0x34000000u, 0x0c0d0e0fu,
    0x07060504u, 0x03020100u, 0x0b0a0908u, 0x42fe0000u, 0xc2fe0000u};

bool same(Compare compare, uint64_t a, uint64_t b) {
  switch (compare) {
    case Compare::floats32:
      if (std::isnan(f32(a)) && std::isnan(f32(b))) return true;
      break;
    case Compare::floats64:
      if (std::isnan(f64(a)) && std::isnan(f64(b))) return true;
      break;
    case Compare::floats16:
      if (std::isnan(f16(a & 0xffff)) && std::isnan(f16(b & 0xffff))) return a >> 16 == b >> 16;
      break;
    case Compare::bits:
      break;
  }
  return a == b;
}

}  // namespace

VectorMachine::VectorMachine(uint32_t seed) : registers(512), state_(seed * 2654435761u + 12345u) {
  wave.vgpr = registers.data();
  wave.mode = kKernelMode;
  for (uint32_t& s : wave.scalar) s = edge();
  for (unsigned code = 128; code <= 192; ++code) wave.scalar[code] = code - 128;
  for (unsigned code = 193; code <= 208; ++code) wave.scalar[code] = 192u - code;
  constexpr float kFloats[] = {0.5f, -0.5f, 1.0f, -1.0f, 2.0f, -2.0f, 4.0f, -4.0f};
  for (unsigned i = 0; i < 8; ++i) wave.scalar[240 + i] = std::bit_cast<uint32_t>(kFloats[i]);
  wave.scalar[248] = 0x3e22f983u;
  constexpr uint32_t kHalves[] = {0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000,
                                  0xc000, 0x4400, 0xc400, 0x3118};
  std::ranges::copy(kHalves, wave.scalar + kFirstHalfConstant);
  wave.set_exec(~uint64_t{0});
  for (Vgpr& reg : registers) {
    for (uint32_t& lane : reg.lane) lane = edge();
  }
}

uint32_t VectorMachine::random() noexcept {
  state_ ^= state_ << 13;
  state_ ^= state_ >> 17;
  state_ ^= state_ << 5;
  return state_;
}

uint32_t VectorMachine::edge() noexcept {
  const uint32_t r = random();
  return (r & 0x300) != 0 ? kEdges[random() % std::size(kEdges)] : random();
}

void VectorMachine::run(Instruction in) {
  std::array<Op, 3> code{};
  code[0].in = in;
  code[0].handler = translate_vector(code[0].in);
  REQUIRE(code[0].handler != nullptr);
  REQUIRE(code[0].handler(code[0], wave) == &code[code[0].dwords()]);
}

uint64_t VectorMachine::pair(unsigned reg, unsigned lane) const {
  return registers[reg].lane[lane] | static_cast<uint64_t>(registers[reg + 1].lane[lane]) << 32;
}

std::vector<vector::Simd> simd_targets() {
  const vector::Simd best = vector::simd_in_use();
  std::vector<vector::Simd> targets;
  for (const vector::Simd simd :
       {vector::Simd::avx512, vector::Simd::avx2, vector::Simd::baseline}) {
    if (vector::use_simd(simd)) targets.push_back(simd);
  }
  vector::use_simd(best);
  return targets;
}

std::string name(vector::Simd simd) {
  return simd == vector::Simd::avx512 ? "avx512" : simd == vector::Simd::avx2 ? "avx2" : "baseline";
}

const std::vector<uint64_t>& exec_shapes() {
  static const std::vector<uint64_t> kShapes = {~uint64_t{0},
                                                0,
                                                1,
                                                uint64_t{1} << 63,
                                                0xffffffff,
                                                0xffffffff00000000,
                                                0x5555555555555555,
                                                0xaaaaaaaaaaaaaaaa,
                                                0x00ff00ff00ff00ff,
                                                0xfffffffffffffffe,
                                                0x123456789abcdef0};
  return kShapes;
}

Instruction vop3(Opcode opcode, unsigned sources) {
  Instruction in;
  in.opcode = opcode;
  in.format = Format::vop3;
  in.size_bytes = 8;
  for (unsigned i = 0; i < sources; ++i)
    in.src[i] = static_cast<OperandCode>(kFirstVgpr + kSource[i]);
  in.dst = kResult;
  in.sdst = kScalarResult;
  return in;
}

void check_lanes(const Case& what, const Reference& reference) {
  const vector::Simd best = vector::simd_in_use();
  for (const vector::Simd simd : simd_targets()) {
    vector::use_simd(simd);
    for (unsigned scalars = 0; scalars < 1u << what.sources; ++scalars) {
      for (const uint64_t exec : exec_shapes()) {
        VectorMachine machine(static_cast<uint32_t>(exec >> 7) + scalars * 77 +
                              static_cast<uint32_t>(what.opcode));
        Instruction in = vop3(what.opcode, what.sources);
        in.op_sel_hi = 7;  // the high halves, which assemblers encode by default
        for (unsigned i = 0; i < what.sources; ++i) {
          if (scalars >> i & 1) in.src[i] = static_cast<OperandCode>(kScalarSource + 4 * i);
        }
        if (what.carry_source != 0) in.src[what.carry_source] = kCarry;
        machine.wave.set_exec(exec);
        const std::vector<Vgpr> before = machine.registers;
        const uint64_t carry = machine.wave.pair(kCarry);
        machine.run(in);
        CAPTURE(name(simd), scalars, exec);
        for (unsigned lane = 0; lane < kLanes; ++lane) {
          uint64_t operand[3] = {};
          for (unsigned i = 0; i < what.sources; ++i) {
            for (unsigned r = what.registers[i]; r-- > 0;) {
              const unsigned scalar = kScalarSource + 4 * i + r;
              operand[i] =
                  operand[i] << 32 | (scalars >> i & 1 ? machine.wave.scalar[scalar]
                                                       : before[kSource[i] + r].lane[lane]);
            }
          }
          const bool wide = what.result_registers == 2;
          const uint64_t got =
              wide ? machine.pair(kResult, lane) : machine.registers[kResult].lane[lane];
          if ((exec >> lane & 1) == 0) {
            const bool kept =
                before[kResult].lane[lane] == machine.registers[kResult].lane[lane] &&
                before[kResult + 1].lane[lane] == machine.registers[kResult + 1].lane[lane];
            if (!kept) {
              CAPTURE(lane);
              FAIL("an inactive lane was written");
            }
            continue;
          }
          const uint64_t expected =
              reference(operand[0], operand[1], operand[2], (carry >> lane & 1) != 0);
          if (!same(what.compare, got, expected)) {
            CAPTURE(lane, operand[0], operand[1], operand[2], carry >> lane & 1);
            CHECK(got == expected);
            vector::use_simd(best);
            return;
          }
        }
      }
    }
  }
  vector::use_simd(best);
  SUCCEED();
}

void check_bits(const Case& what, const std::function<bool(uint64_t, uint64_t)>& reference,
                bool writes_exec) {
  const vector::Simd best = vector::simd_in_use();
  for (const vector::Simd simd : simd_targets()) {
    vector::use_simd(simd);
    for (unsigned scalars = 0; scalars < 4; ++scalars) {
      for (const uint64_t exec : exec_shapes()) {
        VectorMachine machine(static_cast<uint32_t>(exec >> 9) + scalars * 131 +
                              static_cast<uint32_t>(what.opcode));
        Instruction in = vop3(what.opcode, 2);
        in.dst = kScalarResult;
        for (unsigned i = 0; i < 2; ++i) {
          if (scalars >> i & 1) in.src[i] = static_cast<OperandCode>(kScalarSource + 4 * i);
        }
        machine.wave.set_exec(exec);
        machine.run(in);
        uint64_t expected = 0;
        for (unsigned lane = 0; lane < kLanes; ++lane) {
          uint64_t operand[2] = {};
          for (unsigned i = 0; i < 2; ++i) {
            for (unsigned r = what.registers[i]; r-- > 0;) {
              const unsigned scalar = kScalarSource + 4 * i + r;
              operand[i] = operand[i] << 32 |
                           (scalars >> i & 1 ? machine.wave.scalar[scalar]
                                             : machine.registers[kSource[i] + r].lane[lane]);
            }
          }
          if (exec >> lane & 1)
            expected |= static_cast<uint64_t>(reference(operand[0], operand[1])) << lane;
        }
        CAPTURE(name(simd), scalars, exec);
        REQUIRE(machine.wave.pair(kScalarResult) == expected);
        REQUIRE(machine.wave.exec() == (writes_exec ? expected : exec));
      }
    }
  }
  vector::use_simd(best);
}

double f16(uint64_t bits) {
  const int exponent = static_cast<int>(bits >> 10 & 31);
  const double mantissa = static_cast<double>(bits & 0x3ff);
  const double sign = bits & 0x8000 ? -1.0 : 1.0;
  if (exponent == 31) return mantissa != 0 ? std::nan("") : sign * INFINITY;
  return sign *
         (exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25));
}

uint64_t nearest_f16(double v) {
  const uint64_t sign = std::signbit(v) ? 0x8000 : 0;
  if (std::isnan(v)) return 0x7e00;
  const double magnitude = std::fabs(v);
  if (magnitude >= 65520.0) return sign | 0x7c00;  // half a unit above the largest
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  exponent = exponent < -13 ? -13 : exponent;  // denormals share the smallest exponent
  const double units = std::nearbyint(std::ldexp(magnitude, 11 - exponent));
  if (units == 0) return sign;
  // The addition carries a rounded-up significand into the exponent.
  return sign | (static_cast<uint64_t>(exponent + 13) * 1024 + static_cast<uint64_t>(units));
}

}  // namespace uptempo::vgpu::gfx9::test
